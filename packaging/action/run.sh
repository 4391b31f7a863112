#!/usr/bin/env bash
# Runs verify with the reports that action.yml was asked for. Never fails by itself: the
# exit code is an output, so that the findings can be uploaded first.
set -uo pipefail

output() { echo "$1=$2" >> "$GITHUB_OUTPUT"; }

arguments=("$COMMAND")
# (All in capitals come from action.yml.)
# The one place where splitting at white space is meant.
# shellcheck disable=SC2153
read -r -a more <<< "${ARGUMENTS//$'\n'/ }"
arguments+=("${more[@]}")
[ -n "$BACKEND" ] && arguments+=(--backend "$BACKEND")
[ -n "$SARIF" ] && arguments+=(--output "sarif=$SARIF")
[ -n "$JUNIT" ] && arguments+=(--output "junit=$JUNIT")
[ -n "$JSON" ] && arguments+=(--output "json=$JSON")

# Annotations and the summary of the job come with the format; the log keeps them all.
[ "$SUMMARY" = true ] || unset GITHUB_STEP_SUMMARY
verify --version
annotations="${RUNNER_TEMP:-/tmp}/verify-annotations.txt"
verify "${arguments[@]}" --no-progress --output "github=$annotations"
code=$?
[ -f "$annotations" ] && cat "$annotations"

output exit-code "$code"
# A file of an earlier run says nothing about this one: verify writes at every end but a
# fault of its command line.
[ -n "$SARIF" ] && [ "$code" != 2 ] && [ -f "$SARIF" ] && output sarif "$PWD/$SARIF"
[ -n "$JSON" ] && [ -f "$JSON" ] && output report "$PWD/$JSON"
exit 0
