#!/usr/bin/env python3
"""Speed and memory of `verify links`, beside lychee and beside the floor, in one run.

usage: benchmarks/links.py [--verify BIN] [--lychee BIN] [--floor BIN] [--course DIR] [--runs N]

Build first:  cargo build --profile quick
              cargo build --release --manifest-path benchmarks/links_floor/Cargo.toml --target-dir target/floor
lychee is looked for on PATH; without it its rows are left out, and that is said.

The synthetic corpus has 2,000 files, 100,000 anchor links, about 27 MB and 1,016 broken
links; the same seed gives the same bytes. `--course` names a real corpus; of it lychee
is given the Markdown alone, since it does not read notebooks.
"""
import argparse, os, random, shutil, statistics, subprocess, sys, tempfile, time

FILES, LINKS, BROKEN = 2000, 50, 1016
WORDS = "attention batch cache decode expert flash gradient head inference kernel latency memory 推理 显存 算子 token".split()


def synthetic(folder):
    rng = random.Random(20261130)
    broken = set(rng.sample(range(FILES * LINKS), BROKEN))
    for n in range(FILES):
        lines = [f"# Page {n}\n"]
        for k in range(LINKS):
            target = rng.randrange(FILES)
            section = LINKS + 7 if n * LINKS + k in broken else rng.randrange(LINKS)
            text = " ".join(rng.choice(WORDS) for _ in range(26))
            lines.append(f"\n## Section {k}\n\n{text}, see [section {section}](../{target % 40:02}/p{target}.md#section-{section}) and `code`.\n")
        os.makedirs(os.path.join(folder, f"{n % 40:02}"), exist_ok=True)
        with open(os.path.join(folder, f"{n % 40:02}", f"p{n}.md"), "w", encoding="utf-8") as file:
            file.write("".join(lines))


def once(command, cwd):
    """Wall seconds, CPU seconds, peak resident MiB."""
    with tempfile.TemporaryFile() as out:
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=cwd, stdout=out, stderr=subprocess.DEVNULL)
        _, _, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = 0
        return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measure(rows, cwd, runs):
    """Rows take turns, so that a busy minute of the machine falls on all of them."""
    results = {name: [] for name, _ in rows}
    for turn in range(runs + 1):
        for name, command in rows:
            result = once(command, cwd)
            if turn:
                results[name].append(result)
    print(f"  {'':34}{'wall':>9}{'CPU':>9}{'peak':>10}   (medians of {runs})")
    medians = {}
    for name, _ in rows:
        wall, cpu, peak = (statistics.median(column) for column in zip(*results[name]))
        medians[name] = (wall, cpu, peak)
        print(f"  {name:34}{wall:8.3f}s{cpu:8.3f}s{peak:7.0f} MiB")
    return medians


def verdict(text, value, limit, smaller=True):
    good = value <= limit if smaller else value >= limit
    print(f"  {text}: {value:.2f} ({'at most' if smaller else 'at least'} {limit}) {'ok' if good else 'MISSED'}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verify", default="target/quick/verify")
    parser.add_argument("--floor", default="target/floor/release/links_floor")
    parser.add_argument("--lychee", default=shutil.which("lychee"))
    parser.add_argument("--course")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    verify, floor = os.path.abspath(options.verify), os.path.abspath(options.floor)
    lychee = os.path.abspath(options.lychee) if options.lychee else None
    check = [verify, "links", "-C", ".", "--format", "json"]
    fragments = [lychee, "--offline", "--include-fragments", "--no-progress", "./**/*.md"]
    good = True
    with tempfile.TemporaryDirectory(prefix="verify-links-") as folder:
        synthetic(folder)
        size = sum(os.path.getsize(os.path.join(top, name)) for top, _, names in os.walk(folder) for name in names)
        print(f"synthetic: {FILES} files, {FILES * LINKS} anchor links, {size / 1e6:.1f} MB, {BROKEN} broken")
        found = subprocess.run(check, cwd=folder, capture_output=True, text=True).stdout.count('"links/missing-anchor"')
        print(f"  verify finds {found}")
        good &= found == BROKEN
        rows = [("verify links", check), ("floor: walk + read + parse", [floor, "."])]
        if lychee:
            rows.append(("lychee --include-fragments", fragments))
        medians = measure(rows, folder, options.runs)
        mine = medians["verify links"]
        good &= verdict("verify / floor", mine[0] / medians["floor: walk + read + parse"][0], 4)
        good &= verdict("peak MiB", mine[2], 200)
        if lychee:
            good &= verdict("lychee / verify", medians["lychee --include-fragments"][0] / mine[0], 10, smaller=False)
    if options.course:
        print(f"course: {options.course}")
        rows = [("verify links (notebooks too)", check), ("floor: walk + read + parse", [floor, "."])]
        if lychee:
            rows.append(("lychee, Markdown alone", fragments))
        medians = measure(rows, options.course, options.runs)
        if lychee:
            ratio = medians["verify links (notebooks too)"][0] / medians["lychee, Markdown alone"][0]
            good &= verdict("verify / lychee", ratio, 1)
    if not lychee:
        print("lychee is not installed: its rows were left out, nothing is claimed about it")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
