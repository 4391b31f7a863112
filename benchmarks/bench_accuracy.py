#!/usr/bin/env python3
"""How far `verify bench` is off a server whose send times are known, beside other clients.

usage: bench_accuracy.py [--bin target/quick/verify] [--aiperf PROGRAM] [--guidellm PROGRAM]
                         [--install FOLDER] [--concurrency 1,16,64,256] [--rounds 3]
                         [--server-options "--rt"] [--no-fast]

Builds the truth server (benchmarks/truth_server) and puts the same load on it with every
client in this one run: 100 ms to the first token, 20 ms between tokens, 128 tokens. A
client's error is its own figure minus the server's log of the same requests. Clients:

    verify     `verify bench`, medians of several rounds
    pool       a thread pool that reads lines, as the former script did (in this file)
    aiperf     AIPerf, when its program is given, or found in FOLDER
    guidellm   guidellm, likewise

`--install FOLDER` makes a virtual environment for each of the two peers there, outside
the repository, when it has none. The server's own lag stands beside each figure. Clients
run at nice -15 and the server with `--rt` where that is allowed. At the end each limit is
stated with what was measured; the exit status is 1 when one does not hold.
"""
import argparse, concurrent.futures, http.client, json, os, pathlib, re, shutil, statistics, subprocess, sys
import tempfile, threading, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
REQUESTS = {1: 5, 16: 48, 64: 256, 256: 768}
TOKENS = 128
PROMPT = "The quick brown fox jumps over the lazy dog."


# ---------------------------------------------------------------- the pool client

def pool_client(url, concurrency, count, tokens):
    """One thread per request in flight; TTFT at the first line with content."""
    host = url.split("//")[1]
    local = threading.local()

    def one(_):
        body = json.dumps({
            "model": "truth-model", "messages": [{"role": "user", "content": PROMPT}], "max_tokens": tokens,
            "temperature": 0, "stream": True, "stream_options": {"include_usage": True},
        })
        began = time.perf_counter()
        connection = http.client.HTTPConnection(host, timeout=120)
        connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        stamps = []
        for line in response:
            text = line.decode().strip()
            if not text.startswith("data:") or text == "data: [DONE]":
                continue
            choices = json.loads(text[5:]).get("choices") or [{}]
            if choices[0].get("delta", {}).get("content"):
                stamps.append(time.perf_counter())
        ended = time.perf_counter()
        connection.close()
        return stamps[0] - began, ended - began, [b - a for a, b in zip(stamps, stamps[1:])]

    with concurrent.futures.ThreadPoolExecutor(concurrency) as pool:
        done = list(pool.map(one, range(count)))
    print(json.dumps({
        "ttft": spread([a * 1000 for a, _, _ in done]),
        "e2e": spread([b * 1000 for _, b, _ in done]),
        "itl": spread([gap * 1000 for *_, gaps in done for gap in gaps]),
    }))


def spread(values):
    """Mean, median and 99th percentile, linear between order statistics."""
    values = sorted(values)

    def at(q):
        place = q * (len(values) - 1)
        low = int(place)
        high = min(low + 1, len(values) - 1)
        return values[low] + (values[high] - values[low]) * (place - low)

    return {"mean": statistics.fmean(values), "p50": at(0.5), "p99": at(0.99)}


# ---------------------------------------------------------------- running

def tree(pid):
    found, queue = [], [pid]
    while queue:
        pid = queue.pop()
        found.append(pid)
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                queue += map(int, pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split())
        except OSError:
            pass
    return found


class Watch(threading.Thread):
    """CPU seconds and PSS of a tree of processes, against the monotonic clock."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.cpu, self.samples, self.pss = pid, {}, [], 0
        self.over = threading.Event()

    def run(self):
        tick, turn = os.sysconf("SC_CLK_TCK"), 0
        while not self.over.wait(0.1):
            pids = tree(self.pid)
            for pid in pids:
                try:
                    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                    self.cpu[pid] = (int(fields[11]) + int(fields[12])) / tick
                except (OSError, IndexError):
                    pass
            self.samples.append((time.monotonic_ns(), sum(self.cpu.values())))
            turn += 1
            if turn % 5 == 1:
                self.pss = max(self.pss, sum(map(pss, pids)))

    def between(self, begin, end):
        def at(when):
            before = [s for s in self.samples if s[0] <= when]
            after = [s for s in self.samples if s[0] > when]
            if not before:
                return 0.0
            if not after:
                return before[-1][1]
            (t0, c0), (t1, c1) = before[-1], after[0]
            return c0 + (c1 - c0) * (when - t0) / (t1 - t0)

        return at(end) - at(begin)


def pss(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        return int(re.search(r"^Pss:\s+(\d+)", text, re.M).group(1)) / 1024
    except (OSError, AttributeError):
        return 0


def favoured():
    """First in line for a core, where that is allowed: in a session of its own, whose
    group the scheduler weighs against those of other sessions."""
    try:
        os.setsid()
        os.nice(-15)
        pathlib.Path("/proc/self/autogroup").write_text("-15")
    except OSError:
        pass


class Server:
    def __init__(self, programs, folder, options):
        self.log = folder / "truth.jsonl"
        port_file = folder / "port"
        port_file.unlink(missing_ok=True)
        arguments = [programs / "truth_server", "--port", "0", "--port-file", port_file, "--log", self.log]
        self.process = subprocess.Popen([*arguments, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (port_file.exists() and port_file.read_text().strip()):
            time.sleep(0.02)
        self.url = f"http://127.0.0.1:{port_file.read_text().strip()}"
        self.programs = programs

    def stop(self):
        self.process.terminate()
        self.process.wait()
        figures = json.loads(subprocess.check_output([self.programs / "truth_stats", self.log]))
        requests = [json.loads(line) for line in open(self.log) if '"type":"req"' in line]
        stamps = [event[3] for request in requests for event in request["ev"] if event[3]]
        figures["window"] = (min(request["rx"] for request in requests), max(stamps))
        return figures


def error(ours, truth):
    return {name: ours[name] - truth[name] for name in ("mean", "p50", "p99")}


def measure(client, arguments, concurrency, count, options, tokens=TOKENS):
    """One client on one server: its errors, its cost, the server's lag."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        server = Server(arguments.programs, folder, options)
        try:
            command, read = client(arguments, server.url, concurrency, count, tokens, folder)
            process = subprocess.Popen(
                command, cwd=folder, preexec_fn=favoured, stdout=open(folder / "out", "w"),
                stderr=open(folder / "err", "w"),
            )
            watch = Watch(process.pid)
            watch.start()
            code = process.wait(timeout=400)
            watch.over.set()
            watch.join()
        except BaseException:
            server.process.kill()
            raise
        try:
            truth = server.stop()
            figures = read()
        except Exception as fault:  # a peer whose report has another form says so
            tail = (folder / "err").read_text()[-800:] or (folder / "out").read_text()[-800:]
            raise SystemExit(f"{command[0]} (exit {code}): {fault!r}\n{tail}")
    named = {"ttft": "ttft_ms", "e2e": "e2e_ms", "itl": "icl_ms", "tpot": "tpot_ms"}
    cpu = watch.between(*truth["window"])
    return {
        **{metric: error(ours, truth[named[metric]]) for metric, ours in figures.items()},
        "truth": {metric: truth[named[metric]] for metric in figures},
        "cpu_per_1000": cpu / truth["tokens"] * 1000,
        "cpu_whole_per_1000": sum(watch.cpu.values()) / truth["tokens"] * 1000,
        "pss": watch.pss, "lag": truth["server_lag_ms"], "tokens_per_s": truth["tokens_per_s"],
    }


# ---------------------------------------------------------------- clients

def verify(arguments, url, concurrency, count, tokens, folder):
    kept = folder / "requests.jsonl"
    command = [
        arguments.bin, "bench", "--base-url", url, "--model", "truth-model", "--prompt", PROMPT, "-n", count,
        "-c", concurrency, "--max-tokens", tokens, "--warmup", 0, "--no-progress", "--format", "json",
        "--save-requests", kept,
    ]

    def read():
        report = json.loads((folder / "out").read_text())["bench"]
        assert report["failed"] == 0, report["errors"]
        requests = [json.loads(line) for line in open(kept)]
        samples = {
            "ttft": [r["chunks_ms"][0] - r["sent_ms"] for r in requests],
            "e2e": [r["chunks_ms"][-1] - r["sent_ms"] for r in requests],
            "itl": [b - a for r in requests for a, b in zip(r["chunks_ms"], r["chunks_ms"][1:])],
        }
        figures = {name: spread(values) for name, values in samples.items()}
        for name, figure in figures.items():
            # What the report says, where the sample carries it.
            for stat, key in (("mean", f"{name}_ms"), ("p50", f"{name}_p50_ms"), ("p99", f"{name}_p99_ms")):
                if report[key] is not None:
                    assert abs(report[key] - figure[stat]) < 0.01, (key, report[key], figure[stat])
        return figures

    return [str(part) for part in command], read


def pool(arguments, url, concurrency, count, tokens, folder):
    command = [sys.executable, __file__, "--pool-client", url, str(concurrency), str(count), str(tokens)]
    return command, lambda: json.loads((folder / "out").read_text())


MAKE_TOKENIZER = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
words = [f"w{i}" for i in range(500)] + [chr(c) for c in range(33, 127)]
model = models.WordLevel({word: i for i, word in enumerate(["<unk>", "<s>", "</s>", *words])}, unk_token="<unk>")
tokenizer = Tokenizer(model)
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
).save_pretrained(sys.argv[1])
"""


def tokenizer(arguments):
    """A tokenizer of our own for AIPerf, which needs one even when the server counts."""
    if not arguments.tokenizer:
        arguments.tokenizer = tempfile.mkdtemp(prefix="bench-tokenizer-")
        python = pathlib.Path(arguments.aiperf).parent / "python"
        subprocess.run([python, "-c", MAKE_TOKENIZER, arguments.tokenizer], check=True, stderr=subprocess.DEVNULL)
    return arguments.tokenizer


def aiperf(arguments, url, concurrency, count, tokens, folder):
    command = [
        arguments.aiperf, "profile", "--model", "truth-model", "--url", url, "--endpoint-type", "chat", "--streaming",
        "--concurrency", concurrency, "--request-count", count, "--tokenizer", tokenizer(arguments),
        "--use-server-token-count", "--synthetic-input-tokens-mean", 16, "--output-tokens-mean", tokens,
        "--ui", "none", "--artifact-dir", folder / "artifacts",
    ]

    def read():
        report = json.loads(next((folder / "artifacts").rglob("*aiperf.json")).read_text())
        names = {
            "ttft": "time_to_first_token", "e2e": "request_latency", "itl": "inter_chunk_latency",
            "tpot": "inter_token_latency",
        }
        pick = lambda figure: {"mean": figure["avg"], "p50": figure["p50"], "p99": figure["p99"]}
        return {metric: pick(report[name]) for metric, name in names.items() if report.get(name)}

    return [str(part) for part in command], read


def guidellm(arguments, url, concurrency, count, tokens, folder):
    data = folder / "prompts.jsonl"
    data.write_text("".join(json.dumps({"prompt": f"{PROMPT} {i}", "output_tokens_count": tokens}) + "\n" for i in range(count)))
    # The options of 0.8: one kind and its members each.
    command = [
        arguments.guidellm, "run",
        "--backend", f"kind=openai_http,target={url},model=truth-model,request_format=/v1/chat/completions",
        "--profile", f"kind=concurrent,streams={concurrency}", "--constraint", f"kind=max_requests,count={count}",
        "--data", f"kind=json_file,path={data}", "--output", f"kind=json,path={folder / 'guidellm.json'}",
        "--disable-console-interactive",
    ]

    def read():
        report = json.loads((folder / "guidellm.json").read_text())
        metrics = report["benchmarks"][0]["metrics"]

        def pick(name, scale=1.0):
            figure = metrics[name]["successful"]
            return {
                "mean": figure["mean"] * scale, "p50": figure["median"] * scale,
                "p99": figure["percentiles"]["p99"] * scale,
            }

        return {
            "ttft": pick("time_to_first_token_ms"), "e2e": pick("request_latency", 1000.0),
            "tpot": pick("inter_token_latency_ms"),
        }

    return [str(part) for part in command], read


CLIENTS = {"verify": verify, "pool": pool, "aiperf": aiperf, "guidellm": guidellm}


# ---------------------------------------------------------------- the run

def build():
    target = ROOT / "target" / "truth_server"
    manifest = ROOT / "benchmarks" / "truth_server" / "Cargo.toml"
    subprocess.run(
        ["cargo", "build", "--release", "--quiet", "--manifest-path", manifest, "--target-dir", target], check=True
    )
    return target / "release"


def install(folder, name):
    program = pathlib.Path(folder).resolve() / name / "bin" / name
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", program.parent.parent], check=True)
        subprocess.run([program.parent / "pip", "install", "--quiet", name], check=True)
    return str(program)


def median_of(runs):
    """The median of every figure over the rounds."""
    if isinstance(runs[0], dict):
        return {key: median_of([run[key] for run in runs if key in run]) for key in runs[0]}
    return statistics.median(runs) if isinstance(runs[0], (int, float)) else runs[0]


def show(name, concurrency, result):
    cells = [f"{concurrency:>4} {name:<9}"]
    for metric in ("ttft", "itl", "e2e"):
        figure = result.get(metric) or result.get("tpot")
        mark = "" if metric in result else "*"
        cells.append("/".join(f"{figure[stat]:+.2f}" for stat in ("mean", "p50", "p99")) + mark)
    cells += [
        f"{result['cpu_per_1000']:.4f}", f"{result['cpu_whole_per_1000']:.4f}", f"{result['pss']:.1f}",
        f"{result['lag']['mean']:.2f}/{result['lag']['p99']:.2f}", f"{result['tokens_per_s']:.0f}",
    ]
    print("  ".join(f"{cell:>22}" if i else cell for i, cell in enumerate(cells)), flush=True)


class Verdicts(list):
    def hold(self, what, holds):
        self.append(holds)
        print(f"{'holds ' if holds else 'BROKEN'}  {what}")


def judge(results, peers):
    verdicts = Verdicts()
    for concurrency, by_client in results.items():
        ours = by_client["verify"]
        for metric in ("ttft", "itl", "e2e"):
            truth, off = ours["truth"][metric], ours[metric]
            for stat, ms, share in (("mean", 0.5, 0.01), ("p50", 0.5, 0.01), ("p99", 3.0, 0.02)):
                limit = max(ms, truth[stat] * share)
                verdicts.hold(f"c={concurrency} {metric} {stat}: {off[stat]:+.3f} ms of {limit:.2f} allowed", abs(off[stat]) <= limit)
            for peer in peers:
                theirs = by_client[peer].get(metric) or by_client[peer].get("tpot")
                ours_abs, theirs_abs = abs(off["mean"]), abs(theirs["mean"])
                verdicts.hold(
                    f"c={concurrency} {metric} mean error {ours_abs:.3f} ms, {peer} {theirs_abs:.3f} ms",
                    # Both below a hundredth of a millisecond are equal on this clock.
                    ours_abs <= max(theirs_abs, 0.01),
                )
        verdicts.hold(f"c={concurrency} PSS {ours['pss']:.1f} MB of 40", ours["pss"] < 40)
    if 256 in results:
        ours = results[256]["verify"]["cpu_per_1000"]
        for peer in ("aiperf", "guidellm"):
            if peer in peers:
                theirs = results[256][peer]["cpu_per_1000"]
                verdicts.hold(f"c=256 CPU per 1,000 tokens {ours:.4f} s, {peer} {theirs:.4f} s: {theirs / ours:.1f} times", theirs >= 8 * ours)
    return verdicts


def main():
    if sys.argv[1:2] == ["--pool-client"]:
        return pool_client(sys.argv[2], *map(int, sys.argv[3:6]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(ROOT / "target" / "quick" / "verify"))
    parser.add_argument("--aiperf")
    parser.add_argument("--guidellm")
    parser.add_argument("--install", metavar="FOLDER")
    parser.add_argument("--tokenizer", help="tokenizer of AIPerf; none: a small one of our own")
    parser.add_argument("--concurrency", default="1,16,64,256")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of verify; the peers run once")
    parser.add_argument("--server-options", default="--rt" if os.geteuid() == 0 else "")
    parser.add_argument("--no-fast", action="store_true", help="leave out the 64 streams of 0.6 ms")
    arguments = parser.parse_args()
    arguments.bin = str(pathlib.Path(arguments.bin).resolve())
    for name in ("aiperf", "guidellm"):
        given = getattr(arguments, name) or (install(arguments.install, name) if arguments.install else shutil.which(name))
        setattr(arguments, name, given)
    arguments.programs = build()
    peers = ["pool", *(name for name in ("aiperf", "guidellm") if getattr(arguments, name))]
    extra = arguments.server_options.split()
    schedule = ["--role", "merged", "--finish", "with-last", *extra]
    print("   c client     errors in ms, mean/P50/P99: TTFT, ITL (*: per request), E2E; CPU s per 1,000 tokens in the window "
          "and in all; peak PSS MB; server lag mean/P99 ms; tokens/s")
    results = {}
    for concurrency in map(int, arguments.concurrency.split(",")):
        count = REQUESTS.get(concurrency, 3 * concurrency)
        options = ["--ttft-ms", "100", "--itl-ms", "20", "--tokens", str(TOKENS), *schedule]
        results[concurrency] = {}
        for name in ["verify", *peers]:
            rounds = arguments.rounds if name == "verify" else 1
            runs = [measure(CLIENTS[name], arguments, concurrency, count, options) for _ in range(rounds)]
            results[concurrency][name] = median_of(runs)
            show(name, concurrency, results[concurrency][name])
    fast = None
    if not arguments.no_fast:
        options = ["--ttft-ms", "100", "--itl-ms", "0.6", "--tokens", "256", *schedule]
        fast = median_of([measure(verify, arguments, 64, 256, options, 256) for _ in range(arguments.rounds)])
        print("64 streams, 0.6 ms between tokens:")
        show("verify", 64, fast)
    print()
    verdicts = judge(results, peers)
    if fast:
        for metric in ("ttft", "itl"):
            share = abs(fast[metric]["mean"]) / fast["truth"][metric]["mean"]
            verdicts.hold(f"64 streams of 0.6 ms: {metric} mean off by {share:.2%} of 2 %", share <= 0.02)
    sys.exit(0 if all(verdicts) else 1)


if __name__ == "__main__":
    main()
