#!/usr/bin/env python3
"""Kills migrations at random moments and looks for torn files and lost originals.

Each round migrates a folder into another, over an earlier result (--force), and sends
SIGKILL after a random time. Afterwards every original must be byte for byte what it
was, and every output must be whole: the earlier text, or a document that parses; the
earlier text must exist under its name or in history/.

usage: results_kill.py [--bin target/release/verify] [--rounds 200] [--files 40] [--seed 1]
"""
import argparse, json, os, pathlib, random, shutil, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="target/release/verify")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    rng = random.Random(a.seed)
    verify = os.path.abspath(a.bin)
    source = (ROOT / "fixtures/legacy-results/05_raw_repeats_with_runs.json").read_bytes()
    earlier = b'{"earlier": true}\n'
    faults, killed, written, names = [], 0, 0, [f"{number:03}.json" for number in range(a.files)]
    with tempfile.TemporaryDirectory(prefix="verify-kill-") as name:
        folder = pathlib.Path(name)
        (folder / "in").mkdir()
        for file in names:
            (folder / "in" / file).write_bytes(source)
        command = [verify, "normalize", *[f"in/{file}" for file in names], "--out-dir", "out", "--force"]
        shortest = float("inf")
        for round_ in range(a.rounds):
            shutil.rmtree(folder / "out", ignore_errors=True)
            (folder / "out").mkdir()
            for file in names:
                (folder / "out" / file).write_bytes(earlier)
            start = time.perf_counter()
            process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if round_ < 3:
                process.wait()
                shortest = min(shortest, time.perf_counter() - start)
            else:
                time.sleep(rng.uniform(0, shortest))
                killed += process.poll() is None
                process.kill()
                process.wait()
            kept = [path.read_bytes() for path in (folder / "out" / "history").glob("*")] if (folder / "out" / "history").exists() else []
            for file in names:
                if (folder / "in" / file).read_bytes() != source:
                    faults.append(f"round {round_}: the original {file} changed")
                try:
                    text = (folder / "out" / file).read_bytes()
                except OSError as error:
                    faults.append(f"round {round_}: {error}")
                    continue
                if text == earlier:
                    continue
                written += 1
                try:
                    assert json.loads(text)["normalized_result"]["metrics"]["samples"] == 14
                except Exception as error:  # noqa: BLE001 - any fault of the file is a finding
                    faults.append(f"round {round_}: {file} is torn: {error!r}")
            replaced = sum((folder / "out" / file).read_bytes() != earlier for file in names)
            if kept.count(earlier) < replaced:
                faults.append(f"round {round_}: {replaced} replaced, {kept.count(earlier)} kept in history/")
    for fault in faults[:20]:
        print(fault)
    print(f"{a.rounds} rounds of {a.files} migrations, {killed} killed on the way, {written} files written whole, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
