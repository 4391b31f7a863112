#!/usr/bin/env bash
# Runs every fuzz target for SECONDS, one after the other, from seeds out of the fixtures;
# says for each how many inputs ran, what was covered and what crashed. Exit code 1 when
# something crashed; the input is then in fuzz/artifacts.
#
#   fuzz/run.sh [SECONDS] [TARGET…]
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
seconds=${1:-900}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(notebook markdown json sse settings prometheus python)

# seeds TARGET NAME-PATTERN…: small fixtures of that kind.
seeds() {
  local into=fuzz/corpus/$1
  shift
  mkdir -p "$into"
  local pattern file
  for pattern in "$@"; do
    # By content, so that the same seed is one file whatever it was called.
    while IFS= read -r -d '' file; do
      cp "$file" "$into/$(sha1sum < "$file" | cut -c1-40)"
    done < <(find fixtures fuzz/seeds -type f -size -16k -name "$pattern" -print0)
  done
}
seeds notebook '*.ipynb'
seeds markdown '*.md'
seeds json '*.json' '*.jsonl'
seeds sse '*.sse'
seeds settings '*.toml'
seeds prometheus '*.prom'
seeds python '*.py'

# What nests deeply needs the stack that the program gives it.
ulimit -s 1048576 2> /dev/null || true
failed=0
printf '%-11s %10s %9s %8s %8s %s\n' target execs execs/s cover corpus crashes
for target in "${targets[@]}"; do
  log=$(mktemp)
  cargo +nightly fuzz run "$target" -- -max_total_time="$seconds" -max_len=4096 -timeout=20 \
    -rss_limit_mb=4096 -print_final_stats=1 -verbosity=1 > "$log" 2>&1
  code=$?
  execs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
  rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log" | tail -n 1)
  cover=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1 | cut -d' ' -f2)
  corpus=$(find "fuzz/corpus/$target" -type f | wc -l)
  crashes=$(find "fuzz/artifacts/$target" -type f 2> /dev/null | wc -l)
  printf '%-11s %10s %9s %8s %8s %s\n' "$target" "${execs:-?}" "${rate:-?}" "${cover:-?}" "$corpus" "$crashes"
  if [ "$code" != 0 ]; then
    failed=1
    tail -n 40 "$log"
  fi
  rm -f "$log"
done
exit "$failed"
