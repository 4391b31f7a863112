#!/usr/bin/env bash
# Tries the hooks with the real pre-commit in a scratch course: they pass what is right,
# and refuse what is not, also a link into a file that the commit deletes or renames.
#
#   packaging/try-hooks.sh WHEELS    with the wheel of this version, from a folder
#   packaging/try-hooks.sh           with the `verify` on PATH
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
suffix=-system
if [ $# -gt 0 ]; then
  suffix=
  export PIP_FIND_LINKS=$1
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export PRE_COMMIT_HOME="$scratch/cache"
export GIT_CONFIG_GLOBAL="$scratch/gitconfig"
git config --file "$GIT_CONFIG_GLOBAL" user.name Test
git config --file "$GIT_CONFIG_GLOBAL" user.email test@example.org
git config --file "$GIT_CONFIG_GLOBAL" init.defaultBranch main
git config --file "$GIT_CONFIG_GLOBAL" protocol.file.allow always

# The hooks as of this working tree, whatever is committed.
mkdir "$scratch/hooks"
cp "$root/.pre-commit-hooks.yaml" "$root/pyproject.toml" "$scratch/hooks/"
git -C "$scratch/hooks" init --quiet
git -C "$scratch/hooks" add --all
git -C "$scratch/hooks" commit --quiet --message hooks
revision=$(git -C "$scratch/hooks" rev-parse HEAD)

cp -R "$root/fixtures/course" "$scratch/course"
cd "$scratch/course"
cat > .pre-commit-config.yaml << YAML
repos:
  - repo: $scratch/hooks
    rev: $revision
    hooks:
      - id: verify-static$suffix
      - id: verify-links$suffix
      - id: verify-schema$suffix
      - id: verify-answers$suffix
YAML
git init --quiet
pre-commit install > "$scratch/log"
git add --all

# try WANTED-EXIT HOOK-THAT-SPEAKS DESCRIPTION
try() {
  local began code=0
  began=$(date +%s%N)
  git commit --quiet --message "$3" > "$scratch/log" 2>&1 || code=$?
  [ "$code" -gt 1 ] && code=1
  if [ "$code" != "$1" ] || { [ "$1" = 1 ] && ! grep -q "hook id: $2$suffix" "$scratch/log"; }; then
    echo "FAILED: $3: exit $code"
    cat "$scratch/log"
    exit 1
  fi
  echo "ok: $3 ($((($(date +%s%N) - began) / 1000000)) ms)"
  git reset --quiet --hard
}

try 0 none "the whole course is committed"

page=$(git ls-files 'docs/*.md' | head -n 1)
printf '\n[x](gone.md)\n' >> "$page"
git add --all
try 1 verify-links "a link into nothing is refused"

target=$(dirname "$page")/target.md
printf '# Target\n' > "$target"
printf '\n[x](target.md)\n' >> "$page"
git add --all
try 0 none "a link into a new page is taken"

git rm --quiet "$target"
try 1 verify-links "a commit that only deletes the target is refused"

git mv "$target" "$(dirname "$page")/renamed.md"
try 1 verify-links "a commit that only renames the target is refused"

printf 'x = (\n' > broken.py
git add --all
try 1 verify-static "a file that does not compile is refused"

printf '{"normalized_result": {}}\n' > benchmarks/results/bad.json
git add --all
try 1 verify-schema "a result that breaks the contract is refused"

notebook=$(git ls-files '02_PyTorch_Algorithms/*.ipynb' | head -n 1)
sed -i.bak 's/assert /assert not /' "$notebook"
rm -f "$notebook.bak"
git add --all
try 1 verify-answers "an answer that fails its test is refused"

printf 'plain text\n' > notes.txt
git add --all
try 0 none "a change that concerns no hook is taken"
