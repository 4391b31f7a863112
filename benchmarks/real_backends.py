#!/usr/bin/env python3
"""The smoke stage against real servers: the opt-in test of the backends.

    benchmarks/real_backends.py PROGRAM [--cpu] [--llama-bin FOLDER]
        [--gguf FILE --quantized-gguf FILE]
        [--vllm VENV --model FOLDER] [--transformers VENV --model FOLDER]
        [--only WORD] [--keep FOLDER]

PROGRAM is a built `verify`. Whatever is named is run, the rest is left out and said so:
`--cpu` the provisioned backend, `--llama-bin` a folder with llama-server, `--vllm` and
`--transformers` virtual environments. `--gguf` and `--quantized-gguf` are the same weights
in full and in lower precision; without them `cpu` leaves project 67 out. The settings that a CPU needs are in fixtures/backends/.

Every good run must exit 0, pass `verify schema` and the checklist's own gate, and show by
counters what its project is about; `verify conclude` must not accept it. Then things go
wrong on purpose: the engine, the server and `verify` are killed, Ctrl-C is sent, a draft
model is loaded that never drafts. Nothing may be left two seconds later, no result may
appear, and the report must name the cause. Exit code 1 when anything was not so.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARK = "VERIFY_REAL_RUN"
RESULTS = {66: "66_vllm_real", 67: "67_quantized_deployment", 68: "68_backend_smoke", 69: "69_prefix_cache", 70: "70_scheduler"}


def marked(value: str) -> dict[int, str]:
    """Living processes whose environment holds the mark, with their command lines."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            environ = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
            state = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()[0]
            line = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if f"{MARK}={value}".encode() in environ and state not in "ZX":
            found[int(entry)] = line
    return found


def children(root: int) -> dict[int, str]:
    """The living descendants of a process: a server that renames itself loses its environment's mark."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if fields[0] not in "ZX":
                parents[int(entry)] = int(fields[1])
    found, queue = {}, [root]
    while queue:
        now = queue.pop()
        for pid in [pid for pid, parent in parents.items() if parent == now]:
            queue.append(pid)
            try:
                found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
    return found


def alive(pids) -> list[int]:
    living = []
    for pid in pids:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX":
                living.append(pid)
        except OSError:
            continue
    return living


class Backend:
    """One server with the options and the environment that start it."""

    def __init__(self, name, label, model=None, second=None, path=None, settings="", environment=None):
        self.name, self.label, self.model, self.second = name, label, model, second
        self.path, self.settings, self.environment = path, settings, environment or {}

    def options(self, project):
        options = ["--backend", self.name]
        if self.model:
            options += ["--model", str(self.model)]
        if project == 67 and self.second:
            options += ["--quantized-model", str(self.second)]
        return options

    def env(self, mark):
        path = f"{self.path}{os.pathsep}{os.environ['PATH']}" if self.path else os.environ["PATH"]
        return {**os.environ, "PATH": path, MARK: mark, "CI": "1", **self.environment}


class Test:
    def __init__(self, program, keep, only):
        self.program, self.keep, self.only = program, keep, only
        self.rows, self.faults = [], []

    def wanted(self, label):
        return not self.only or self.only in label

    def course(self, backend, extra="", replace=""):
        folder = self.keep / f"course-{len(list(self.keep.iterdir()))}"
        shutil.copytree(ROOT / "fixtures/course", folder)
        subprocess.run(["chmod", "-R", "u+w", folder], check=True)
        shutil.rmtree(folder / "benchmarks/results")
        own = replace or (folder / "verify.toml").read_text()
        (folder / "verify.toml").write_text(own + backend.settings + extra)
        return folder

    def fault(self, label, what):
        self.faults.append(f"{label}: {what}")
        print(f"  FAULT {label}: {what}", flush=True)

    def row(self, label, *cells):
        self.rows.append((label, *cells))
        print("  ".join(str(cell) for cell in (label, *cells)), flush=True)

    def verify(self, folder, backend, *arguments, mark="none"):
        ran = subprocess.run(
            [self.program, *arguments, "--format", "json"], cwd=folder, env=backend.env(mark),
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )
        try:
            return ran.returncode, json.loads(ran.stdout)
        except ValueError:
            return ran.returncode, {"stages": [], "raw": ran.stdout + ran.stderr}

    # --- what must work -------------------------------------------------------------

    def good(self, backend, projects, extra="", what=""):
        for project in projects:
            label = f"{backend.label}{what} {project}"
            if not self.wanted(label):
                continue
            folder = self.course(backend, extra)
            began = time.monotonic()
            code, report = self.verify(folder, backend, "smoke", "--project", str(project), *backend.options(project),
                                       mark=label.replace(" ", "-"))
            took = time.monotonic() - began
            if code != 0:
                self.fault(label, f"exit {code}: {findings(report) or report.get('raw', '')[-600:]}")
                continue
            if left := marked(label.replace(" ", "-")):
                self.fault(label, f"left behind: {left}")
            for stem in [f"{RESULTS[project]}.baseline", RESULTS[project]]:
                path = folder / f"benchmarks/results/{stem}.json"
                if path.exists():
                    self.result(label, backend, folder, path, took)

    def result(self, label, backend, folder, path, took):
        result = json.loads(path.read_text())
        block = result["normalized_result"]
        name = f"benchmarks/results/{path.name}"
        if not gate(result):
            self.fault(label, f"{path.name} does not pass the checklist's gate")
        code, report = self.verify(folder, backend, "schema", name)
        if code != 0:
            self.fault(label, f"schema: {findings(report)}")
        _, report = self.verify(folder, backend, "conclude", name)
        said = next((item.get("max_decision") for stage in report["stages"] for item in stage["items"]), None)
        claimed = block["decision"]["decision"]
        if "accept" in (said, claimed):
            self.fault(label, f"a smoke run was accepted: {claimed}, {said}")
        self.row(f"{label} {block['role']}", f"{took:.0f} s", *figures(result), evidence(result), f"{claimed} (at most {said})")
        self.proof(label, result)

    def proof(self, label, result):
        project, role = label.split()[-1], result["normalized_result"]["role"]
        counted, metrics = result["counters"]["difference"], result["normalized_result"]["strategy_metrics"]
        wanted = {
            ("68", "candidate"): lambda: counted["drafted_tokens"] > 0 and metrics["verify_cost_ms"] > 0,
            ("68", "baseline"): lambda: counted.get("drafted_tokens", 0) == 0,
            ("69", "candidate"): lambda: counted["cached_tokens"] > 0 and metrics["cache_hit_rate"] > 0,
            ("69", "baseline"): lambda: counted["cached_tokens"] == 0,
            ("70", "candidate"): lambda: metrics["queue_wait_ms"] > 0 and metrics["fairness"] > 0,
        }.get((project, role))
        try:
            shown = wanted is None or wanted()
        except (KeyError, TypeError) as error:
            shown = False
            self.fault(label, f"the proof is not there: {error!r}")
        if not shown:
            self.fault(label, f"not shown: {counted} {metrics}")
        if result["server"]["stop"]["kind"] != "clean":
            self.row(label, "stop", result["server"]["stop"]["kind"])

    # --- what goes wrong on purpose -------------------------------------------------

    def struck(self, backend, what, strike, codes, rules):
        """A long run in which `strike` does something once requests are running."""
        label = f"{backend.label} {what}"
        if not self.wanted(label):
            return
        folder = self.course(backend, replace=LONG)
        mark = label.replace(" ", "-")
        child = subprocess.Popen(
            [self.program, "smoke", "--project", "66", *backend.options(66), "--format", "json"], cwd=folder,
            env=backend.env(mark), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        measuring = threading.Event()
        lines = []

        def listen():
            for line in child.stderr:
                lines.append(line.rstrip())
                if "warm-up" in line:
                    measuring.set()

        threading.Thread(target=listen, daemon=True).start()
        if not measuring.wait(900):
            self.fault(label, f"never measured anything: {lines[-3:]}")
            child.kill()
            return
        time.sleep(2.5)
        tree = children(child.pid)
        began = time.monotonic()
        target = strike(child, tree)
        if target is None:
            self.fault(label, f"nobody to be struck: {tree}")
        stdout, _ = child.communicate(timeout=120)
        ended = time.monotonic() - began
        while (left := alive(tree)) and time.monotonic() - began < ended + 2:
            time.sleep(0.02)
        gone = time.monotonic() - began
        if left:
            self.fault(label, f"orphans after two seconds: {[(pid, tree[pid][:60]) for pid in left]}")
            for pid in left:
                os.kill(pid, signal.SIGKILL)
        report = json.loads(stdout) if stdout.strip() else {"stages": []}
        found = [finding["rule"] for stage in report["stages"] for finding in stage["findings"]]
        if child.returncode not in codes:
            self.fault(label, f"exit {child.returncode}: {findings(report)}")
        if rules and not set(rules) & set(found):
            self.fault(label, f"the report says {found}")
        results = folder / "benchmarks/results"
        if (results / "66_vllm_real.json").exists():
            self.fault(label, "a result was written")
        record = results / "66_vllm_real.failure.json"
        if rules and not record.exists():
            self.fault(label, "no failure record")
        self.row(label, f"exit {child.returncode}", f"ended after {ended:.1f} s", f"tree of {len(tree)} gone after {gone:.1f} s",
                 ", ".join(found) or "-")
        for line in findings(report):
            print("      ", line[:300])

    def never_drafts(self, backend, draft):
        """A draft model that is loaded and never asked must not pass for speculation."""
        label = f"{backend.label} 68 draft model without a method"
        if not self.wanted(label):
            return
        folder = self.course(backend, speculation(backend, ["-md", str(draft)]))
        code, report = self.verify(folder, backend, "smoke", "--project", "68", *backend.options(68))
        found = [finding["rule"] for stage in report["stages"] for finding in stage["findings"]]
        if code != 1 or "smoke/speculation-not-active" not in found:
            self.fault(label, f"exit {code}: {findings(report)}")
        if (folder / "benchmarks/results/68_backend_smoke.json").exists():
            self.fault(label, "a result claims speculation")
        self.row(label, f"exit {code}", ", ".join(found))


# Answers long enough that they still run when something is done to them.
LONG = """
[[project]]
id = 66
requests = 8
warmup = 0
max_tokens = 1500
workload = "benchmarks/workloads/repetitive.jsonl"
"""


def speculation(backend, arguments):
    """Settings that give a backend other arguments for speculation."""
    return f'\n[[backend]]\nname = "{backend.name}"\n[backend.features]\nspeculation = {json.dumps(arguments)}\n'


def findings(report):
    return [f"{finding['rule']}: {finding['message']}. {finding.get('help', '')}"
            for stage in report["stages"] for finding in stage["findings"] if finding["severity"] == "error"]


def gate(result):
    """The checklist's filter: every one of these is there and neither null nor false."""
    block = result["normalized_result"]
    config, metrics = block["config"], block["metrics"]
    values = [block["schema_version"], *(config[name] for name in ("model", "backend", "dtype", "batch", "concurrency", "cache_policy")),
              metrics["ttft_ms"], metrics["e2e_latency_ms"], block["decision"]]
    return all(value is not None and value is not False for value in values)


def figures(result):
    metrics = result["normalized_result"]["metrics"]
    cold = result["server"]["cold_start"]
    second = cold["second_answer_ms"]
    return (
        f"cold {cold['first_answer_ms'] / 1000:.1f} s, 2nd {second / 1000:.1f} s" if second else "no second answer",
        f"TTFT {metrics['ttft_ms']['p50']:.0f} ms",
        f"{metrics['throughput_tokens_per_s'] or 0:.1f} tok/s",
        f"RSS {(metrics['peak_memory_mb'] or 0):.0f} MiB in {len(result['process_tree'])} processes",
        f"stop {result['server']['stop']['kind']} {result['server']['stop']['duration_ms'] / 1000:.1f} s",
    )


def evidence(result):
    metrics = result["normalized_result"]["strategy_metrics"]
    shown = {name: round(value, 3) if isinstance(value, float) else value for name, value in metrics.items()
             if value is not None and not name.endswith(("definition", "settings"))}
    quality = result["normalized_result"]["quality"]
    if quality.get("value") is not None:
        shown[quality["metric"]] = quality["value"]
    return json.dumps(shown) if shown else "-"


def kill_matching(*words):
    def strike(_child, tree):
        for word in words:
            for pid, line in tree.items():
                if word in line and "__guard" not in line:
                    os.kill(pid, signal.SIGKILL)
                    return pid
        return None

    return strike


def send(number):
    def strike(child, _tree):
        child.send_signal(number)
        return child.pid

    return strike


def mishaps(test, backend, server, engine=None):
    if engine:
        test.struck(backend, "SIGKILL of the engine", kill_matching(engine), {1}, ["smoke/request-failed", "smoke/server-exited"])
    test.struck(backend, "SIGKILL of the server", kill_matching(*server), {1}, ["smoke/server-exited"])
    test.struck(backend, "SIGKILL of verify", send(signal.SIGKILL), {-9}, [])
    test.struck(backend, "Ctrl-C", send(signal.SIGINT), {130}, ["run/interrupted"])


def read(name):
    return "\n" + (ROOT / "fixtures/backends" / name).read_text()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="a built verify")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--llama-bin", type=Path, help="folder with llama-server and its libraries")
    parser.add_argument("--gguf", type=Path)
    parser.add_argument("--quantized-gguf", type=Path)
    parser.add_argument("--vllm", type=Path, help="virtual environment")
    parser.add_argument("--transformers", type=Path, help="virtual environment")
    parser.add_argument("--model", type=Path, help="model folder for vLLM and transformers")
    parser.add_argument("--only", default="", help="only the runs whose label holds this text")
    parser.add_argument("--keep", type=Path, help="folder for the scratch courses; kept afterwards")
    options = parser.parse_args()
    scratch = None if options.keep else tempfile.TemporaryDirectory(prefix="verify-real-")
    keep = options.keep or Path(scratch.name)
    keep.mkdir(parents=True, exist_ok=True)
    test = Test(os.path.abspath(options.program), keep, options.only)
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    second = options.quantized_gguf and options.quantized_gguf.resolve()
    if options.cpu:
        backend = Backend("cpu", "cpu")
        test.good(backend, [66, 68, 69, 70])
        if second:
            test.good(Backend("cpu", "cpu", model=options.gguf.resolve(), second=second), [67])
        mishaps(test, backend, ["launcher.py"])
    if options.llama_bin:
        backend = Backend("llama-server", "llama-server", model=options.gguf.resolve(), second=second, path=options.llama_bin.resolve(),
                          environment={"LD_LIBRARY_PATH": str(options.llama_bin.resolve())})
        test.good(backend, [66, 68, 69, 70] + ([67] if second else []))
        test.good(backend, [66], "\n[smoke]\nsocket = false\n", " on a port")
        if second:
            # A smaller model drafts; the same model without a method does not.
            draft = ["--spec-type", "draft-simple", "-md", str(second), "--spec-draft-n-max", "4", "-td", "1"]
            test.good(backend, [68], speculation(backend, draft), " with a draft model")
            test.never_drafts(backend, second)
        mishaps(test, backend, ["llama-server"])
    if options.vllm:
        backend = Backend("vllm", "vllm", model=options.model.resolve(), path=options.vllm.resolve() / "bin",
                          settings=read("vllm-cpu.toml"))
        test.good(backend, [66, 68, 69, 70])
        mishaps(test, backend, ["vllm serve", "APIServer"], engine="EngineCore")
    if options.transformers:
        home = keep / "hf-home"
        (home / "hub").mkdir(parents=True, exist_ok=True)
        backend = Backend("transformers", "transformers", model=options.model.resolve(), path=options.transformers.resolve() / "bin",
                          settings=read("transformers-cpu.toml"), environment={"HF_HOME": str(home)})
        test.good(backend, [66])
    for name in ("cpu", "llama_bin", "vllm", "transformers"):
        if not getattr(options, name):
            print(f"not run: {name.replace('_bin', '-server')}")
    print(f"\n{len(test.rows)} rows, {len(test.faults)} faults, load {os.getloadavg()[0]:.1f}")
    for fault in test.faults:
        print("  ", fault)
    return 1 if test.faults else 0


if __name__ == "__main__":
    sys.exit(main())
