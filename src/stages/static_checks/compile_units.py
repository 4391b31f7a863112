# Compiles units from standard input, one line of JSON each on standard output.
# A unit: a line "m LENGTH" (module) or "c LENGTH" (notebook cell), then the bytes.
import ast
import json
import sys
import warnings

warnings.simplefilter("ignore")
source, out = sys.stdin.buffer, sys.stdout
top_level_await = getattr(ast, "PyCF_ALLOW_TOP_LEVEL_AWAIT", 0)
out.write("%d.%d.%d\n" % sys.version_info[:3])
out.flush()
for head in iter(source.readline, b""):
    kind, length = head.split()
    text = source.read(int(length)).decode("utf-8")
    verdict = None
    try:
        compile(text, "<unit>", "exec", top_level_await if kind == b"c" else 0, True)
    except SyntaxError as error:
        verdict = [error.lineno, "%s: %s" % (type(error).__name__, error.msg)]
    except Exception as error:
        verdict = [None, "%s: %s" % (type(error).__name__, error)]
    if verdict:
        # Half of a character pair is no text that a reader of JSON would take.
        verdict[1] = verdict[1].encode("utf-8", "backslashreplace").decode("utf-8")
    out.write(json.dumps(verdict) + "\n")
    out.flush()
