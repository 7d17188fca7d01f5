#!/usr/bin/env bash
# Builds the development tools pinned in hack/tools and links them into bin/tools.
#
# Usage: hack/tools.sh [golangci-lint | controller-gen | benchstat]…      (default: all)
#
# Builds are kept in $ETCDMANAGER_CACHE (default ~/.cache/etcdmanager).
set -euo pipefail
export LC_ALL=C

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$root/hack/cached-build.sh"

if [ $# -eq 0 ]; then set -- golangci-lint controller-gen benchstat; fi
for tool in "$@"; do
  module=$root/hack/tools/$tool
  case $tool in
    golangci-lint) why="the linter (about 5 min the first time on 2 cores)" ;;
    controller-gen) why="generates deep copies, CRDs and RBAC rules (about 30 s the first time)" ;;
    benchstat) why="compares benchmarks (a few seconds)" ;;
    *)
      echo "tools: unknown $tool; give golangci-lint, controller-gen or benchstat" >&2
      exit 2
      ;;
  esac
  package=$(sed -n 's/^tool //p' "$module/go.mod")
  cached_build "$tool" "$module" "" "$why" "" "$tool=$package"
  link "$built/$tool" "$root/bin/tools/$tool"
done
