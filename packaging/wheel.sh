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
(cd "$root/packaging/pypi" && "$tools/build/$bin/maturin" build --release --target "$target" --out "$root/dist")

python3 -m venv "$tools/user"
"$tools/user/$bin/python" -m pip --quiet install --no-index --find-links "$root/dist" inference-verify
"$tools/user/$bin/verify" --version
"$tools/user/$bin/verify" all -C "$root/fixtures/course" --no-progress --quiet
