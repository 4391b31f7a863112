#!/usr/bin/env python3
"""Does `verify schema --level compat` decide as the checklist's filter does under jq 1.6?

Makes documents by damaging good ones (values, bytes, several in one file), lets both
judge each and prints every disagreement. Other versions of jq differ on purpose: they
fail on an empty file.

usage: results_jq_parity.py [--bin target/release/verify] [--count 2000] [--seed 1] [--jq jq]
"""
import argparse, json, os, pathlib, random, subprocess, sys, tempfile

from results_speed import FILTER, ROOT

ODD = [b"", b" ", b"\n", b"null", b"false", b"true", b"0", b"NaN", b"nan", b"Infinity", b"-inf", b"+1", b"01", b".5", b"1.", b"1e", b"1e999",
       b"{}", b"[]", b"{", b"}", b"[", b"]", b",", b":", b'"', b'""', b'"\\ud800"', b'"\\u12"', b'"\\x"', b"\xff", b"\x1e", b"\x00", b"\t", b"\x1f",
       b"//", b"'a'", b"truefalse", b"-", b"--1", b"\xef\xbb\xbf", b'{"a":1}', b'{"normalized_result":null}', b"1 2", b"\x0b"]


def documents(count, rng):
    seeds = [path.read_bytes() for path in sorted((ROOT / "fixtures/cases/schema").glob("*/input/*.json"))]
    seeds = [seed for seed in seeds if len(seed) < 20_000]
    compact = [json.dumps(json.loads(seed)).encode() for seed in seeds if seed.startswith(b"{") and b"\xff" not in seed and _loads(seed)]
    for number in range(count):
        text = rng.choice(seeds + compact)
        for _ in range(rng.randrange(3)):
            at = rng.randrange(len(text) + 1)
            kind = rng.randrange(5)
            if kind == 0:
                text = text[:at] + rng.choice(ODD) + text[at:]
            elif kind == 1:
                text = text[:at] + text[at + rng.randrange(1, 6):]
            elif kind == 2:
                ends = [end for end in (text.find(b",", at), text.find(b"}", at)) if end > 0]
                start = text.rfind(b":", 0, min(ends)) + 1 if ends else 0
                text = text[:start] + rng.choice(ODD) + text[min(ends):] if ends else text
            elif kind == 3:
                text = rng.choice([text + rng.choice(ODD), rng.choice(ODD) + text, text + rng.choice(seeds)])
            else:
                text = text[:at]
        yield text


def _loads(seed):
    try:
        json.loads(seed)
        return True
    except ValueError:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="target/release/verify")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jq", default="jq")
    a = parser.parse_args()
    version = subprocess.run([a.jq, "--version"], capture_output=True, text=True).stdout.strip()
    if version != "jq-1.6":
        print(f"this is {version or 'no jq'}: only 1.6 is comparable")
        return 1
    verify = os.path.abspath(a.bin)
    with tempfile.TemporaryDirectory(prefix="verify-parity-") as name:
        folder = pathlib.Path(name)
        texts = {f"{number:05}.json": text for number, text in enumerate(documents(a.count, random.Random(a.seed)))}
        for file, text in texts.items():
            (folder / file).write_bytes(text)
        run = subprocess.run([verify, "schema", "--level", "compat", "--format", "json", *texts], cwd=folder, capture_output=True)
        ours = {item["path"]: item["status"] == "ok" for item in json.loads(run.stdout)["stages"][0]["items"]}
        strict = subprocess.run([verify, "schema", "--format", "json", *texts], cwd=folder, capture_output=True)
        strict = {item["path"]: item["status"] == "ok" for item in json.loads(strict.stdout)["stages"][0]["items"]}
        wrong = lax = passed = 0
        for file, text in texts.items():
            theirs = subprocess.run([a.jq, "-e", FILTER, file], cwd=folder, capture_output=True).returncode == 0
            passed += theirs
            if ours[file] != theirs:
                wrong += 1
                print(f"jq says {theirs}, verify {ours[file]}: {text[:300]!r}")
            if strict[file] and not theirs:
                lax += 1
                print(f"jq fails it, verify --level strict calls it ok: {text[:300]!r}")
    print(f"{a.count} documents (seed {a.seed}), {passed} passed by {version}: {wrong} verdicts differ, {lax} are ok here and failed there")
    return 1 if wrong or lax else 0


if __name__ == "__main__":
    sys.exit(main())
