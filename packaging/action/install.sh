#!/usr/bin/env bash
# Downloads a released program, checks it against the checksums of the release, and puts
# it into $FOLDER. Used by action.yml; run by hand with GH_REPO, VERSION, TARGET, FOLDER.
set -euo pipefail

case "$TARGET" in
  *windows*) archive="verify-$VERSION-$TARGET.zip" ;;
  *) archive="verify-$VERSION-$TARGET.tar.gz" ;;
esac
download=$(mktemp -d)
trap 'rm -rf "$download"' EXIT

gh release download "v$VERSION" --pattern "$archive" --pattern SHA256SUMS --dir "$download"
cd "$download"
# Exactly one line must speak of the archive, and it must be right.
if [ "$(grep -c "  $archive\$" SHA256SUMS)" != 1 ]; then
  echo "::error::SHA256SUMS of v$VERSION does not list $archive"
  exit 1
fi
if command -v sha256sum > /dev/null; then
  grep "  $archive\$" SHA256SUMS | sha256sum --check --strict -
else
  grep "  $archive\$" SHA256SUMS | shasum -a 256 --check -
fi
mkdir -p "$FOLDER"
case "$archive" in
  *.zip) unzip -q -o "$archive" verify.exe -d "$FOLDER" ;;
  *) tar -xzf "$archive" -C "$FOLDER" verify ;;
esac
