"""Runs llama.cpp's HTTP server from the xllamacpp wheel in the foreground.

Written by `verify backend install cpu`. Takes the flags of llama-server that verify
uses, prints where it listens, ends on SIGTERM or SIGINT.
"""
import argparse
import signal
import sys
import threading

parser = argparse.ArgumentParser(allow_abbrev=False)
parser.add_argument("--version", action="store_true")
parser.add_argument("--model")
parser.add_argument("--alias", default="model")
parser.add_argument("--host", default="127.0.0.1")
parser.add_argument("--port", type=int, default=8080)
parser.add_argument("--ctx-size", type=int, default=2048)
parser.add_argument("--parallel", type=int, default=1)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--no-cache-prompt", action="store_true")
parser.add_argument("--spec-ngram", action="store_true", help="speculate from n-grams of the context")
options = parser.parse_args()

import xllamacpp  # noqa: E402 - a wrong flag should not wait for the library

if options.version:
    print("xllamacpp", getattr(xllamacpp, "__version__", "unknown"))
    sys.exit(0)
if not options.model:
    parser.error("--model is needed")

stop = threading.Event()
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: stop.set())

params = xllamacpp.CommonParams()
params.model.path = options.model
params.model_alias = [options.alias]
params.hostnames = [options.host]
params.port = options.port
params.n_ctx = options.ctx_size
params.n_parallel = options.parallel
params.cpuparams.n_threads = options.threads
params.cpuparams_batch.n_threads = options.threads
params.endpoint_metrics = True
params.cache_prompt = not options.no_cache_prompt
if options.no_cache_prompt:
    params.cache_ram_mib = 0

if options.spec_ngram:
    params.speculative.types = [xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE]
    params.speculative.ngram_simple.size_n = 4
    params.speculative.ngram_simple.size_m = 8

server = xllamacpp.Server(params)
print("listening on", server.listening_address, flush=True)
stop.wait()
# The server's threads hold sockets that a normal interpreter exit would wait for.
import os  # noqa: E402

os._exit(0)
