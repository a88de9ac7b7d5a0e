#!/usr/bin/env bash
# A step of the action: puts loadgen and controlplane on PATH.
#
# Environment variables: VERSION ("source" or a release), RELEASES (the base URL of release downloads);
# GITHUB_ACTION_PATH, RUNNER_TEMP, RUNNER_OS, RUNNER_ARCH and GITHUB_PATH are set by the runner. Exits with 4 if a
# release cannot be downloaded or does not match its checksum.
set -euo pipefail

if [[ $VERSION == source ]]; then
  make -C "$GITHUB_ACTION_PATH" build
  echo "$GITHUB_ACTION_PATH/bin" >>"$GITHUB_PATH"
  exit 0
fi

fail() {
  echo "::error::$1"
  exit 4
}

case $RUNNER_OS in
Linux) os=linux ;;
macOS) os=darwin ;;
*) fail "no release for $RUNNER_OS (Linux and macOS have one)" ;;
esac
case $RUNNER_ARCH in
X64) arch=amd64 ;;
ARM64) arch=arm64 ;;
*) fail "no release for $RUNNER_ARCH (X64 and ARM64 have one)" ;;
esac

bin=$RUNNER_TEMP/stormglass-$VERSION
mkdir -p "$bin"
cd "$bin"
get() {
  curl --fail --silent --show-error --location --retry 3 --output "$1" "$RELEASES/$VERSION/$1" ||
    fail "$VERSION has no $1 at $RELEASES (version: source builds it)"
}

get checksums.txt
for program in loadgen controlplane; do
  archive=${program}_${VERSION#v}_${os}_${arch}.tar.gz
  get "$archive"
  # Require a line for exactly this file: without such a line, no checksum would be checked.
  grep -E "^[0-9a-f]{64}  ${archive//./\\.}\$" checksums.txt >"$archive.sum" || fail "checksums.txt of $VERSION does not name $archive"
  if command -v sha256sum >/dev/null; then
    sha256sum --check --quiet "$archive.sum" || fail "$archive is not what checksums.txt says"
  else
    shasum --algorithm 256 --check --quiet "$archive.sum" || fail "$archive is not what checksums.txt says"
  fi
  tar -xzf "$archive" "$program"
  rm "$archive" "$archive.sum"
done
echo "$bin" >>"$GITHUB_PATH"
