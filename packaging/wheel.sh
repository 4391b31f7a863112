#!/usr/bin/env bash
# Builds the wheel for a target into dist/, installs it into a fresh virtual environment,
# and runs the program that it carries on the example course.
set -euo pipefail
target=$1

root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$root/dist"
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools/build"
bin=bin
[ -d "$tools/build/bin" ] || bin=Scripts
"$tools/build/$bin/python" -m pip --quiet install 'maturin==1.16.0'
# A static binary runs with either C library; left to itself, maturin names glibc alone and
# pip on Alpine finds nothing.
compatibility=()
case $target in *-linux-musl) compatibility=(--compatibility manylinux2014 musllinux_1_1) ;; esac
(cd "$root/packaging/pypi" && "$tools/build/$bin/maturin" build --release --target "$target" \
  ${compatibility[@]+"${compatibility[@]}"} --out "$root/dist")
for platform in ${compatibility[@]+"${compatibility[@]:1}"}; do
  "$tools/build/$bin/python" -m pip --quiet download --no-index --find-links "$root/dist" --no-deps \
    --only-binary=:all: --platform "${platform}_${target%%-*}" --dest "$tools/$platform" inference-verify
done

python3 -m venv "$tools/user"
"$tools/user/$bin/python" -m pip --quiet install --no-index --find-links "$root/dist" inference-verify
"$tools/user/$bin/verify" --version
"$tools/user/$bin/verify" all -C "$root/fixtures/course" --no-progress --quiet
