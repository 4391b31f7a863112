#!/usr/bin/env bash
# Runs every fuzz target for SECONDS, one after the other, from seeds out of the fixtures;
# says for each how many inputs ran, what was covered and what crashed. Exit code 1 when
# something crashed; the input is then in fuzz/artifacts.
#
#   fuzz/run.sh [SECONDS] [TARGET…]
#
# What an earlier run found is gone on from: the corpus stays in fuzz/corpus, and every run
# adds a line to fuzz/corpus/runs.log. FUZZ_FRESH=1 begins with the seeds alone. Totals of
# all runs so far: fuzz/run.sh --totals. FUZZ_BUILD=no runs what was built before.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
all=(notebook markdown json sse settings prometheus python)
runs=fuzz/corpus/runs.log

# totals: one line for each target, over every run in the log.
totals() {
  [ -f "$runs" ] || { echo "no run so far"; return; }
  awk 'BEGIN { printf "%-11s %5s %8s %12s %8s %8s %s\n", "target", "runs", "seconds", "inputs", "cover", "corpus", "crashes" }
       { if (!($1 in runs)) order[++count] = $1
         runs[$1]++; seconds[$1] += $2; inputs[$1] += $3
         if ($4 > cover[$1]) cover[$1] = $4; corpus[$1] = $5; crashes[$1] = $6 }
       END { for (i = 1; i <= count; i++) { t = order[i]
             printf "%-11s %5d %8d %12d %8d %8d %d\n", t, runs[t], seconds[t], inputs[t], cover[t], corpus[t], crashes[t] } }' "$runs"
}
if [ "${1:-}" = --totals ]; then
  totals
  exit 0
fi

seconds=${1:-900}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=("${all[@]}")
for target in "${targets[@]}"; do
  [[ " ${all[*]} " == *" $target "* ]] || { echo "no target $target; there are: ${all[*]}" >&2; exit 2; }
done
[ -z "${FUZZ_FRESH:-}" ] || rm -rf fuzz/corpus

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
# Seeds are put in once; after that the corpus is richer than they are.
for target in "${targets[@]}"; do
  [ -z "$(find "fuzz/corpus/$target" -type f -print -quit 2> /dev/null)" ] || continue
  case $target in
    notebook) seeds notebook '*.ipynb' ;;
    markdown) seeds markdown '*.md' ;;
    json) seeds json '*.json' '*.jsonl' ;;
    sse) seeds sse '*.sse' ;;
    settings) seeds settings '*.toml' ;;
    prometheus) seeds prometheus '*.prom' ;;
    python) seeds python '*.py' ;;
  esac
done

folder=${CARGO_TARGET_DIR:-fuzz/target}/$(rustc +nightly -vV | sed -n 's/^host: //p')/release
if [ "${FUZZ_BUILD:-yes}" = yes ]; then
  # No sanitizer: the program has no unsafe code to speak of, and is twice as fast without.
  # Assertions and overflow checks are on (fuzz/Cargo.toml).
  cargo +nightly fuzz build --sanitizer none -O -a || exit 2
fi

# What nests deeply needs the stack that the program gives it.
ulimit -s 1048576 2> /dev/null || true
failed=0
printf '%-11s %8s %10s %9s %8s %8s %s\n' target seconds inputs inputs/s cover corpus crashes
for target in "${targets[@]}"; do
  log=$(mktemp)
  mkdir -p "fuzz/artifacts/$target"
  "$folder/$target" "fuzz/corpus/$target" -artifact_prefix="fuzz/artifacts/$target/" -max_total_time="$seconds" \
    -max_len=4096 -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 -verbosity=1 > "$log" 2>&1
  code=$?
  inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
  rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log" | tail -n 1)
  spent=$(sed -n 's/^Done [0-9]* runs in \([0-9]*\) second.*/\1/p' "$log" | tail -n 1)
  cover=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1 | cut -d' ' -f2)
  corpus=$(find "fuzz/corpus/$target" -type f | wc -l)
  crashes=$(find "fuzz/artifacts/$target" -type f 2> /dev/null | wc -l)
  printf '%-11s %8s %10s %9s %8s %8s %s\n' "$target" "${spent:-?}" "${inputs:-?}" "${rate:-?}" "${cover:-?}" "$corpus" "$crashes"
  echo "$target ${spent:-0} ${inputs:-0} ${cover:-0} $corpus $crashes" >> "$runs"
  if [ "$code" != 0 ]; then
    failed=1
    tail -n 40 "$log"
  fi
  rm -f "$log"
done
exit "$failed"
