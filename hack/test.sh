#!/usr/bin/env bash
# Runs Go tests and condenses what they print; see hack/testsum for the form. The last line
# is "N passed, N failed, N skipped".
#
# Usage: hack/test.sh [--race] [package]… [-- go test flags]      (default: ./...)
#
# Packages under test/ start real servers, so they run one at a time after all others.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

flags=(-timeout 20m)
packages=()
while [ $# -gt 0 ]; do
  case $1 in
    --race) flags+=(-race) ;;
    --)
      shift
      flags+=("$@")
      break
      ;;
    -*)
      echo "test: unknown flag $1; flags for go test come after --" >&2
      exit 2
      ;;
    *) packages+=("$1") ;;
  esac
  shift
done
if [ ${#packages[@]} -eq 0 ]; then packages=(./...); fi

# -e lists broken packages too, so that go test reports them.
listed=$(go list -e -f '{{.ImportPath}}' "${packages[@]}")
module=$(go list -m)
heavy=$(grep -E "^$module/test(/|\$)" <<<"$listed" || true)
light=$(grep -vE "^$module/test(/|\$)" <<<"$listed" || true)

mkdir -p bin
go build -o bin/testsum ./hack/testsum

# gotest PARALLEL PACKAGES [FLAG]… reports its own failure to testsum, which stays the one
# judge: not every failure of go test is a test's.
gotest() {
  local parallel=$1 names=$2
  shift 2
  [ -n "$names" ] || return 0
  go test -json -p "$parallel" "${flags[@]}" "$@" $names 2>&1 ||
    echo "{\"Action\":\"exited\",\"Package\":\"go test -p $parallel\"}"
}

{
  gotest 2 "$light"
  gotest 1 "$heavy" -count=1
} | bin/testsum
