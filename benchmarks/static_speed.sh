#!/usr/bin/env bash
# Speed of `verify static` against `python -m compileall -j 1` over the standard library,
# both on the same two cores, in one run. Best of RUNS for each side; prints the ratio.
#
# usage: benchmarks/static_speed.sh [VERIFY] [PYTHON]      RUNS=3 CORES=0,1
set -euo pipefail
verify=$(realpath "${1:-target/release/verify}")
python=${2:-python3}
runs=${RUNS:-3}
cores=${CORES:-0,1}
pin() { if command -v taskset >/dev/null; then taskset -c "$cores" "$@"; else "$@"; fi; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" - "$scratch/library" <<'PY'
import pathlib, shutil, sys, sysconfig
root, target = pathlib.Path(sysconfig.get_paths()["stdlib"]), pathlib.Path(sys.argv[1])
for path in root.rglob("*.py"):
    inside = path.relative_to(root)
    if not {"site-packages", "__pycache__"} & set(inside.parts):
        (target / inside).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target / inside)
PY
files=$(find "$scratch/library" -name '*.py' | wc -l)
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')

# Wall seconds of a command, whatever its exit status: the library holds bad files on purpose.
seconds() { local start end; start=$(date +%s%N); "$@" >/dev/null 2>&1 || true; end=$(date +%s%N); echo $(((end - start) / 1000)); }
best() { sort -n | head -1; }

theirs=$(for _ in $(seq "$runs"); do
    find "$scratch/library" -name __pycache__ -exec rm -rf {} +
    seconds pin "$python" -m compileall -q -f -j 1 "$scratch/library"
done | best)
find "$scratch/library" -name __pycache__ -exec rm -rf {} +
ours=$(for _ in $(seq "$runs"); do
    seconds pin "$verify" -C "$scratch/library" static --target-version "$version" --format json
done | best)

awk -v files="$files" -v theirs="$theirs" -v ours="$ours" -v version="$version" 'BEGIN {
    printf "%d files of the standard library of Python %s, best of each side\n", files, version
    printf "python -m compileall -j 1: %7.3f s  %7.0f files/s\n", theirs / 1e6, files / (theirs / 1e6)
    printf "verify static:             %7.3f s  %7.0f files/s\n", ours / 1e6, files / (ours / 1e6)
    printf "ratio: %.1f\n", theirs / ours
}'
