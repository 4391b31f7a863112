#!/usr/bin/env python3
"""How fast the gate is beside the two tools that did its work before.

Writes COUNT result files, then lets `verify schema`, `check-jsonschema` (all files in
one call) and the checklist's loop over `jq -e` judge them in one run, and prints the
ratios. The gate does more than either: it is the same contract, with every fault placed.

usage: results_speed.py [--bin target/release/verify] [--count 10000] [--check-jsonschema PROGRAM] [--jq PROGRAM]

check-jsonschema comes from PyPI: python3 -m venv V && V/bin/pip install check-jsonschema
"""
import argparse, json, os, pathlib, shutil, statistics, subprocess, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILTER = (".normalized_result.schema_version and .normalized_result.config.model and .normalized_result.config.backend and "
          ".normalized_result.config.dtype and .normalized_result.config.batch and .normalized_result.config.concurrency and "
          ".normalized_result.config.cache_policy and .normalized_result.metrics.ttft_ms and "
          ".normalized_result.metrics.e2e_latency_ms and .normalized_result.decision")


def write_files(folder, count):
    seed = json.loads((ROOT / "fixtures/cases/policy/accept-everything-shown/input/candidate.json").read_text(encoding="utf-8"))
    metrics = seed["normalized_result"]["metrics"]
    for number in range(count):
        metrics["throughput_tokens_per_s"] = 200 + number / 7
        metrics["ttft_ms"]["p50"] = 200 + number % 20
        (folder / f"{number:05}.json").write_text(json.dumps(seed, indent=2), encoding="utf-8")


def timed(what, run, repeats):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        code = run()
        times.append(time.perf_counter() - start)
        if code != 0:
            raise SystemExit(f"{what}: exit {code} on valid files")
    print(f"{what:45} {statistics.median(times):9.3f} s  (median of {repeats}, {min(times):.3f} to {max(times):.3f})", flush=True)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="target/release/verify")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--check-jsonschema", default="check-jsonschema")
    parser.add_argument("--jq", default="jq")
    a = parser.parse_args()
    verify = os.path.abspath(a.bin)
    schema = str(ROOT / "schemas/inference-benchmark-v1.schema.json")
    quiet = {"stdout": subprocess.DEVNULL}
    with tempfile.TemporaryDirectory(prefix="verify-speed-") as name:
        folder = pathlib.Path(name)
        write_files(folder, a.count)
        files = sorted(path.name for path in folder.iterdir())
        print(f"{a.count} files of {(folder / files[0]).stat().st_size} bytes, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")

        def gate():
            return subprocess.run([verify, "schema", "--format", "json", *files], cwd=folder, **quiet).returncode

        def validator():
            return subprocess.run([a.check_jsonschema, "--schemafile", schema, *files], cwd=folder, **quiet).returncode

        def loop():
            return max(subprocess.run([a.jq, "-e", FILTER, file], cwd=folder, **quiet).returncode for file in files)

        ours = timed("verify schema, one call", gate, 5)
        if shutil.which(a.check_jsonschema):
            theirs = timed("check-jsonschema, one call", validator, 1)
            print(f"verify schema is {theirs / ours:.0f} times faster than check-jsonschema (wanted: 20)")
        else:
            print("check-jsonschema is not installed: not measured")
        if shutil.which(a.jq):
            theirs = timed("jq -e, one call a file", loop, 1)
            print(f"verify schema is {theirs / ours:.0f} times faster than the jq loop (wanted: 5)")
        else:
            print("jq is not installed: not measured")


if __name__ == "__main__":
    main()
