#!/usr/bin/env bash
# Builds the real servers that tests, demo and up run, from the modules in hack/testbin,
# and links them into bin/testbin:
#
#   etcd-vX.Y.Z/{etcd,etcdctl,etcdutl}
#   mirror/vX.Y.Z/{etcd-vX.Y.Z-linux-ARCH.tar.gz,SHA256SUMS}   laid out as upstream's downloads
#   kube-apiserver, kubectl
#
# Usage: hack/testbin.sh [etcd-X.Y.Z | kube-apiserver | kubectl]…      (default: everything)
#
# Builds are kept in $ETCDMANAGER_CACHE (default ~/.cache/etcdmanager).
# KUBEBUILDER_ASSETS, when it names a directory with kube-apiserver (and perhaps kubectl),
# spares building them.
set -euo pipefail
export LC_ALL=C

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=$root/bin/testbin
source "$root/hack/cached-build.sh"

# pack_etcd DIR writes the release tarball of the etcd commands in DIR and its checksum to
# DIR/mirror. The same commands always give the same bytes.
pack_etcd() {
  local release=etcd-v$version-linux-$(host_arch)
  local out=$1/mirror/v$version
  mkdir -p "$out"
  tar --directory "$1" --create --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
    --mode=0755 --transform "s,^,$release/," etcd etcdctl etcdutl |
    gzip -n -6 >"$out/$release.tar.gz"
  (cd "$out" && sha256sum "$release.tar.gz" >SHA256SUMS)
}

etcd() {
  version=$1
  local module=$root/hack/testbin/etcd-$version
  if [ ! -d "$module" ]; then
    echo "testbin: no etcd $version; there are:$(etcd_versions | sed 's/^/ /' | tr -d '\n')" >&2
    exit 2
  fi
  cached_build "etcd-$version" "$module" "" \
    "the members under test (about 2 min the first time on 2 cores)" pack_etcd \
    etcd=go.etcd.io/etcd/server/v3 \
    etcdctl=go.etcd.io/etcd/etcdctl/v3 \
    etcdutl=go.etcd.io/etcd/etcdutl/v3
  local file
  for file in etcd etcdctl etcdutl; do link "$built/$file" "$bin/etcd-v$version/$file"; done
  for file in "$built/mirror/v$version"/*; do link "$file" "$bin/mirror/v$version/${file##*/}"; done
}

etcd_versions() {
  local module
  for module in "$root"/hack/testbin/etcd-*; do echo "${module##*/etcd-}"; done
}

kubernetes() {
  local command=$1 why=$2
  local given=${KUBEBUILDER_ASSETS:-}
  if [ -n "$given" ] && [ -x "$given/$command" ] && [ ! "$given" -ef "$bin" ]; then
    echo "have $command: $given"
    link "$(cd "$given" && pwd)/$command" "$bin/$command"
    return
  fi
  local module version flags= package
  module=$(echo "$root"/hack/testbin/kubernetes-*)
  version=${module##*/kubernetes-}
  local major=${version%%.*} rest=${version#*.}
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $package.gitVersion=v$version -X $package.gitMajor=$major"
    flags+=" -X $package.gitMinor=${rest%%.*} -X $package.gitTreeState=clean"
    flags+=" -X $package.gitCommit=unknown"
  done
  cached_build "$command-$version" "$module" "$flags" "$why" "" \
    "$command=k8s.io/kubernetes/cmd/$command"
  link "$built/$command" "$bin/$command"
}

if [ $# -eq 0 ]; then
  set -- $(etcd_versions | sed 's/^/etcd-/') kube-apiserver kubectl
fi
for want in "$@"; do
  case $want in
    etcd-*) etcd "${want#etcd-}" ;;
    kube-apiserver) kubernetes kube-apiserver \
      "the management API and etcd's real client (about 5 min the first time on 2 cores)" ;;
    kubectl) kubernetes kubectl \
      "to look at objects as users do (about 1 min after kube-apiserver)" ;;
    *)
      echo "testbin: unknown $want; give etcd-X.Y.Z, kube-apiserver or kubectl" >&2
      exit 2
      ;;
  esac
done
