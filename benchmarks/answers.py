#!/usr/bin/env python3
"""How much faster `verify answers` is than one fresh interpreter per notebook in series.

usage: answers.py [--bin target/quick/verify] [--notebooks 33] [--seconds 1.8] [--rounds 1]

Generates a folder of notebooks that share one slow import (a stand-in for torch: it
computes for the given CPU seconds), then times both sides in this one run:

    series   what the former script did: join import, answer and test cells into a file,
             start `python FILE`, look at the exit status, next notebook
    verify   `verify answers FOLDER` with its defaults

and prints the ratio of the wall times. Both sides must judge every notebook as passed.
"""
import argparse, json, os, pathlib, subprocess, sys, tempfile, time

MODULE = '''"""Costs CPU when it is imported, as torch does."""
import time
_end = time.process_time() + {seconds}
while time.process_time() < _end:
    sum(range(1000))


def scale(x):
    return x
'''


def cell(kind, source):
    made = {"cell_type": kind, "metadata": {}, "source": source}
    return {**made, "execution_count": None, "outputs": []} if kind == "code" else made


def notebook(number):
    return {
        "nbformat": 4,
        "nbformat_minor": 4,
        "metadata": {"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}},
        "cells": [
            cell("markdown", f"# {number:02}"),
            cell("code", "import math\nimport heavy_stand_in as heavy\n"),
            cell("code", f"def f(x):\n    raise NotImplementedError\n"),
            cell("code", f"def test_f():\n    assert f(3) == {9 + number}\n    print('✅')\n\ntest_f()\n"),
            cell("markdown", "🛑 **STOP HERE** 🛑"),
            cell("markdown", "## 参考代码与解析"),
            cell("code", f"def f(x):\n    return heavy.scale(x) * x + {number}\n"),
        ],
    }


def series(folder, environment):
    """One fresh interpreter per notebook, one after the other."""
    passed = 0
    for path in sorted(folder.glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        script = "\n\n".join(cells[index]["source"] for index in (1, 6, 3))
        with tempfile.NamedTemporaryFile("w", suffix=".py", encoding="utf-8") as file:
            file.write(script)
            file.flush()
            done = subprocess.run([sys.executable, file.name], env=environment, capture_output=True, timeout=60)
        passed += done.returncode == 0
    return passed


def verify(binary, root, environment):
    command = [binary, "answers", "course", "--format", "json", "--no-progress", "--python", sys.executable]
    done = subprocess.run(command, cwd=root, env=environment, stdout=subprocess.PIPE)
    report = json.loads(done.stdout)
    return sum(item["status"] == "pass" for item in report["stages"][0]["items"])


def timed(work, *args):
    wall, cpu = time.monotonic(), os.times()
    passed = work(*args)
    after = os.times()
    used = after.children_user + after.children_system - cpu.children_user - cpu.children_system
    return passed, time.monotonic() - wall, used


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="target/quick/verify")
    parser.add_argument("--notebooks", type=int, default=33)
    parser.add_argument("--seconds", type=float, default=1.8)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    binary = os.path.abspath(options.bin)
    worst = None
    with tempfile.TemporaryDirectory(prefix="verify-bench-") as name:
        root = pathlib.Path(name)
        (root / "course").mkdir()
        (root / "lib").mkdir()
        (root / "lib" / "heavy_stand_in.py").write_text(MODULE.format(seconds=options.seconds))
        for number in range(options.notebooks):
            path = root / "course" / f"{number:02}.ipynb"
            path.write_text(json.dumps(notebook(number), ensure_ascii=False), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(root / "lib"), "PYTHONDONTWRITEBYTECODE": "1"}
        for _ in range(options.rounds):
            sides = {"series": timed(series, root / "course", environment)}
            sides["verify"] = timed(verify, binary, root, environment)
            for side, (passed, wall, cpu) in sides.items():
                print(f"{side:8} {passed}/{options.notebooks} passed  wall {wall:7.2f} s  cpu {cpu:7.2f} s")
                if passed != options.notebooks:
                    sys.exit(f"{side} did not pass every notebook: the times say nothing")
            ratio = sides["series"][1] / sides["verify"][1]
            print(f"ratio    {ratio:.1f}")
            worst = ratio if worst is None else min(worst, ratio)
    sys.exit(0 if worst >= 6 else 1)


main()
