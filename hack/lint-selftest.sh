#!/usr/bin/env bash
# Proves that the layering and clock rules of .golangci.yml bite: lints hack/lint-selftest, a
# small module with our module path and folders, whose lines marked `// want LINTER` break a
# rule on purpose, and compares what is found with what is marked, both ways. A violation
# that goes unseen and a false alarm both fail.
#
# Imports of other modules resolve to empty packages, so this needs no network.
set -euo pipefail
export LC_ALL=C

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
linter=$root/bin/tools/golangci-lint
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The folder's name is the repository's on purpose: rules must not match on the checkout.
module=$dir/etcdmanager
cp -r "$root/hack/lint-selftest/" "$module"
cp "$root/.golangci.yml" "$module/"
cd "$module"

stub() { # MODULE PACKAGE…
  local path=$1 package
  shift
  local major=v0
  case $path in */v[2-9]) major=${path##*/} ;; esac
  printf 'require %s %s.0.0\nreplace %s => ./stub/%s\n' "$path" "$major" "$path" "$path" >>go.mod
  mkdir -p "stub/$path"
  printf 'module %s\n\ngo 1.26.0\n' "$path" >"stub/$path/go.mod"
  for package in "$@"; do
    mkdir -p "stub/$path/$package"
    echo "package ${package##*/}" >"stub/$path/$package/stub.go"
  done
}
stub go.etcd.io/etcd/client/v3 client
stub k8s.io/apimachinery pkg/runtime
stub k8s.io/client-go kubernetes
stub sigs.k8s.io/controller-runtime pkg/client pkg/scheme

# What is marked, as file:line:linter.
grep -rn --include='*.go' --exclude-dir=stub '// want ' . |
  sed -E 's,^\./([^:]+:[0-9]+):.*// want ([a-z]+)$,\1:\2,' | sort >"$dir/want"

rc=0
GOFLAGS=-mod=mod GOWORK=off "$linter" run --enable-only depguard,forbidigo --allow-parallel-runners \
  --output.text.path "$dir/report" --output.text.print-issued-lines=false \
  --output.text.colors=false ./... >"$dir/log" 2>&1 || rc=$?
if [ "$rc" -gt 1 ]; then
  cat "$dir/log"
  echo "lint self-test: the linter failed with $rc"
  exit 1
fi
sed -nE 's,^([^:]+:[0-9]+):[0-9]+: .*\(([a-z]+)\)$,\1:\2,p' "$dir/report" | sort >"$dir/got"

if ! diff --unchanged-line-format='' --old-line-format='not found:   %L' \
  --new-line-format='false alarm: %L' "$dir/want" "$dir/got"; then
  cat "$dir/report"
  echo "lint self-test: the rules do not find what they should (paths are below hack/lint-selftest)"
  exit 1
fi
echo "lint self-test: $(wc -l <"$dir/want") planted violations found, no false alarm"
