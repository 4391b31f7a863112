#!/usr/bin/env python3
"""Compare `verify static` with the Python that runs this script, file by file.

usage: static_differential.py [--bin target/release/verify] [--mutants N] [--seed N] [--keep DIR]

Two corpora: the standard library as it is, and mutants of it (a token dropped, doubled,
swapped or replaced; a line dropped, doubled, indented or dedented). A *false alarm* is a
file that the interpreter compiles and `verify` refuses; a *miss* is the opposite. Misses
are listed by the interpreter's message. Also counted: how often the first line agrees.
Exit status 1 when there is a false alarm.
"""
import argparse, collections, json, pathlib, random, re, shutil, subprocess, sys, sysconfig, tempfile, warnings

TOKEN = re.compile(r"\w+|[^\w\s]|[ \t]+|\n")
REPLACEMENTS = ["(", ")", "[", "]", "{", "}", ":", ",", "=", "*", "**", "in", "return", "yield", "await", "lambda", "None",
                "else", "def f():", "global x", "nonlocal x", "break", "continue", "...", "1", "x", "'", '"', "\\", "%", "@"]


def mutate(text, pick):
    """One random change of one token or line."""
    if pick.random() < 0.3:
        lines = text.splitlines(True)
        if not lines:
            return text + pick.choice(REPLACEMENTS)
        at = pick.randrange(len(lines))
        kind = pick.randrange(4)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[at])
        elif kind == 2:
            lines[at] = pick.choice([" ", "    ", "\t"]) + lines[at]
        else:
            lines[at] = lines[at][pick.choice([1, 4]):] if lines[at][:1].isspace() else lines[at]
        return "".join(lines)
    spans = [m.span() for m in TOKEN.finditer(text) if m.group().strip()]
    if not spans:
        return text + pick.choice(REPLACEMENTS)
    start, end = pick.choice(spans)
    kind = pick.randrange(4)
    if kind == 0:
        return text[:start] + text[end:]
    if kind == 1:
        return text[:end] + " " + text[start:end] + text[end:]
    if kind == 2:
        return text[:start] + pick.choice(REPLACEMENTS) + text[end:]
    other = pick.choice(spans)
    return text[:start] + text[other[0]:other[1]] + text[end:]


def library():
    root = pathlib.Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(root.rglob("*.py")):
        if "site-packages" not in path.parts and "__pycache__" not in path.parts:
            yield path.relative_to(root), path.read_bytes()


def opinion(data):
    """None, or line and message of this interpreter's error."""
    try:
        compile(data, "<unit>", "exec", 0, True)
    except SyntaxError as error:
        return error.lineno, f"{type(error).__name__}: {error.msg}"
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
    return None


def verdicts(binary, folder):
    version = "%d.%d" % sys.version_info[:2]
    run = subprocess.run([binary, "-C", str(folder), "static", "--target-version", version, "--format", "json"],
                         stdout=subprocess.PIPE, check=False)
    report = json.loads(run.stdout)
    first = {}
    for finding in report["stages"][0]["findings"]:
        if finding["severity"] == "error":
            first.setdefault(finding["path"], (finding.get("line"), finding["message"]))
    return first


def compare(name, binary, folder, files, show):
    first = verdicts(binary, folder)
    same, both_fail, alarms, misses, lines = 0, 0, [], [], []
    for path in files:
        theirs, ours = opinion((folder / path).read_bytes()), first.get(path)
        if (theirs is None) == (ours is None):
            same += 1
            if ours is not None:
                both_fail += 1
                if theirs[0] != ours[0]:
                    lines.append((path, theirs, ours))
        elif theirs is None:
            alarms.append((path, ours))
        else:
            misses.append((path, theirs))
    print(f"{name}: {len(files)} files, {same} agree, {len(alarms)} false alarms, {len(misses)} misses; "
          f"first line agrees in {both_fail - len(lines)} of {both_fail}")
    for path, ours in alarms[:show]:
        print(f"  false alarm {path}: {ours}")
    classes = collections.Counter(re.sub(r"'[^']*'|\d+", "…", theirs[1]) for _, theirs in misses)
    for message, count in classes.most_common():
        print(f"  missed {count}: {message}")
    for path, theirs in misses[:show]:
        print(f"    {path}: {theirs}")
    kinds = collections.Counter((re.sub(r"'[^']*'|\d+", "…", t[1]), re.sub(r"`[^`]*`|\d+", "…", o[1])) for _, t, o in lines)
    for (theirs, ours), count in kinds.most_common(show):
        print(f"  other line {count}: {theirs!r} / {ours!r}")
    if show > 10:
        for path, theirs, ours in lines[:show]:
            print(f"    {path}: {theirs} / {ours}")
    return len(alarms)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="target/release/verify")
    parser.add_argument("--mutants", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=10)
    parser.add_argument("--keep", help="folder for the generated files, kept")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    scratch = pathlib.Path(options.keep or tempfile.mkdtemp(prefix="verify-differential-"))
    pick = random.Random(options.seed)
    whole, mutants = scratch / "library", scratch / "mutants"
    names, texts = [], []
    for path, data in library():
        target = whole / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        names.append(str(path))
        if len(data) < 60_000:
            try:
                texts.append(data.decode("utf-8"))
            except UnicodeDecodeError:
                pass
    mutants.mkdir(parents=True, exist_ok=True)
    made = []
    for number in range(options.mutants):
        name = f"m{number:06}.py"
        (mutants / name).write_bytes(mutate(pick.choice(texts), pick).encode("utf-8"))
        made.append(name)
    alarms = compare("standard library", options.bin, whole, names, options.show)
    alarms += compare("mutants", options.bin, mutants, made, options.show)
    if not options.keep:
        shutil.rmtree(scratch)
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
