#!/usr/bin/env bash
# Puts a built program, its licences and README into dist/verify-VERSION-TARGET.{tar.gz,zip}.
set -euo pipefail
version=$1 target=$2

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p dist
cp README.md README.zh-CN.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$folder/"
case "$target" in
  *windows*)
    cp "target/$target/release/verify.exe" "$folder/"
    archive="$PWD/dist/verify-$version-$target.zip"
    # 7z is on the Windows runners, zip is not.
    (cd "$folder" && 7z a -bso0 "$archive" ./*)
    ;;
  *)
    install -m 755 "target/$target/release/verify" "$folder/"
    # The same input gives the same bytes.
    names=$(cd "$folder" && ls)
    # shellcheck disable=SC2086 # the names are listed above and hold no spaces
    tar -C "$folder" -cf - $names | gzip -n9 > "dist/verify-$version-$target.tar.gz"
    ;;
esac
ls -l dist
