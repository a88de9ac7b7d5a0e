#!/usr/bin/env bash
# A step of the action: decides which release to install, or "source" to build the programs.
#
# Environment variables: VERSION (the action's input), REF (the tag, branch or commit in the workflow's "uses:").
# Output: version.
set -euo pipefail

release='^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$'
if [[ -z $VERSION && $REF =~ $release ]]; then
  VERSION=$REF
fi
case ${VERSION:=source} in
source) ;;
*)
  if ! [[ $VERSION =~ $release ]]; then
    echo "::error::version \"$VERSION\" is not a release (write it as v1.2.3, or source)"
    exit 2
  fi
  VERSION=v${VERSION#v}
  ;;
esac
echo "version=$VERSION" >>"$GITHUB_OUTPUT"
