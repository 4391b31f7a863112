#!/usr/bin/env python3
"""How long after a save the verdict of `verify … --watch` is on the screen.

Works on a copy of a course; prints milliseconds from the rename of the saved file to the
last line of the report: median, slowest, and how many of the saves took over 200 ms.

    benchmarks/watch.py VERIFY COURSE [SAVES]
"""

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DEMAND_MS = 200


def wait_for(stream: int, text: bytes) -> float:
    """Reads until a text has come; gives the time."""
    seen = b""
    while text not in seen:
        piece = os.read(stream, 65536)
        if not piece:
            sys.exit("verify ended")
        seen += piece
    return time.perf_counter()


def measure(verify: str, stage: str, course: Path, file: Path, saves: int) -> list[float]:
    process = subprocess.Popen(
        [verify, stage, "--watch", "--quiet", "--no-progress"],
        cwd=course, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    out = process.stdout.fileno()
    verdict = f" — {stage}: ".encode()
    wait_for(out, verdict)
    took = []
    original = file.read_bytes()
    for number in range(saves):
        time.sleep(0.4)
        # As editors do it: a temporary file, renamed over the old one.
        beside = file.with_name(f".{file.name}.tmp")
        beside.write_bytes(original + b"\n" * (number % 2))
        began = time.perf_counter()
        os.replace(beside, file)
        took.append((wait_for(out, verdict) - began) * 1000)
    process.send_signal(signal.SIGINT)
    if process.wait(10) != 130:
        sys.exit(f"exit code {process.returncode} after Ctrl-C")
    return took


def main() -> None:
    verify, source = os.path.abspath(sys.argv[1]), Path(sys.argv[2])
    saves = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    with tempfile.TemporaryDirectory() as scratch:
        course = Path(scratch) / "course"
        shutil.copytree(source, course, symlinks=True)
        files = sum(len(names) for _, _, names in os.walk(course))
        print(f"{files} files, {saves} saves, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        for stage, pattern in (("static", "**/*.py"), ("static", "**/*.ipynb"), ("links", "**/*.md")):
            file = sorted(course.glob(pattern))[0]
            took = measure(verify, stage, course, file, saves)
            late = sum(ms > DEMAND_MS for ms in took)
            print(f"{stage:7} {pattern:11} median {statistics.median(took):6.1f} ms   "
                  f"slowest {max(took):6.1f} ms   over {DEMAND_MS} ms: {late} of {saves}")


if __name__ == "__main__":
    main()
