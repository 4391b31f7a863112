#!/usr/bin/env python3
"""Puts `verify` under load and faults, and checks what it promises then.

    benchmarks/load_and_faults.py [--bin target/release/verify] [--only files,kill] [--list]
                                  [--files 20000] [--notebooks 2000] [--results 10000]
                                  [--findings 200000] [--output-mb 1024] [--kills 200] [--seed 1]

Prints one row for each run: what was done, seconds, peak memory, exit code, verdict. The
peak is that of the largest process of the run, and never below that of this script (about
20 MB), from which every run begins. What is promised is checked here, not by eye:

* an exit code that says what was the case, and on a fault a message that names it;
* never a panic, never a signal of our own making, no hang;
* nothing lost: what was there before is there afterwards, byte for byte, under its name or
  in history/, and every JSON file parses;
* nothing left: no process of a run lives two seconds after it, no temporary file stays;
* memory and scratch space stay below the bounds that each case states.

Needs Linux; `disk`, `readonly` and `noproc` need root, `clock` and
`generators` need libfaketime. A case
that cannot be shown here says so and is counted apart. Exit code 1: a promise was broken.
"""
import argparse
import collections
import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARK = "VERIFY_FAULTS_RUN"
FAKETIME = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
]
# A message that tells of a fault of the program instead of one of its world.
PANIC = re.compile(rb"panicked at|RUST_BACKTRACE|stack overflow|internal error|Traceback")

SERVER = r'''
"""A server as small as it gets: two tokens for every question; --flood MB writes to its log."""
import json, os, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def option(name, default):
    return type(default)(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else default


DELAY, GAP = option("--ttft-ms", 5) / 1000, option("--itl-ms", 2) / 1000
TOKENS = option("--tokens", 2)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, code, value):
        body = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/health":
            return self.reply(200, {"status": "ok"})
        if self.path == "/v1/models":
            return self.reply(200, {"object": "list", "data": [{"id": "tiny", "object": "model"}]})
        self.reply(404, {"error": {"message": "not found", "code": 404}})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        count = min(TOKENS, int(body.get("max_tokens") or 2))
        usage = {"prompt_tokens": 3, "completion_tokens": count, "total_tokens": 3 + count}
        base = {"id": "c", "object": "chat.completion.chunk", "model": "tiny"}
        if not body.get("stream"):
            message = {"role": "assistant", "content": "ok " * count}
            return self.reply(200, {**base, "object": "chat.completion", "usage": usage,
                                    "choices": [{"index": 0, "finish_reason": "stop", "text": "ok", "message": message}]})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()

        def event(value):
            text = value if isinstance(value, str) else json.dumps(value)
            self.wfile.write(f"data: {text}\n\n".encode())
            self.wfile.flush()

        for number in range(count):
            time.sleep(GAP if number else DELAY)
            event({**base, "choices": [{"index": 0, "delta": {"content": "ok "}, "text": "ok ", "finish_reason": None}]})
        event({**base, "choices": [{"index": 0, "delta": {}, "text": "", "finish_reason": "stop"}]})
        event({**base, "choices": [], "usage": usage})
        event("[DONE]")


def flood(megabytes):
    line = b"x" * 1023 + b"\n"
    for _ in range(megabytes):
        os.write(2, line * 1024)


if "--flood" in sys.argv:
    flood(option("--flood", 1))
server = ThreadingHTTPServer(("127.0.0.1", option("--port", 0)), Handler)
server.daemon_threads = True
if "--port-file" in sys.argv:
    path = option("--port-file", "")
    with open(path + ".new", "w") as file:
        file.write(str(server.server_address[1]))
    os.replace(path + ".new", path)
server.serve_forever()
'''


# ---------------------------------------------------------------- one run

class Run:
    """What one run of the program left."""

    def __init__(self, seconds, peak_mb, code, out, err, hung):
        self.seconds, self.peak_mb, self.code, self.hung = seconds, peak_mb, code, hung
        self.out, self.err = out, err

    @property
    def said(self):
        return self.out + self.err


def living(mark):
    """Processes, zombies aside, whose environment holds the mark of a run."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            environment = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
            state = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if wanted in environment and state not in "ZX":
            found.append(int(entry))
    return found


def runs_still(child):
    """Whether a child has not ended; it stays there to be waited for."""
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


class Bench:
    """The bench on which runs are made: options, scratch folders, rows, broken promises."""

    def __init__(self, options):
        self.options, self.rows, self.broken, self.unseen = options, [], [], []
        self.verify = os.path.abspath(options.bin)
        self.count = 0

    @contextlib.contextmanager
    def folder(self):
        with tempfile.TemporaryDirectory(prefix="verify-faults-", dir=self.options.scratch) as name:
            yield Path(name)

    def start(self, args, cwd, env=None, before=(), **more):
        self.count += 1
        mark = f"{os.getpid()}-{self.count}"
        environment = {**os.environ, "CI": "1", "VERIFY_LANG": "en", **(env or {}), MARK: mark}
        environment = {name: value for name, value in environment.items() if value is not None}
        out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        child = subprocess.Popen([*before, self.verify, *map(str, args)], cwd=cwd, env=environment,
                                 stdin=subprocess.DEVNULL, stdout=out, stderr=err, **more)
        child.files, child.mark, child.began = (out, err), mark, time.monotonic()
        return child

    def finish(self, child, limit=300):
        """Waits for a run; what it left besides is a broken promise of whoever asks."""
        timer = threading.Timer(limit, os.kill, (child.pid, signal.SIGKILL))
        timer.start()
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - child.began
        hung = not timer.is_alive()
        timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in child.files:
            file.seek(0)
            texts.append(file.read())
            file.close()
        return Run(seconds, usage.ru_maxrss / 1024, child.returncode, *texts, hung)

    def run(self, args, cwd, limit=300, **how):
        child = self.start(args, cwd, **how)
        done = self.finish(child, limit)
        done.left = self.left_over(child.mark)
        return done

    @staticmethod
    def left_over(mark):
        end = time.monotonic() + 2
        while (left := living(mark)) and time.monotonic() < end:
            time.sleep(0.02)
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        return left

    def row(self, case, what, done, faults, note=""):
        """Adds the row of a run: `faults` are the promises it broke."""
        faults = list(faults)
        if done.hung:
            faults.append("it hangs")
        if PANIC.search(done.said):
            faults.append("a fault of the program itself: " + tail(done.said))
        if getattr(done, "left", None):
            faults.append(f"{len(done.left)} processes left")
        self.say(case, what, f"{done.seconds:.2f}", f"{done.peak_mb:.0f}", done.code, faults, note)

    def say(self, case, what, seconds, peak, code, faults, note=""):
        verdict = "BROKEN" if faults else "kept"
        print(f"{case:<10} {what:<58} {seconds:>8} {peak:>7} {code:>5}  {verdict}{'  ' + note if note else ''}", flush=True)
        for fault in faults:
            print(f"{'':<10}   ! {fault}", flush=True)
        self.rows.append(case)
        self.broken.extend(f"{case}: {what}: {fault}" for fault in faults)

    def not_here(self, case, why):
        print(f"{case:<10} not shown here: {why}", flush=True)
        self.unseen.append(case)


def tail(text, count=300):
    return text[-count:].decode(errors="replace").replace("\n", " | ")


def expect(done, code, *words, peak_mb=None):
    """The promises of one run: its exit code, words of its message, a bound of memory."""
    codes = code if isinstance(code, tuple) else (code,)
    faults = []
    if done.code not in codes:
        faults.append(f"exit code {done.code}, promised {' or '.join(map(str, codes))}: {tail(done.said)}")
    text = done.said.decode(errors="replace")
    faults.extend(f"the message does not say `{word}`: {tail(done.said)}" for word in words if word not in text)
    if peak_mb and done.peak_mb > peak_mb:
        faults.append(f"{done.peak_mb:.0f} MB, promised at most {peak_mb}")
    return faults


def temporary(folder):
    """Temporary files of ours below a folder."""
    return [str(path) for path in Path(folder).rglob(".verify-*.tmp")]


def torn(folder):
    """JSON files below a folder that do not parse."""
    found = []
    for path in Path(folder).rglob("*.json"):
        try:
            json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            found.append(f"{path.name} is torn: {error}")
    return found


def snapshot(folder):
    """Every file below a folder with the digest of its bytes."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file() and not path.is_symlink():
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def changed(before, folder, but=()):
    """What of a snapshot is no longer as it was, names that may change aside."""
    now = snapshot(folder)
    kept = set(now.values())
    return [f"{name} is lost" for name, digest in before.items()
            if now.get(name) != digest and not (name in but and digest in kept)]


# ---------------------------------------------------------------- what is checked

def notebook(number, answer="return x + {number}"):
    def cell(kind, source):
        made = {"cell_type": kind, "metadata": {}, "source": source}
        return {**made, "execution_count": None, "outputs": []} if kind == "code" else made

    answer = answer.format(number=number)
    return json.dumps({
        "nbformat": 4, "nbformat_minor": 4,
        "metadata": {"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}},
        "cells": [
            cell("markdown", f"# Notebook {number}\n\n[next](./{number:05}.ipynb#notebook-{number})"),
            cell("code", "import math\n"),
            cell("code", "def f(x):\n    raise NotImplementedError\n"),
            cell("code", f"def test_f():\n    assert f(3) == {3 + number}\n\ntest_f()\n"),
            cell("markdown", "🛑 **STOP HERE** 🛑"),
            cell("markdown", "## 参考代码与解析"),
            cell("code", f"def f(x):\n    {answer}\n"),
        ],
    }, ensure_ascii=False)


def example_course(folder):
    """The example course of the repository, writable, with a backend that is a fake server."""
    shutil.copytree(ROOT / "fixtures/course", folder, dirs_exist_ok=True)
    (folder / "server.py").write_text(SERVER)
    spec = {
        "backend": {"command": ["python3", "server.py", "--port", "{port}"], "served_model": "tiny",
                    "ready_timeout_s": 30, "stop_grace_s": 2},
        "workload": "workload.jsonl", "concurrency": 2, "warmup": 1, "max_tokens": 4, "stream": True,
        "result": "benchmarks/results/66_fake.json",
    }
    (folder / "smoke.json").write_text(json.dumps(spec))
    prompts = [json.dumps({"id": f"p{n}", "prompt": f"Say {n}.", "max_tokens": 4}) + "\n" for n in range(6)]
    (folder / "workload.jsonl").write_text("".join(prompts))
    return folder


@contextlib.contextmanager
def fake_server(folder, *options):
    """A running fake server; its address."""
    (folder / "server.py").write_text(SERVER)
    port_file = folder / "port"
    port_file.unlink(missing_ok=True)
    child = subprocess.Popen([sys.executable, "server.py", "--port-file", str(port_file), *options], cwd=folder,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 20
        while not port_file.exists() and time.monotonic() < end:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port_file.read_text()}"
    finally:
        child.kill()
        child.wait()


def bench_args(url, count=8, *more):
    return ["bench", "--base-url", url, "--model", "tiny", "-n", count, "-c", 2, "--max-tokens", 2, "--no-self-check", *more]


# ---------------------------------------------------------------- load

def case_files(bench):
    """A repository of many files: Markdown with links, Python, JSON."""
    count = bench.options.files
    with bench.folder() as folder:
        (folder / "verify.toml").write_text("")
        for number in range(count):
            place = folder / f"part-{number % 100:02}"
            place.mkdir(exist_ok=True)
            kind = number % 4
            if kind < 2:
                other = (number + 100) % count
                other -= (other % 4) // 2 * 2
                text = f"# Page {number}\n\n[other](../part-{other % 100:02}/{other:05}.md#page-{other})\n[self](#page-{number})\n"
                (place / f"{number:05}.md").write_text(text)
            elif kind == 2:
                (place / f"{number:05}.py").write_text(f"def f{number}(x):\n    return x + {number}\n")
            else:
                (place / f"{number:05}.json").write_text("{}")
        done = bench.run(["links", "--format", "json"], folder)
        faults = expect(done, 0, peak_mb=512)
        if not faults:
            summary = json.loads(done.out)["stages"][0]["summary"]
            links = next((summary[name] for name in ("links", "checked") if name in summary), 0)
            if links < count // 2 * 2:
                faults.append(f"only {links} links were checked: {summary}")
        bench.row("files", f"links, {count} files", done, faults)
        done = bench.run(["static", "--format", "json"], folder)
        bench.row("files", f"static, {count} files", done, expect(done, 0, peak_mb=512))


def case_notebooks(bench):
    """Many notebooks, all of them run."""
    count = bench.options.notebooks
    with bench.folder() as folder:
        (folder / "notebooks").mkdir()
        (folder / "verify.toml").write_text('[course]\nnotebooks = ["notebooks"]\n')
        for number in range(count):
            (folder / f"notebooks/{number:05}.ipynb").write_text(notebook(number))
        before = snapshot(folder)
        for command in ("static", "links", "answers"):
            done = bench.run([command, "--format", "json"], folder, limit=1800)
            faults = expect(done, 0, peak_mb=512) + changed(before, folder)
            if command == "answers" and not faults:
                passed = len([item for item in json.loads(done.out)["stages"][0]["items"] if item["status"] == "pass"])
                if passed != count:
                    faults.append(f"{passed} of {count} notebooks passed")
            bench.row("notebooks", f"{command}, {count} notebooks", done, faults)


def case_results(bench):
    """Many result files."""
    count = bench.options.results
    source = (ROOT / "fixtures/course/benchmarks/results/published/66_reference_c1.json").read_bytes()
    with bench.folder() as folder:
        (folder / "verify.toml").write_text("")
        results = folder / "benchmarks/results"
        results.mkdir(parents=True)
        for number in range(count):
            (results / f"{number:06}.json").write_bytes(source)
        for command in (["schema"], ["conclude", "benchmarks/results"]):
            done = bench.run([*command, "--format", "json"], folder)
            faults = expect(done, (0, 1), peak_mb=512)
            items = len(json.loads(done.out)["stages"][0]["items"]) if not faults else count
            if items != count:
                faults.append(f"{items} of {count} results were judged")
            bench.row("results", f"{command[0]}, {count} results", done, faults)


def case_findings(bench):
    """Very many findings: every link is broken."""
    count = bench.options.findings
    with bench.folder() as folder:
        (folder / "verify.toml").write_text("")
        pages = max(1, count // 100)
        for number in range(pages):
            links = "".join(f"[link {at}](./missing-{number}-{at}.md)\n" for at in range(100))
            (folder / f"{number:06}.md").write_text(f"# Page\n\n{links}")
        for form in ("human", "json", "sarif", "junit", "github"):
            done = bench.run(["links", "--format", form], folder)
            faults = expect(done, 1, peak_mb=300 + count // 300)
            bench.row("findings", f"links --format {form}, {pages * 100} findings", done, faults,
                      f"{len(done.out) / 1e6:.0f} MB of report")


def spread(folder):
    """Bytes of everything below a folder."""
    total = 0
    for path in Path(folder).rglob("*"):
        with contextlib.suppress(OSError):
            total += path.lstat().st_blocks * 512
    return total


class Watching(threading.Thread):
    """The most that a folder held while something ran."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder, self.most, self.ended = folder, 0, threading.Event()

    def run(self):
        while not self.ended.wait(0.2):
            self.most = max(self.most, spread(self.folder))

    def stop(self):
        self.ended.set()
        self.join()
        return self.most / 1e6


def case_output(bench):
    """A child that prints very much: a notebook, and a server into its log."""
    megabytes = bench.options.output_mb
    with bench.folder() as folder:
        (folder / "notebooks").mkdir()
        (folder / "tmp").mkdir()
        (folder / "verify.toml").write_text('[course]\nnotebooks = ["notebooks"]\n[answers]\ntimeout_s = 240.0\n')
        printing = f"[print('x' * 1048575) for _ in range({megabytes})]\n    return x + 1"
        (folder / "notebooks/00001.ipynb").write_text(notebook(1, printing))
        watching = Watching(folder)
        watching.start()
        done = bench.run(["answers", "--format", "json"], folder, env={"TMPDIR": str(folder / "tmp")})
        most = watching.stop()
        faults = expect(done, 0, peak_mb=300)
        if most > 200:
            faults.append(f"{most:.0f} MB of scratch, promised at most 200")
        if len(done.out) > 1e6:
            faults.append(f"a report of {len(done.out)} bytes")
        bench.row("output", f"answers, a notebook that prints {megabytes} MB", done, faults, f"{most:.0f} MB scratch")
    with bench.folder() as folder:
        example_course(folder)
        (folder / "tmp").mkdir()
        spec = json.loads((folder / "smoke.json").read_text())
        spec["backend"]["command"] += ["--flood", str(megabytes)]
        spec["backend"]["ready_timeout_s"] = 240
        (folder / "smoke.json").write_text(json.dumps(spec))
        watching = Watching(folder)
        watching.start()
        done = bench.run(["smoke", "--config", "smoke.json", "--format", "json"], folder, env={"TMPDIR": str(folder / "tmp")})
        most = watching.stop()
        faults = expect(done, 0, peak_mb=300) + torn(folder / "benchmarks")
        if most > 200:
            faults.append(f"{most:.0f} MB of scratch, promised at most 200")
        bench.row("output", f"smoke, a server that prints {megabytes} MB", done, faults, f"{most:.0f} MB scratch")


# ---------------------------------------------------------------- faults of the world

@contextlib.contextmanager
def small_disk(folder, kib):
    """A disk of its own with so many KiB of room."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "none", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder):
    """Leaves no room at all."""
    with contextlib.suppress(OSError), open(folder / "filler", "wb") as file:
        for size in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)
                    file.flush()


def can_mount():
    with tempfile.TemporaryDirectory() as name:
        try:
            with small_disk(Path(name) / "disk", 64):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False


def case_disk(bench):
    """No room on the disk at the moment of writing."""
    if not can_mount():
        return bench.not_here("disk", "mounting needs root")
    legacy = (ROOT / "fixtures/legacy-results/05_raw_repeats_with_runs.json").read_bytes()

    def one(what, args, words, codes=(1, 2), prepare=lambda folder: None):
        with bench.folder() as folder:
            example_course(folder)
            results = folder / "benchmarks/results"
            kept = {path.name: path.read_bytes() for path in results.rglob("*.json")}
            shutil.rmtree(results)
            with small_disk(results, 256):
                earlier = results / "66_fake.json"
                earlier.write_text('{"earlier": true}\n')
                for name, text in kept.items():
                    (results / name).write_bytes(text)
                prepare(folder)
                fill(results)
                before = {path.name: path.read_bytes() for path in results.rglob("*.json")}
                done = bench.run(args(folder), folder)
                faults = expect(done, codes, *words)
                now = {path.name: path.read_bytes() for path in results.rglob("*.json")}
                faults += [f"{name} is lost or changed" for name, text in before.items() if now.get(name) != text]
                faults += [f"{name} came although there was no room" for name in now if name not in before]
                faults += [f"{path} is left" for path in temporary(folder)]
                bench.row("disk", what, done, faults)

    full = "No space left"
    one("smoke writes its result", lambda f: ["smoke", "--config", "smoke.json"], ["66_fake.json", full])
    one("answers writes its report", lambda f: ["answers", "-o", "json=benchmarks/results/report.json"], ["report.json", full])
    one("links writes its report", lambda f: ["links", "-o", "sarif=benchmarks/results/report.sarif"], ["report.sarif", full])
    one("normalize writes a result", lambda f: ["normalize", "old.json", "--out-dir", "benchmarks/results"],
        ["old.json", full], prepare=lambda f: (f / "old.json").write_bytes(legacy))
    one("normalize --force over an earlier result",
        lambda f: ["normalize", "66_fake.json", "--out-dir", "benchmarks/results", "--force"],
        ["66_fake.json", full], prepare=lambda f: (f / "66_fake.json").write_bytes(legacy))
    with bench.folder() as place, fake_server(place) as url:
        one("bench writes its report", lambda f: bench_args(url, 8, "-o", "json=benchmarks/results/bench.json"), ["bench.json", full])
        one("bench writes what happened in each request",
            lambda f: bench_args(url, 8, "--save-requests", "benchmarks/results/requests.jsonl"), ["requests.jsonl", full])
    # A scratch folder without room: notebooks and servers need one.
    with bench.folder() as folder:
        example_course(folder)
        with small_disk(folder / "scratch", 64):
            fill(folder / "scratch")
            for what, args in (("answers", ["answers"]), ("smoke", ["smoke", "--config", "smoke.json"])):
                before = snapshot(folder / "benchmarks")
                done = bench.run(args, folder, env={"TMPDIR": str(folder / "scratch")})
                faults = changed(before, folder / "benchmarks") + torn(folder / "benchmarks")
                if done.code != 0:
                    faults += expect(done, (1, 2), full)
                bench.row("disk", f"{what} with a full scratch folder", done, faults)


def case_readonly(bench):
    """A tree that cannot be written."""
    if not can_mount():
        return bench.not_here("readonly", "mounting needs root")
    with bench.folder() as folder, fake_server(folder) as url:
        course = folder / "course"
        example_course(course)
        legacy = (ROOT / "fixtures/legacy-results/05_raw_repeats_with_runs.json").read_bytes()
        (course / "old.json").write_bytes(legacy)
        before = snapshot(course)
        subprocess.run(["mount", "--bind", str(course), str(course)], check=True)
        try:
            subprocess.run(["mount", "-o", "remount,bind,ro", str(course)], check=True)
            reading = [("static", 0), ("answers", 0), ("links", 0), ("schema", 0)]
            for command, code in reading:
                done = bench.run([command, "-o", f"json={folder}/{command}.json"], course)
                bench.row("readonly", f"{command}, its report elsewhere", done, expect(done, code) + torn(folder))
            said = "Read-only file system"
            writing = [
                ("smoke", ["smoke", "--config", "smoke.json"], (1, 2), [said, "66_fake.json"]),
                ("normalize", ["normalize", "old.json"], (1, 2), [said, "old.json"]),
                ("links --fix", ["links", "--fix"], (0, 1, 2), []),
                ("links, its report here", ["links", "-o", "json=report.json"], 2, [said, "report.json"]),
                ("init", ["init", "--force"], (1, 2), [said, "verify.toml"]),
                ("bench, its requests here", bench_args(url, 4, "--save-requests", "r.jsonl"), (1, 2), [said, "r.jsonl"]),
                ("bench, nothing to write", bench_args(url, 4), 0, []),
            ]
            for what, args, code, words in writing:
                done = bench.run(args, course)
                bench.row("readonly", what, done, expect(done, code, *words))
        finally:
            subprocess.run(["umount", "-l", str(course)], check=True)
        if changed(before, course):
            bench.say("readonly", "afterwards", "", "", "", changed(before, course))


def case_noproc(bench):
    """No /proc, as in some containers."""
    without = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$0" "$@"']
    if subprocess.run([*without, "true"], capture_output=True).returncode:
        return bench.not_here("noproc", "a mount namespace needs root")
    with bench.folder() as folder, fake_server(folder) as url:
        course = folder / "course"
        example_course(course)
        before = snapshot(course)
        runs = [("static", ["static"], 0, []), ("links", ["links"], 0, []), ("schema", ["schema"], 0, []),
                ("answers", ["answers"], (0, 1, 2), []),
                ("normalize", ["normalize", "benchmarks/legacy/66_early_c1.json", "--out-dir", "migrated"], (0, 1), []),
                ("bench", bench_args(url, 8, "-o", f"json={folder}/bench.json"), 0, []),
                ("smoke", ["smoke", "--config", "smoke.json"], (0, 1, 2), [])]
        for what, args, code, words in runs:
            done = bench.run(args, course, before=without)
            faults = expect(done, code, *words) + torn(folder) + changed(before, course) + temporary(folder)
            # What starts processes must be able to watch them; it says what it lacks, and what to do.
            if what in ("smoke", "answers") and done.code:
                faults += expect(done, (1, 2), "/proc is not mounted", "mount -t proc")
            bench.row("noproc", what, done, faults)


def case_nopython(bench):
    """No Python interpreter on PATH: what needs none works, what needs one says so."""
    with bench.folder() as folder:
        course = folder / "course"
        example_course(course)
        (folder / "bin").mkdir()
        env = {"PATH": str(folder / "bin"), "VIRTUAL_ENV": None, "CONDA_PREFIX": None, "PYENV_ROOT": None}
        runs = [(["static"], 0, []), (["links"], 0, []), (["schema"], 0, []), (["answers"], (1, 2), ["Python"]),
                (["smoke", "--config", "smoke.json"], (1, 2), ["python3"]), (["all", "--only", "static,links,schema"], 0, [])]
        for args, code, words in runs:
            done = bench.run(args, course, env=env)
            bench.row("nopython", " ".join(args), done, expect(done, code, *words))


def case_nohome(bench):
    """No home folder, and one that cannot be written."""
    with bench.folder() as folder, fake_server(folder) as url:
        course = folder / "course"
        example_course(course)
        for home in (None, "/nonexistent/home"):
            env = {"HOME": home, "XDG_CACHE_HOME": None, "XDG_CONFIG_HOME": None, "XDG_DATA_HOME": None}
            runs = [(["static"], 0), (["links"], 0), (["schema"], 0), (["answers"], 0),
                    (["smoke", "--config", "smoke.json"], 0), (bench_args(url, 4), 0), (["settings"], 0),
                    (["backend", "list"], 0), (["smoke", "--backend", "cpu", "--offline", "--project", "66"], (0, 1, 2))]
            for args, code in runs:
                done = bench.run(args, course, env=env)
                bench.row("nohome", f"{' '.join(map(str, args[:3]))}, HOME {home or 'not set'}"[:58], done, expect(done, code))


def case_clock(bench):
    """The wall clock jumps an hour back and forth while a load runs: no figure moves."""
    library = next((path for path in [bench.options.faketime, *FAKETIME] if path and os.path.exists(path)), None)
    if not library:
        return bench.not_here("clock", "libfaketime is not installed")
    with bench.folder() as folder, fake_server(folder, "--ttft-ms", "50", "--itl-ms", "20", "--tokens", "10") as url:
        course = folder / "course"
        example_course(course)
        stamp = folder / "offset"
        stamp.write_text("+0")
        env = {"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": str(stamp), "FAKETIME_NO_CACHE": "1",
               "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
        ended = threading.Event()

        def jump():
            for number in range(100_000):
                if ended.wait(0.1):
                    return
                replacement = folder / "offset.new"
                replacement.write_text(("+3600", "-3600", "+86400", "+0")[number % 4])
                replacement.replace(stamp)

        for jumping in (False, True):
            args = ["bench", "--base-url", url, "--model", "tiny", "-n", 24, "-c", 2, "--max-tokens", 10, "--no-self-check", "--format", "json"]
            thread = threading.Thread(target=jump)
            ended.clear()
            if jumping:
                thread.start()
            done = bench.run(args, course, env=env)
            ended.set()
            if jumping:
                thread.join()
            faults = expect(done, 0)
            note = ""
            if not faults:
                figures = json.loads(done.out)["bench"]
                # 50 ms, nine gaps of 20 ms; sleeping is late on a busy machine, never early.
                bounds = {"ttft_p50_ms": (49, 120), "tpot_p50_ms": (19, 60), "e2e_p50_ms": (229, 700), "duration_s": (2.7, 9)}
                for name, (low, high) in bounds.items():
                    if not low <= figures[name] <= high:
                        faults.append(f"{name} = {figures[name]}, true: {low} to {high}")
                note = f"TTFT {figures['ttft_p50_ms']:.1f} ms, TPOT {figures['tpot_p50_ms']:.1f} ms, {figures['duration_s']:.2f} s"
            bench.row("clock", f"bench, the wall clock {'jumps by hours' if jumping else 'is steady'}", done, faults, note)
        ended.clear()
        # The clock of the server is not in question.
        spec = json.loads((course / "smoke.json").read_text())
        spec["backend"]["command"] = ["env", "-u", "LD_PRELOAD", *spec["backend"]["command"]]
        (course / "smoke.json").write_text(json.dumps(spec))
        thread = threading.Thread(target=jump)
        thread.start()
        done = bench.run(["smoke", "--config", "smoke.json", "--format", "json"], course, env=env)
        answers = bench.run(["answers"], course, env=env)
        ended.set()
        thread.join()
        faults = expect(done, 0) + torn(course / "benchmarks")
        written = course / "benchmarks/results/66_fake.json"
        if not faults and written.exists():
            text = json.loads(written.read_text())
            faults += [f"{name} = {value}" for name, value in durations(text) if not 0 <= value < 60_000]
        bench.row("clock", "smoke, the wall clock jumps by hours", done, faults)
        bench.row("clock", "answers, the wall clock jumps by hours", answers, expect(answers, 0))


def case_generators(bench):
    """One load from two generators, one of them with a wall clock that is an hour ahead."""
    library = next((path for path in [bench.options.faketime, *FAKETIME] if path and os.path.exists(path)), None)
    if not library:
        return bench.not_here("generators", "libfaketime is not installed")
    ahead = {"LD_PRELOAD": library, "FAKETIME": "+3600", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
    with bench.folder() as folder, fake_server(folder, "--ttft-ms", "50", "--itl-ms", "20", "--tokens", "10") as url:
        with socket.create_server(("127.0.0.1", 0)) as door:
            meet = f"127.0.0.1:{door.getsockname()[1]}"
        load = ["bench", "--base-url", url, "--model", "tiny", "-n", 48, "-c", 4, "--max-tokens", 10, "--no-self-check"]

        def part(number, env):
            more = ["--partition", f"{number}/2", "--meet", meet, "--save-requests", f"part-{number}.jsonl"]
            return bench.start([*load, *more, "-o", f"json=own-{number}.json"], folder, env=env)

        children = [part(1, {}), part(2, ahead)]
        for number, child in enumerate(children, 1):
            done = bench.finish(child, 60)
            bench.row("generators", f"part {number}/2{', its wall clock an hour ahead' if number == 2 else ''}", done, expect(done, 0))
        done = bench.run(["merge", "part-1.jsonl", "part-2.jsonl", "--format", "json"], folder)
        faults, note = expect(done, 0), ""
        if not faults:
            figures = json.loads(done.out)["bench"]
            merged = figures["merged"]
            # 48 requests of 230 ms, four at a time; sleeping is late on a busy machine, never early.
            bounds = {"ttft_p50_ms": (49, 150), "tpot_p50_ms": (19, 60), "duration_s": (2.7, 9), "successful": (48, 48)}
            faults += [f"{name} = {figures[name]}, true: {low} to {high}" for name, (low, high) in bounds.items()
                       if not low <= figures[name] <= high]
            wall = merged["generators"][1]["wall_clock_ahead_ms"]
            if abs(wall - 3_600_000) > 100:
                faults.append(f"the wall clock of part 2 is said to be {wall} ms ahead, true: 3600000")
            if not merged["clock_uncertainty_ms"] < 20:
                faults.append(f"clocks known to {merged['clock_uncertainty_ms']} ms")
            if not 3 <= merged["in_flight_mean"] <= merged["in_flight_max"] <= 4:
                faults.append(f"{merged['in_flight_mean']} in flight, at most {merged['in_flight_max']}")
            each = [json.loads((folder / f"own-{number}.json").read_text())["bench"]["requests_per_s"] for number in (1, 2)]
            note = (f"{figures['requests_per_s']:.2f} requests/s of {each[0]:.2f} + {each[1]:.2f}, clocks ±{merged['clock_uncertainty_ms']:.3f} ms, "
                    f"wall clock {wall / 1000:+.3f} s, in flight {merged['in_flight_mean']:.2f}")
        bench.row("generators", "merge of both", done, faults, note)
        for what, args, said in (("half of a load", ["part-1.jsonl"], "missing: 2/2"),
                                 ("the same half twice", ["part-1.jsonl", "part-1.jsonl"], "is there twice")):
            done = bench.run(["merge", *args], folder)
            bench.row("generators", f"merge of {what}", done, expect(done, 2, said))


def durations(value, name=""):
    """Every figure in ms of a document."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from durations(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from durations(inner, name)
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and name.endswith("_ms"):
        yield name, value


# ---------------------------------------------------------------- kills

def case_kill(bench):
    """SIGKILL at random moments: nothing lost, nothing left."""
    rng = random.Random(bench.options.seed)
    legacy = (ROOT / "fixtures/legacy-results/05_raw_repeats_with_runs.json").read_bytes()
    tally, killed, faults_of = collections.Counter(), collections.Counter(), collections.defaultdict(list)
    typical, peak = {}, collections.Counter()
    began = time.monotonic()
    with bench.folder() as place, fake_server(place, "--tokens", "4") as url, bench.folder() as temp:
        course = place / "course"
        example_course(course)
        (course / "old").mkdir()
        for number in range(20):
            (course / f"old/{number:02}.json").write_bytes(legacy)
        inputs = snapshot(course)
        kinds = {
            "static": ["static", "-o", "json=out/report.json"],
            "answers": ["answers", "-o", "json=out/report.json"],
            "links": ["links", "-o", "json=out/report.json", "-o", "sarif=out/report2.json"],
            "schema": ["schema", "-o", "json=out/report.json"],
            "normalize": ["normalize", "old", "--out-dir", "out", "--force"],
            "smoke": ["smoke", "--config", "smoke.json"],
            "bench": bench_args(url, 12, "--save-requests", "out/requests.jsonl", "-o", "json=out/report.json"),
        }
        names = list(kinds)
        for number in range(bench.options.kills + len(names)):
            kind = names[number % len(names)]
            out, results = course / "out", course / "benchmarks/results"
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            earlier = b'{"earlier": %d}\n' % number
            targets = [out / "report.json", results / "66_fake.json", *(out / f"{at:02}.json" for at in range(20))]
            if kind != "normalize":
                targets = targets[:2]
            for target in targets:
                target.write_bytes(earlier)
            child = bench.start(kinds[kind], course, env={"TMPDIR": str(temp)}, start_new_session=True)
            first = number < len(names)
            if not first:
                time.sleep(rng.uniform(0, typical[kind] * 1.05))
                killed[kind] += runs_still(child)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGKILL)
            done = bench.finish(child)
            peak[kind] = max(peak[kind], done.peak_mb)
            if first:
                typical[kind] = done.seconds
                if done.code != 0:
                    faults_of[kind].append(f"unhurt, exit code {done.code}: {tail(done.said)}")
            tally[kind] += 1
            left = bench.left_over(child.mark)
            faults = [f"{len(left)} processes left"] if left else []
            faults += [f"{path} is left" for path in temporary(course)]
            faults += torn(out) + torn(results)
            now = snapshot(course)
            faults += [f"{name} is lost" for name, digest in inputs.items() if now.get(name) != digest]
            kept = [path.read_bytes() for folder in (out, results) for path in folder.glob("history/*")]
            for target in targets:
                text = target.read_bytes() if target.exists() else None
                if text is None:
                    faults.append(f"{target.name} is gone")
                # A result is kept when another takes its place; a report is replaced.
                elif text != earlier and target.name != "report.json" and kept.count(earlier) == 0:
                    faults.append(f"the earlier {target.name} is lost")
            lines = out / "requests.jsonl"
            if lines.exists():
                try:
                    whole = [json.loads(line) for line in lines.read_text().splitlines()]
                    if len(whole) != 12:
                        faults.append(f"requests.jsonl has {len(whole)} of 12 lines")
                except ValueError as error:
                    faults.append(f"requests.jsonl is torn: {error}")
            if PANIC.search(done.said):
                faults.append(tail(done.said))
            faults_of[kind] += [f"round {number}: {fault}" for fault in faults]
            shutil.rmtree(results / "history", ignore_errors=True)
            for path in list(temp.iterdir()):
                # A scratch folder of a killed run is swept by the next one.
                if time.time() - path.lstat().st_mtime > 120:
                    faults_of[kind].append(f"round {number}: {path.name} is left in the scratch folder")
        # The next run sweeps what a killed one left in the scratch folder.
        bench.finish(bench.start(["answers"], course, env={"TMPDIR": str(temp)}))
        time.sleep(2)
        rest = [path.name for path in temp.iterdir()]
    for kind in names:
        bench.say("kill", f"{kind}, {tally[kind]} runs, {killed[kind]} killed on their way", f"{typical[kind]:.2f}",
                  f"{peak[kind]:.0f}", "-9", faults_of[kind][:10])
    bench.say("kill", f"{sum(tally.values())} runs, {sum(killed.values())} killed; scratch folder afterwards",
              f"{time.monotonic() - began:.0f}", "", "", [f"left: {', '.join(rest[:10])} ({len(rest)})"] if rest else [])


CASES = {
    "files": case_files, "notebooks": case_notebooks, "results": case_results, "findings": case_findings,
    "output": case_output, "disk": case_disk, "readonly": case_readonly, "noproc": case_noproc,
    "nopython": case_nopython, "nohome": case_nohome, "clock": case_clock, "generators": case_generators, "kill": case_kill,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="target/release/verify")
    parser.add_argument("--only", default="", help="cases, separated by commas")
    parser.add_argument("--list", action="store_true", help="name the cases and end")
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--notebooks", type=int, default=2_000)
    parser.add_argument("--results", type=int, default=10_000)
    parser.add_argument("--findings", type=int, default=200_000)
    parser.add_argument("--output-mb", type=int, default=1024)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scratch", default=None, help="folder for scratch folders")
    parser.add_argument("--faketime", default=None, help="libfaketime, when it is elsewhere")
    options = parser.parse_args()
    if options.list:
        for name, case in CASES.items():
            print(f"{name:<10} {case.__doc__}")
        return 0
    wanted = [name for name in options.only.split(",") if name] or list(CASES)
    unknown = [name for name in wanted if name not in CASES]
    if unknown:
        parser.error(f"no such case: {', '.join(unknown)}; there are {', '.join(CASES)}")
    bench = Bench(options)
    print(f"{'case':<10} {'what was done':<58} {'seconds':>8} {'peak MB':>7} {'exit':>5}  promises")
    for name in wanted:
        CASES[name](bench)
    print(f"{len(bench.rows)} rows, {len(bench.broken)} promises broken, {len(bench.unseen)} cases not shown here")
    return 1 if bench.broken else 0


if __name__ == "__main__":
    sys.exit(main())
