"""Runs the cells of one notebook and tells over a channel of its own what happened.

    driver.py run PLAN CHANNEL    one notebook in this interpreter
    driver.py serve SOCKET        imports shared modules once, then forks a child per notebook
    driver.py probe QUERY         says which modules are here and where

PLAN is a JSON file. CHANNEL is a descriptor number or a file. Every event is one line:
the nonce of the plan, then JSON. Text on standard output proves nothing and is never
read for a verdict. What this file needs is bound before the notebook starts, so that a
notebook that replaces `json.dumps` or `os.write` changes nothing here.
"""

import ast
import builtins
import io
import json
import os
import re
import signal
import sys
import time
import types

HOOKS = "__verify_hooks__"
TEXT_LIMIT = 800
LINE_LIMIT = 4096
NAME_LIMIT = 200
BROAD = ("Exception", "BaseException", "AssertionError")
ALLOW_AWAIT = getattr(ast, "PyCF_ALLOW_TOP_LEVEL_AWAIT", 0)
COROUTINE = 0x80


def cut(text, limit=TEXT_LIMIT):
    return text if len(text) <= limit else text[:limit] + "…"


def encoder():
    """A function that gives one line of JSON as bytes. It never fails: half of a character
    pair, which UTF-8 does not have, becomes its escape as text; what JSON does not have
    becomes its text."""
    dumps = json.JSONEncoder(ensure_ascii=False, default=show).encode
    lone = re.compile("[\ud800-\udfff]").sub

    def escape(found):
        return "\\\\u%04x" % ord(found.group())

    def encode(value):
        return lone(escape, dumps(value)).encode("utf-8")

    return encode


class Channel:
    """Writes events; a partial line of another process cannot get between them."""

    def __init__(self, target, nonce):
        self.descriptor = keep_away(int(target)) if target.isdigit() else open_append(target)
        self.nonce = nonce
        self.write = os.write
        self.encode = encoder()

    def send(self, kind, /, **event):
        event["event"] = kind
        data = self.nonce.encode() + self.encode(event) + b"\n"
        while data:
            data = data[self.write(self.descriptor, data):]


def keep_away(descriptor):
    """Moves a descriptor out of the range that notebooks close by the dozen."""
    try:
        import fcntl

        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 512)
    except (ImportError, OSError, ValueError):
        return descriptor
    os.close(descriptor)
    return moved


def open_append(path):
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0))


class Watch:
    """What is known while the notebook runs: cells, running tests, expected failures."""

    def __init__(self, channel, steps, sentences):
        self.channel = channel
        self.steps = {step["file"]: step for step in steps}
        self.expected = {}
        self.sentences = sentences
        self.depth = 0
        self.step = None
        self.pid = os.getpid()
        self.getpid = os.getpid
        self.frame = sys._getframe

    # Frames ---------------------------------------------------------------

    def cell_of(self, frame):
        """The nearest step at or above a frame."""
        while frame is not None:
            step = self.steps.get(frame.f_code.co_filename)
            if step is not None:
                return step
            frame = frame.f_back
        return None

    def is_expected(self, frame):
        """Whether the notebook asks for a failure here: `try … else: raise`, `assertRaises`."""
        while frame is not None:
            for first, last in self.expected.get(frame.f_code.co_filename, ()):
                if first <= frame.f_lineno <= last:
                    return True
            frame = frame.f_back
        return False

    # Hooks that the rewritten test cells call --------------------------------

    def false(self, line):
        """An `assert` is false. Told before its message is computed, and whoever catches it."""
        frame = self.frame(1)
        step = self.steps.get(frame.f_code.co_filename)
        if step is not None and not self.is_expected(frame):
            self.channel.send("assert", cell=step["cell"], line=line, in_test=self.depth > 0)

    def failure(self, *message):
        error = AssertionError(*message)
        if message and not self.is_expected(self.frame(1)):
            self.channel.send("message", text=cut(show(message[0])))
        return error

    def caught(self, line, broad, expected, quiet):
        """A handler inside a test caught something."""
        error = sys.exc_info()[1]
        if error is not None and self.getpid() == self.pid:
            step = self.steps.get(self.frame(1).f_code.co_filename)
            self.channel.send(
                "caught",
                cell=step["cell"] if step else None,
                line=line,
                broad=broad,
                expected=expected,
                quiet=quiet,
                error=self.describe(error),
            )

    def test(self, name, line):
        """Decorator of every test function: tells when it is entered, left, raised."""

        def decorate(function):
            if isinstance(function, (staticmethod, classmethod)):
                return type(function)(decorate(function.__func__))
            if isinstance(function, type) or not callable(function):
                return function
            return self.wrap(function, name, line)

        return decorate

    def wrap(self, function, name, line):
        import functools
        import inspect

        if inspect.iscoroutinefunction(function):

            async def run(*args, **kwargs):
                with Running(self, name, line, run) as running:
                    running.result = await function(*args, **kwargs)
                    return running.result

        elif inspect.isgeneratorfunction(function):

            def run(*args, **kwargs):
                with Running(self, name, line, run) as running:
                    running.result = yield from function(*args, **kwargs)
                    return running.result

        else:

            def run(*args, **kwargs):
                with Running(self, name, line, run) as running:
                    running.result = function(*args, **kwargs)
                    return running.result

        return functools.update_wrapper(run, function)

    # What is printed -------------------------------------------------------

    def printed(self, line):
        """Looks for the marks of a test in one printed line."""
        stripped = line.strip()
        skip = stripped.startswith("\u23ed") or any(sentence in line for sentence in self.sentences)
        cross = "\u274c" in line
        if not (skip or cross):
            return
        printer = self.cell_of(self.frame(2))
        in_test = self.depth > 0 or (self.step is not None and self.step["role"] == "test")
        if printer is not None and in_test and printer["role"] != "answer":
            kind = "cross" if cross else "skip"
            self.channel.send("mark", mark=kind, text=cut(stripped, 200), cell=printer["cell"])

    # Errors ------------------------------------------------------------------

    def describe(self, error):
        """Type, message and place of the original of an error; an error whose own
        attributes are faulty is told without its place."""
        try:
            return self.describe_fully(error)
        except BaseException:  # noqa: BLE001 - an odd error must not hide itself
            return {
                "type": cut(show(type(error).__name__), NAME_LIMIT),
                "message": cut(show(error)),
                "not_implemented": isinstance(error, NotImplementedError),
                "exit": isinstance(error, SystemExit),
            }

    def describe_fully(self, error):
        original = self.original(error)
        told = {
            "type": type_name(original),
            "message": cut(show(original)),
            "not_implemented": isinstance(error, NotImplementedError),
            "skip": is_skip(error),
            "exit": isinstance(error, SystemExit),
            "outer": None if original is error else type_name(error),
            "missing": missing_name(original),
        }
        if told["outer"]:
            told["outer_message"] = cut(show(error), 200)
        told.update(self.place(original) or self.place(error) or {})
        return told

    def original(self, error):
        seen = set()
        while id(error) not in seen:
            seen.add(id(error))
            below = error.__cause__
            if below is None and not error.__suppress_context__ and self.raised_by_test(error):
                below = error.__context__
            if below is None or not self.place(below):
                return error
            error = below
        return error

    def raised_by_test(self, error):
        where = self.place(error)
        return where is not None and where["role"] == "test"

    def place(self, error):
        """The innermost frame of an error that lies in a cell."""
        if isinstance(error, SyntaxError) and error.filename in self.steps:
            step = self.steps[error.filename]
            return place_of(step, error.lineno, error.offset, None, None)
        found, trace = None, error.__traceback__
        while trace is not None:
            step = self.steps.get(trace.tb_frame.f_code.co_filename)
            if step is not None:
                found = (step, trace)
            trace = trace.tb_next
        if found is None:
            return None
        step, trace = found
        column, length = columns(step, trace)
        return place_of(step, trace.tb_lineno, column, length, trace.tb_frame.f_code.co_name)


def place_of(step, line, column, length, function):
    where = {"cell": step["cell"], "role": step["role"], "line": line or 1}
    if column:
        where["column"] = column
    if length:
        where["length"] = length
    if function and function != "<module>":
        where["function"] = cut(function, NAME_LIMIT)
    return where


def columns(step, trace):
    """1-based column and length in characters, where this Python knows them."""
    positions = getattr(trace.tb_frame.f_code, "co_positions", None)
    if positions is None:
        return None, None
    try:
        index = trace.tb_lasti // 2
        line, last, start, end = next(p for i, p in enumerate(positions()) if i == index)
        if line != trace.tb_lineno or start is None:
            return None, None
        text = step["lines"][line - 1].encode("utf-8")
        column = len(text[:start].decode("utf-8", "replace")) + 1
        return column, len(text[start:end].decode("utf-8", "replace")) if last == line else None
    except (StopIteration, IndexError, TypeError):
        return None, None


def type_name(error):
    kind = type(error)
    plain = kind.__module__ in ("builtins", "__main__")
    return cut(kind.__qualname__ if plain else "%s.%s" % (kind.__module__, kind.__qualname__), NAME_LIMIT)


def missing_name(error):
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    return None if name is None else cut(show(name), NAME_LIMIT)


def show(value):
    try:
        if isinstance(value, SyntaxError):
            return str(value.msg)
        return str(value)
    except BaseException as error:  # noqa: BLE001 - a message must not end the run
        return "<message raised %s>" % type(error).__name__


def is_skip(error):
    kind = type(error)
    names = {"%s.%s" % (base.__module__, base.__qualname__) for base in kind.__mro__}
    return bool(names & {"unittest.case.SkipTest", "_pytest.outcomes.Skipped"})


class Running:
    """One run of a test function."""

    def __init__(self, watch, name, line, function):
        self.watch, self.name, self.line, self.function = watch, name, line, function
        self.result = None

    def __enter__(self):
        watch = self.watch
        watch.depth += 1
        if watch.getpid() == watch.pid:
            watch.channel.send("enter", test=self.name, line=self.line)
        return self

    def __exit__(self, kind, error, trace):
        watch = self.watch
        watch.depth -= 1
        if watch.getpid() != watch.pid:
            return False
        if error is None:
            watch.channel.send("leave", test=self.name, line=self.line, returned_false=is_false(self.result))
        elif isinstance(error, GeneratorExit):
            watch.channel.send("leave", test=self.name, line=self.line, returned_false=False)
        else:
            wanted = getattr(self.function, "__unittest_expecting_failure__", False)
            expected = bool(wanted) or watch.is_expected(watch.frame(2))
            watch.channel.send("raise", test=self.name, line=self.line, expected=expected, error=watch.describe(error))
        return False


def is_false(value):
    return value is False or (type(value).__name__ in ("bool_", "bool") and not value)


class Screen(io.TextIOWrapper):
    """Standard output that shows each line to the watch before it leaves."""

    def attach(self, watch):
        self.watch = watch
        self.pending = ""

    def write(self, text):
        count = super().write(text)
        if self.watch.depth or (self.watch.step is not None and self.watch.step["role"] == "test"):
            self.look(text)
        return count

    def look(self, text):
        head, newline, rest = text.rpartition("\n")
        if not newline:
            self.pending = (self.pending + text)[:LINE_LIMIT]
            return
        lines, self.pending = (self.pending + head).split("\n"), rest[:LINE_LIMIT]
        for line in lines:
            self.watch.printed(line[:LINE_LIMIT])


# Rewriting test cells ---------------------------------------------------------


class Instrument(ast.NodeTransformer):
    """Puts the hooks into a test cell. Lines and columns stay what they are."""

    def __init__(self, step):
        self.tests = {(test["name"], test["line"]) for test in step["tests"]}
        self.everything = step["pure"]
        self.in_test = 0
        self.scope = ""

    def hook(self, name, *args):
        function = ast.Attribute(ast.Name(HOOKS, ast.Load()), name, ast.Load())
        return ast.Call(function, list(args), [])

    def visit_ClassDef(self, node):
        outer, self.scope = self.scope, self.scope + node.name + "."
        self.generic_visit(node)
        self.scope = outer
        return node

    def visit_FunctionDef(self, node):
        name = self.scope + node.name
        is_test = (name, node.lineno) in self.tests
        outer, self.scope = self.scope, name + ".<locals>."
        self.in_test += is_test
        self.generic_visit(node)
        self.in_test -= is_test
        self.scope = outer
        if is_test:
            mark = self.hook("test", ast.Constant(name), ast.Constant(node.lineno))
            anchor = node.decorator_list[0] if node.decorator_list else node
            place(mark, anchor if node.decorator_list else head(node))
            node.decorator_list.insert(0, mark)
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Assert(self, node):
        self.generic_visit(node)
        if not (self.in_test or self.everything or not self.scope):
            return node
        told = ast.Expr(self.hook("false", ast.Constant(node.lineno)))
        raised = ast.Raise(self.hook("failure", *([node.msg] if node.msg else [])), None)
        test = ast.UnaryOp(ast.Not(), node.test)
        return place(ast.If(test, [told, raised], []), node)

    def visit_Try(self, node):
        self.generic_visit(node)
        if self.in_test:
            expected = demands_failure(node)
            for handler in node.handlers:
                kinds = handled(handler)
                broad = bool(kinds & set(BROAD))
                if broad or "NotImplementedError" in kinds:
                    call = self.hook(
                        "caught",
                        ast.Constant(handler.lineno),
                        ast.Constant(broad),
                        ast.Constant(expected),
                        ast.Constant(is_quiet(handler)),
                    )
                    handler.body.insert(0, place(ast.Expr(call), handler.body[0]))
        return node


def head(node):
    """A place on the `def` line, so that nothing of the function seems to start elsewhere."""
    mark = ast.Constant(None)
    mark.lineno = mark.end_lineno = node.lineno
    mark.col_offset = mark.end_col_offset = node.col_offset
    return mark


def place(new, old):
    """Gives `new` and what has no place below it the place of `old`."""
    for node in ast.walk(new):
        if "lineno" in node._attributes and not hasattr(node, "lineno"):
            ast.copy_location(node, old)
    return new


def handled(handler):
    """Names of the exceptions a handler takes; a bare one takes BaseException."""
    if handler.type is None:
        return {"BaseException"}
    parts = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {part.id if isinstance(part, ast.Name) else getattr(part, "attr", "") for part in parts}


def is_quiet(handler):
    """Whether a handler says nothing, or says that all is well."""
    texts = [n.value for s in handler.body for n in ast.walk(s) if isinstance(n, ast.Constant)]
    calls = [n for s in handler.body for n in ast.walk(s) if isinstance(n, ast.Call)]
    prints = any(isinstance(c.func, ast.Name) and c.func.id == "print" for c in calls)
    return not prints or any(isinstance(text, str) and "\u2705" in text for text in texts)


def demands_failure(node):
    """`try: f(-1)` … `else: raise`: the error is what the test asks for."""
    inside = [child for statement in node.orelse for child in ast.walk(statement)]
    calls = [child.func for child in inside if isinstance(child, ast.Call)]
    fails = any(getattr(call, "attr", getattr(call, "id", "")) == "fail" for call in calls)
    return fails or any(isinstance(child, (ast.Raise, ast.Assert)) for child in inside)


def expected_ranges(tree):
    """Line ranges in which the notebook asks for a failure."""
    ranges = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and demands_failure(node):
            if any(handled(handler) & set(BROAD) for handler in node.handlers):
                ranges.append((node.body[0].lineno, node.body[-1].end_lineno))
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
            names = {getattr(call.func, "attr", getattr(call.func, "id", "")) for call in calls}
            if names & {"raises", "assertRaises", "assertRaisesRegex"}:
                ranges.append((node.body[0].lineno, node.body[-1].end_lineno))
    return ranges


# Running -----------------------------------------------------------------------


def future_flags():
    import __future__

    return {name: getattr(__future__, name).compiler_flag for name in __future__.all_feature_names}


def compile_steps(watch, steps):
    """Every cell is compiled on its own before any runs; futures carry over."""
    known, flags, codes = future_flags(), 0, []
    for step in steps:
        watch.step = step
        source = step["source"]
        tree = compile(source, step["file"], "exec", flags | ast.PyCF_ONLY_AST | ALLOW_AWAIT, True, 0)
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                for alias in node.names:
                    flags |= known.get(alias.name, 0)
        step["last"] = tree.body[-1].lineno if tree.body else 0
        if step["role"] == "test":
            watch.expected[step["file"]] = expected_ranges(tree)
            tree = Instrument(step).visit(tree)
        codes.append(compile(tree, step["file"], "exec", flags | ALLOW_AWAIT, True, 0))
    return codes


class Loop:
    """One event loop for the whole notebook, made when the first cell awaits."""

    def __init__(self):
        self.loop = None

    def run(self, coroutine):
        import asyncio

        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        return self.loop.run_until_complete(coroutine)


def run_cells(watch, steps, namespace):
    codes = compile_steps(watch, steps)
    loop = Loop()
    for step, code in zip(steps, codes):
        watch.step = step
        watch.channel.send("cell", cell=step["cell"])
        try:
            if code.co_flags & COROUTINE:
                loop.run(eval(code, namespace))
            else:
                exec(code, namespace)
        except SystemExit as error:
            if not tests_are_done(watch, step, steps, error):
                raise


def tests_are_done(watch, step, steps, error):
    """`unittest.main()` ends so, and so may the very last statement of the last cell."""
    trace, through_unittest, line = error.__traceback__, False, 0
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename.replace("\\", "/")
        through_unittest = through_unittest or name.endswith("unittest/main.py")
        if name == step["file"].replace("\\", "/") and trace.tb_frame.f_code.co_name == "<module>":
            line = trace.tb_lineno
        trace = trace.tb_next
    at_the_end = step is steps[-1] and step["role"] == "test" and line >= step["last"]
    return watch.depth == 0 and (through_unittest or (at_the_end and error.code in (None, 0)))


def watch_unittest(watch):
    """Failures inside `setUp` and skips by decorator never enter a test method."""
    import unittest

    def hook(name, kind):
        plain = getattr(unittest.TestResult, name)

        def told(self, test, detail=None, *rest):
            error = (rest[0] if name == "addSubTest" else detail) if name != "addSkip" else None
            failed = name in ("addSkip", "addUnexpectedSuccess") or error is not None
            if failed and watch.getpid() == watch.pid:
                described = watch.describe(error[1]) if error and error[1] is not None else None
                reason = cut(show(detail), 200) if name == "addSkip" else None
                watch.channel.send("unittest", kind=kind, test=short(test), error=described, reason=reason)
            return plain(self, test) if detail is None and not rest else plain(self, test, detail, *rest)

        setattr(unittest.TestResult, name, told)

    hook("addFailure", "failure")
    hook("addError", "failure")
    hook("addSubTest", "failure")
    hook("addUnexpectedSuccess", "failure")
    hook("addSkip", "skip")


def short(test):
    try:
        return cut(".".join(test.id().split(".")[-2:]), NAME_LIMIT)
    except BaseException:  # noqa: BLE001 - only a name
        return cut(show(test), NAME_LIMIT)


def display(*values, **_options):
    """What a kernel offers: here it only prints."""
    for value in values:
        print(repr(value))


def prepare(plan, watch):
    """A `__main__` that shares nothing with this file."""
    main = types.ModuleType("__main__")
    main.__file__ = plan["script"]
    main.__builtins__ = builtins
    sys.modules["__main__"] = main
    setattr(builtins, HOOKS, watch)
    if not hasattr(builtins, "display"):
        builtins.display = display
    sys.argv = [plan["script"]]
    sys.path[:] = plan["path"] + [entry for entry in sys.path if entry not in plan["path"]]
    os.chdir(plan["cwd"])
    import random

    random.seed(0)
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        numpy.random.seed(0)
    if any("unittest" in step["source"] for step in plan["steps"]):
        watch_unittest(watch)
    return main.__dict__


def own_streams(watch):
    """Standard output in our hands; closing it closes no descriptor."""
    raw = io.BufferedWriter(io.FileIO(1, "wb", closefd=False), 1 << 16)
    screen = Screen(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)
    screen.attach(watch)
    sys.stdout = sys.__stdout__ = screen
    errors = io.BufferedWriter(io.FileIO(2, "wb", closefd=False), 1 << 16)
    sys.stderr = sys.__stderr__ = io.TextIOWrapper(
        errors, encoding="utf-8", errors="backslashreplace", line_buffering=True
    )
    return screen


def limit_memory(limit):
    """Sets the limit; gives a function that makes a little room for the last words."""
    if not limit:
        return lambda: None
    import resource

    # Private writable memory; RLIMIT_AS would count what the server mapped before the fork.
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    reserve = limit + (16 << 20)
    already = resource.getrlimit(kind)[1]
    if already != resource.RLIM_INFINITY:
        reserve = min(reserve, already)
    resource.setrlimit(kind, (min(limit, reserve), reserve))
    return lambda: resource.setrlimit(kind, (reserve, reserve))


def where_on_request(plan):
    """Signal USR2 writes the stack of every thread, even from inside a long C call."""
    try:
        import faulthandler

        stack = open(plan["stack"], "w")
        faulthandler.register(signal.SIGUSR2, stack, all_threads=False)
        return stack
    except (ImportError, AttributeError, OSError):
        return None


def run(plan_path, target):
    with open(plan_path, encoding="utf-8") as file:
        plan = json.load(file)
    # It holds the nonce.
    os.remove(plan_path)
    os.environ.update(plan["environment"])
    for step in plan["steps"]:
        with open(step["file"], encoding="utf-8") as file:
            step["source"] = file.read()
        step["lines"] = step["source"].split("\n")
    channel = Channel(target, plan["nonce"])
    watch = Watch(channel, plan["steps"], plan["sentences"])
    screen = own_streams(watch)
    stack = where_on_request(plan)
    flush, leave, pause, pid = screen.flush, os._exit, time.sleep, watch.getpid()
    channel.send("start")
    make_room = limit_memory(plan["memory"])
    try:
        namespace = prepare(plan, watch)
        run_cells(watch, plan["steps"], namespace)
        end = ("end", {})
    except BaseException as error:  # noqa: BLE001 - told, not hidden
        make_room()
        end = ("error", {"error": watch.describe(error)})
        if isinstance(error, SystemExit):
            end[1]["code"] = cut(show(error.code), 100)
    if watch.getpid() != pid:
        # A copy made by `os.fork` came back up here: its end is not the notebook's.
        leave(0 if end[0] == "end" else 1)
    try:
        flush()
    except (OSError, ValueError):
        pass
    channel.send(end[0], **end[1])
    del stack
    # The verdict is out; verify ends this process with everything it started.
    while True:
        pause(3600)


# The fork server ------------------------------------------------------------------


def own_session():
    try:
        os.setsid()
    except OSError:
        pass
    if sys.platform == "linux":
        try:
            import ctypes

            ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
        except (ImportError, OSError, AttributeError):
            pass


def preload(modules, paths):
    """Imports what notebooks share. One that fails is left to the notebook that wants it."""
    import importlib
    import threading

    kept, failed, before = list(sys.path), {}, threading.active_count()
    for module in modules:
        sys.path[:] = paths + kept
        try:
            importlib.import_module(module)
        except BaseException as error:  # noqa: BLE001 - told
            failed[module] = type_name(error) + ": " + cut(show(error), 200)
    sys.path[:] = kept
    unsafe = None
    if threading.active_count() > before:
        unsafe = "an imported module started a thread"
    torch = sys.modules.get("torch")
    if torch is not None and getattr(torch, "cuda", None) and torch.cuda.is_initialized():
        unsafe = "an imported module initialized CUDA"
    return failed, unsafe


def receive(connection):
    """One request: a line of JSON, and the descriptors of output and channel."""
    import array
    import socket

    room = socket.CMSG_SPACE(2 * array.array("i").itemsize)
    data, extra, _flags, _from = connection.recvmsg(1 << 16, room)
    descriptors = array.array("i")
    for level, kind, payload in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(payload[: len(payload) - len(payload) % descriptors.itemsize])
    return (json.loads(data) if data else None), list(descriptors)


def serve(number):
    import select
    import socket

    connection = socket.socket(fileno=int(number))
    connection.set_inheritable(False)
    hello, _ = receive(connection)
    failed, unsafe = preload(hello["modules"], hello["paths"])
    encode = encoder()
    connection.sendall(encode({"ready": True, "failed": failed, "unsafe": unsafe}) + b"\n")
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker)
    children = {}
    while True:
        ready, _, _ = select.select([connection, wake], [], [], 1.0)
        if wake in ready:
            drain(wake)
        reap(children, connection)
        if connection not in ready:
            continue
        request, descriptors = receive(connection)
        if request is None:
            return
        child = os.fork()
        if child == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            output, channel = descriptors
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.close(output)
            for leftover in (connection.detach(), wake, waker):
                os.close(leftover)
            own_session()
            run(request["plan"], str(channel))
        for descriptor in descriptors:
            os.close(descriptor)
        children[child] = request["id"]
        connection.sendall((json.dumps({"id": request["id"], "pid": child}) + "\n").encode())


def drain(descriptor):
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        pass


def reap(children, connection):
    for child in list(children):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            answer = {"id": children.pop(child), "status": status}
            connection.sendall((json.dumps(answer) + "\n").encode())


# What is here ----------------------------------------------------------------------


def probe(query_path):
    """Version and path of this interpreter, and where modules would come from."""
    import importlib.util

    with open(query_path, encoding="utf-8") as file:
        query = json.load(file)
    kept, found = sys.path[1:], []
    for ask in query["asks"]:
        sys.path[:] = ask["path"] + kept
        try:
            spec = importlib.util.find_spec(ask["module"])
        except (ImportError, ValueError):
            spec = None
        origin = None
        if spec is not None:
            origin = spec.origin or (list(spec.submodule_search_locations or []) or ["?"])[0]
        found.append({"origin": origin, "standard": is_standard(ask["module"], origin)})
    answer = {
        "executable": sys.executable,
        "version": "%d.%d.%d" % sys.version_info[:3],
        "user_base": user_base(),
        "found": found,
    }
    sys.stdout.flush()
    os.write(1, encoder()(answer) + b"\n")


def is_standard(module, origin):
    known = getattr(sys, "stdlib_module_names", sys.builtin_module_names)
    if module in known:
        return True
    home = os.path.dirname(os.__file__)
    return bool(origin) and os.path.dirname(origin).startswith(home) and "-packages" not in origin


def user_base():
    try:
        import site

        return site.getuserbase()
    except (ImportError, AttributeError):
        return None


def main():
    command, rest = sys.argv[1], sys.argv[2:]
    # The folder of this file is no place to import from.
    own = os.path.dirname(os.path.abspath(__file__))
    if command != "probe":
        sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != own]
    {"run": run, "serve": serve, "probe": probe}[command](*rest)


main()
