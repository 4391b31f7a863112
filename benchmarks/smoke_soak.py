#!/usr/bin/env python3
"""Start, measure and stop a real server many times, with kills at random moments.

    benchmarks/smoke_soak.py PROGRAM [--rounds 200] [--seed 1] [--in-one 12]

PROGRAM is a built `verify` whose `cpu` backend is installed. Every round runs
`verify smoke --backend cpu` on a small workload in a scratch course; in most rounds one
of `verify`, the server or the guardian gets SIGKILL, or `verify` gets SIGINT or SIGTERM,
at a random moment. After each round:

* no process of the round lives two seconds later (found by a mark in its environment);
* every JSON file of the results parses, and no temporary file is there;
* every result that was ever reported as written still is there, in place or in history/;
* a run that ended well says so, one that was hit says why or left nothing.

Besides, one `verify` process runs many starts in a row, and its memory and descriptors
are read at each of them. Exit code 1 when anything was found.
"""
import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MARK = "VERIFY_SOAK_ROUND"
HIT = ["nothing", "verify", "server", "guardian", "sigint", "sigterm"]


def marked(value: str) -> list[int]:
    """The living processes whose environment holds the mark of a round."""
    wanted = f"{MARK}={value}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            environ = Path(f"/proc/{entry}/environ").read_bytes()
            state = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if wanted in environ.split(b"\0") and state not in "ZX":
            found.append(int(entry))
    return found


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def course(folder: Path, projects: list[int]) -> None:
    (folder / "notebooks").mkdir(parents=True)
    (folder / "workload.jsonl").write_text(
        "".join(json.dumps({"id": f"p{n}", "prompt": f"Say the number {n}.", "max_tokens": 6}) + "\n" for n in range(3))
    )
    lines = []
    for project in projects:
        (folder / f"notebooks/{project}.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
        lines.append(
            f'[[project]]\nid = {project}\ntitle = "soak"\nnotebook = "notebooks/{project}.ipynb"\n'
            f'page = ""\nlevel = "P1"\nresult = "{project}.json"\nstrategy = "soak"\n'
            f'workload = "workload.jsonl"\nconcurrency = 2\nwarmup = 1\nmax_tokens = 6\n'
        )
    (folder / "verify.toml").write_text("\n".join(lines))


def start(program: str, folder: Path, temporary: Path, mark: str, projects: list[int]) -> subprocess.Popen:
    return subprocess.Popen(
        [program, "smoke", "--backend", "cpu", "--offline", "--format", "json", "--output", "json=report.json",
         "--project", ",".join(map(str, projects))],
        cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env={**os.environ, MARK: mark, "TMPDIR": str(temporary), "CI": "1"},
    )


def strike(child: subprocess.Popen, whom: str, mark: str) -> bool:
    """Sends the signal of the round; False when the one to be hit was not there."""
    if whom == "nothing":
        return True
    if whom in ("verify", "sigint", "sigterm"):
        number = {"verify": signal.SIGKILL, "sigint": signal.SIGINT, "sigterm": signal.SIGTERM}[whom]
        if child.poll() is not None:
            return False
        child.send_signal(number)
        return True
    for pid in marked(mark):
        line = command_line(pid)
        guardian = "__guard" in line
        if pid != child.pid and guardian == (whom == "guardian"):
            try:
                os.kill(pid, signal.SIGKILL)
                return True
            except ProcessLookupError:
                continue
    return False


class Soak:
    def __init__(self, program: str, folder: Path, temporary: Path, rng: random.Random):
        self.program, self.folder, self.temporary, self.rng = program, folder, temporary, rng
        self.faults: list[str] = []
        self.ended: collections.Counter = collections.Counter()
        self.written: set[str] = set()
        self.typical = 3.0
        self.slowest_cleanup = 0.0

    def round(self, number: int) -> None:
        mark = f"{os.getpid()}-{number}"
        # The first rounds show how long a run takes when nothing happens.
        whom = "nothing" if number < 3 else self.rng.choice(HIT)
        began = time.monotonic()
        child = start(self.program, self.folder, self.temporary, mark, [501])
        if whom != "nothing":
            time.sleep(self.rng.uniform(0, self.typical * 1.05))
        hit = strike(child, whom, mark)
        try:
            _, errors = child.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            self.fault(number, whom, "hangs")
            child.kill()
            child.communicate()
            errors = b""
        took = time.monotonic() - began
        self.check(number, whom, hit, child.returncode, mark, errors)
        if whom == "nothing":
            self.typical = 0.7 * self.typical + 0.3 * took if number else took

    def fault(self, number: int, whom: str, what: str) -> None:
        self.faults.append(f"round {number} ({whom}): {what}")
        print("FAULT", self.faults[-1], flush=True)

    def check(self, number: int, whom: str, hit: bool, code: int, mark: str, errors: bytes) -> None:
        began = time.monotonic()
        while (left := marked(mark)) and time.monotonic() - began < 2.0:
            time.sleep(0.02)
        self.slowest_cleanup = max(self.slowest_cleanup, time.monotonic() - began)
        if left:
            self.fault(number, whom, f"orphans: {[(pid, command_line(pid)[:80]) for pid in left]}")
            for pid in left:
                os.kill(pid, signal.SIGKILL)
        self.ended[(whom if hit else f"{whom}, too late", code)] += 1
        allowed = {
            "nothing": {0}, "verify": {0, -9}, "server": {0, 1}, "guardian": {0, 1},
            "sigint": {0, 130}, "sigterm": {0, 143},
        }[whom]
        # Before `verify` has taken over the signals, their default ends it.
        early = {"sigint": -2, "sigterm": -15}.get(whom)
        if code not in allowed and code != early:
            self.fault(number, whom, f"exit {code}: {errors.decode(errors='replace')[-300:]}")
        self.files(number, whom, code)

    def files(self, number: int, whom: str, code: int) -> None:
        results = self.folder / "benchmarks/results"
        seen = set()
        for path in results.rglob("*") if results.exists() else []:
            if path.is_dir() or path.suffix == ".log":
                continue
            if path.suffix != ".json":
                self.fault(number, whom, f"a strange file: {path.name}")
                continue
            try:
                document = json.loads(path.read_bytes())
            except ValueError:
                self.fault(number, whom, f"torn: {path.name}")
                continue
            if "normalized_result" in document:
                seen.add(document["run_id"])
        lost = self.written - seen
        if lost:
            self.fault(number, whom, f"lost results: {sorted(lost)}")
        if code == 0 and not seen - self.written:
            self.fault(number, whom, "ended well without a new result")
        self.written |= seen
        left = list(self.temporary.iterdir())
        if left:
            self.fault(number, whom, f"temporary files: {[path.name for path in left]}")
            for path in left:
                subprocess.run(["rm", "-rf", str(path)], check=False)


def in_one(program: str, folder: Path, temporary: Path, count: int) -> tuple[list[tuple[int, int]], int]:
    """Memory (KiB) and descriptors of one `verify` at each of its stops, and its exit code."""
    projects = list(range(601, 601 + count))
    course(folder, projects)
    child = start(program, folder, temporary, f"{os.getpid()}-one", projects)
    readings = []
    for line in child.stderr:
        if line.startswith(b"smoke: stopping"):
            status = Path(f"/proc/{child.pid}/status").read_text()
            memory = int(next(l for l in status.splitlines() if l.startswith("VmRSS:")).split()[1])
            readings.append((memory, len(os.listdir(f"/proc/{child.pid}/fd"))))
    return readings, child.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="a built verify")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--in-one", type=int, default=12, help="starts in a row inside one process")
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="verify-soak-") as name:
        base = Path(name)
        temporary = base / "tmp"
        temporary.mkdir()
        course(base / "course", [501])
        soak = Soak(program, base / "course", temporary, random.Random(options.seed))
        for number in range(options.rounds):
            soak.round(number)
            if (number + 1) % 20 == 0:
                print(f"{number + 1} rounds, {len(soak.written)} results, {len(soak.faults)} faults, "
                      f"{time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}", flush=True)
        print(f"\n{options.rounds} rounds in {time.monotonic() - began:.0f} s, seed {options.seed}")
        for (whom, code), count in sorted(soak.ended.items()):
            print(f"  {whom:22} exit {code:4}  {count:4}")
        print(f"results kept: {len(soak.written)}; slowest clean-up after the end of verify: {soak.slowest_cleanup:.2f} s")
        readings, code = in_one(program, base / "one", temporary, options.in_one)
        if readings:
            half = len(readings) // 2
            grown = max(memory for memory, _ in readings[half:]) - max(memory for memory, _ in readings[:half])
            more = max(fds for _, fds in readings[half:]) - max(fds for _, fds in readings[:half])
            print(f"{len(readings)} starts in one process (exit {code}): memory {readings[0][0]} to {readings[-1][0]} KiB, "
                  f"descriptors {readings[0][1]} to {readings[-1][1]}")
            if grown > 4096 or more > 0:
                soak.faults.append(f"growth in one process: {grown} KiB, {more} descriptors: {readings}")
        if code != 0 or len(readings) != options.in_one:
            soak.faults.append(f"the run of many starts ended with {code} after {len(readings)} stops")
        print(f"faults: {len(soak.faults)}")
        for fault in soak.faults:
            print("  ", fault)
        return 1 if soak.faults else 0


if __name__ == "__main__":
    sys.exit(main())
