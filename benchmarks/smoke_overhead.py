#!/usr/bin/env python3
"""What `verify smoke` itself costs, and how fast it notices a dead server.

    benchmarks/smoke_overhead.py PROGRAM [--rounds N]

PROGRAM is a built `verify`. Both sides are measured in one run: the whole run by this
script, the server's own time by the server (a small one in this file): from its first
line until it listens, while it answers, and from SIGTERM to its end. What is left is
`verify`: its own start, the guardian, the wait, the records, the files. The start of the
Python interpreter before the server's first line counts against `verify` too. Processor
time (of `verify` and its guardian, the server's taken off) is printed beside it: on a
busy machine wall time is mostly waiting for a processor.

Detection is from the moment before the server ends itself to the line with which
`verify` says that it stops. Exit code 1 when a limit is missed.
"""
import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

LIMIT_OVERHEAD_MS = 150.0
LIMIT_DETECTION_MS = 100.0

SERVER = r'''
import time
START = time.monotonic()
import json, os, signal, socket, sys
notes = []
die = sys.argv[2]
def note(name, seconds):
    notes.append((name, seconds))
def end(*_):
    begun = time.monotonic()
    note("stop", time.monotonic() - begun)
    write()
    os._exit(0)
def write():
    note("cpu", time.process_time())
    with open("server.json", "w") as file:
        json.dump(notes, file)
def die_now():
    note("died_at", time.monotonic())
    write()
    os.kill(os.getpid(), signal.SIGKILL)
signal.signal(signal.SIGTERM, end)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=16)
note("start", time.monotonic() - START)
if die == "before":
    time.sleep(0.3)
    die_now()
MODELS = json.dumps({"object": "list", "data": [{"id": "tiny", "object": "model"}]}).encode()
def head(kind, length):
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n".encode()
def stream():
    base = {"id": "c", "object": "chat.completion.chunk", "model": "tiny"}
    for text in ("a", "b"):
        yield {**base, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
    yield {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    yield {**base, "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
chats = 0
while True:
    client, _ = listener.accept()
    data = b""
    while b"\r\n\r\n" not in data:
        piece = client.recv(65536)
        if not piece:
            break
        data += piece
    if not data:
        client.close()
        continue
    header, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in header.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    while len(body) < length:
        body += client.recv(65536)
    begun = time.monotonic()
    route = header.split(b" ")[1]
    if route == b"/health":
        client.sendall(head("application/json", 2) + b"{}")
    elif route == b"/v1/models":
        client.sendall(head("application/json", len(MODELS)) + MODELS)
    elif route == b"/v1/chat/completions":
        chats += 1
        events = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in stream()] + [b"data: [DONE]\n\n"]
        if die == "stream" and chats == 2:
            whole = b"".join(events)
            client.sendall(head("text/event-stream", len(whole)) + events[0])
            time.sleep(0.3)
            die_now()
        whole = b"".join(events)
        client.sendall(head("text/event-stream", len(whole)) + whole)
    else:
        client.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    client.close()
    note("answer", time.monotonic() - begun)
'''


def prepare(folder: Path, die: str) -> None:
    (folder / "server.py").write_text(SERVER)
    (folder / "workload.jsonl").write_text('{"prompt": "hi"}\n' * 3)
    spec = {
        "backend": {"command": [sys.executable, "-I", "-S", "server.py", "{port}", die], "served_model": "tiny"},
        "workload": "workload.jsonl",
        "warmup": 0,
        "max_tokens": 2,
        "result": "results/66_vllm_real.json",
    }
    (folder / "smoke.json").write_text(json.dumps(spec))


def run(program: str, die: str) -> tuple[float, list, dict, int]:
    """Wall time in ms, what the server noted, the moments of the lines of progress, exit code."""
    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, die)
        before = used()
        moments: dict[str, float] = {}
        began = time.monotonic()
        child = subprocess.Popen(
            [program, "smoke", "--config", "smoke.json", "--format", "json"],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "CI": "1"},
        )

        def read() -> None:
            for line in child.stderr:
                moments.setdefault(line.strip(), time.monotonic())

        reader = threading.Thread(target=read)
        reader.start()
        code = child.wait()
        wall = (time.monotonic() - began) * 1000
        reader.join()
        notes = json.loads((folder / "server.json").read_text())
        notes.append(["all cpu", used() - before])
        return wall, notes, moments, code


def quantile(values: list[float], share: float) -> float:
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def overhead(program: str, rounds: int) -> bool:
    walls, own, rest, busy = [], [], [], []
    for _ in range(rounds):
        wall, notes, _, code = run(program, "never")
        if code != 0:
            sys.exit(f"a run that must pass ended with {code}")
        server = sum(seconds for name, seconds in notes if name in ("start", "answer", "stop")) * 1000
        cpu = dict(notes)
        busy.append((cpu["all cpu"] - cpu["cpu"]) * 1000)
        walls.append(wall)
        own.append(server)
        rest.append(wall - server)
    median = quantile(rest, 0.5)
    print(f"{'':26}{'median':>9}{'min':>9}{'max':>9}   ms, n={rounds}")
    lines = [("whole run", walls), ("server's own time", own), ("overhead of verify", rest)]
    for label, values in [*lines, ("processor time of verify", busy)]:
        print(f"{label:26}{quantile(values, 0.5):9.1f}{min(values):9.1f}{max(values):9.1f}")
    kept = median < LIMIT_OVERHEAD_MS
    print(f"overhead median {median:.1f} ms, limit {LIMIT_OVERHEAD_MS:.0f} ms: {'kept' if kept else 'MISSED'}")
    return kept


def detection(program: str, rounds: int, die: str, label: str) -> bool:
    delays = []
    for _ in range(rounds):
        _, notes, moments, code = run(program, die)
        died = next(moment for name, moment in notes if name == "died_at")
        stopping = moments.get("smoke: stopping")
        if code != 1 or stopping is None:
            sys.exit(f"a dead server was not reported (exit {code}): {list(moments)}")
        delays.append((stopping - died) * 1000)
    median = quantile(delays, 0.5)
    kept = median < LIMIT_DETECTION_MS
    print(
        f"{label:26}{median:9.1f}{min(delays):9.1f}{max(delays):9.1f}   "
        f"limit {LIMIT_DETECTION_MS:.0f} ms: {'kept' if kept else 'MISSED'}"
    )
    return kept


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="a built verify")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors, {program}")
    run(program, "never")
    kept = [
        overhead(program, options.rounds),
        detection(program, options.rounds, "before", "death before ready, seen"),
        detection(program, options.rounds, "stream", "death in a stream, seen"),
    ]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
