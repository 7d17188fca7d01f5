# Sourced by testbin.sh and tools.sh: builds commands of a pinned module once per machine.
#
# A build lives in <cache>/<name>-<key>/, where the key is a hash of the module's go.mod
# and go.sum, the flags and the platform. It is made in a temporary directory and renamed
# when complete, under a lock, so an interrupted build leaves nothing half done and two
# builds at once do the work once.

cache=${ETCDMANAGER_CACHE:-$HOME/.cache/etcdmanager}

# host_arch prints this machine's name in Go's terms, without needing Go.
host_arch() {
  case $(uname -m) in
    x86_64) echo amd64 ;;
    aarch64 | arm64) echo arm64 ;;
    *) go env GOHOSTARCH ;;
  esac
}

# cached_build NAME MODULE_DIR LDFLAGS WHY FINISH COMMAND=PACKAGE…
#
# Builds each PACKAGE of the module into COMMAND and sets $built to the directory that
# holds them. FINISH is a function that is given the directory before it is published
# ("" for none); its source is part of the key.
cached_build() {
  local name=$1 module=$2 ldflags=$3 why=$4 finish=$5
  shift 5
  local key
  key=$({
    cat "$module/go.mod" "$module/go.sum"
    echo "$(host_arch) $ldflags $*"
    if [ -n "$finish" ]; then declare -f "$finish"; fi
  } | sha256sum | cut -c1-12)
  built=$cache/$name-$key

  if [ -d "$built" ]; then
    echo "have $name"
    return
  fi
  mkdir -p "$cache"
  exec 9>"$built.lock"
  if ! flock -n 9; then
    echo "waiting for another build of $name"
    flock 9
  fi
  if [ -d "$built" ]; then
    exec 9>&-
    echo "have $name"
    return
  fi

  echo "building $name: $why"
  local started=$SECONDS partial=$built.partial item
  rm -rf "$partial"
  mkdir -p "$partial"
  for item in "$@"; do
    # The caller's GOFLAGS or a workspace must not change what is built, nor may a
    # target platform: these commands run here. 9>&- keeps the lock ours alone.
    (
      cd "$module"
      unset GOOS GOARCH
      GOFLAGS= GOWORK=off CGO_ENABLED=0 nice go build -mod=readonly -trimpath -buildvcs=false \
        -ldflags "-s -w $ldflags" -o "$partial/${item%%=*}" "${item#*=}" 9>&-
    )
  done
  if [ -n "$finish" ]; then "$finish" "$partial"; fi
  mv -T "$partial" "$built"
  exec 9>&-
  echo "built $name in $((SECONDS - started))s"
}

# link TARGET LINK points LINK at TARGET, whatever was there before.
link() {
  [ "$(readlink "$2" || true)" = "$1" ] && return
  mkdir -p "$(dirname "$2")"
  ln -sfn "$1" "$2.$$"
  mv -fT "$2.$$" "$2"
}
