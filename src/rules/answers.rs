//! Rules of `verify answers`.

super::rules! {
    TEST_FAILED = "answers/test-failed" Error {
        message: "{message}" / "{message}";
        help: "" / "";
        why: "The reference answer does not pass the notebook's own test."
           / "参考答案没有通过笔记本自带的测试。";
    }
    ASSERTION_SWALLOWED = "answers/assertion-swallowed" Error {
        message: "this assertion is false, and a handler hides it: {message}"
               / "该断言不成立，却被异常处理吞掉了：{message}";
        help: "let the error through: catch the exceptions you mean, or end the handler with `raise`"
            / "请让错误抛出：只捕获预期的异常，或在处理块末尾写 `raise`";
        why: "A handler that catches AssertionError makes a wrong answer look right; that the test printed a line and went on does not make the assertion true."
           / "捕获 AssertionError 会让错误答案看起来是对的；打印一行再继续，并不会让断言成立。";
    }
    ERROR_SWALLOWED = "answers/error-swallowed" Error {
        message: "the test caught this error and went on: {message}" / "测试捕获了该错误后继续运行：{message}";
        help: "end the handler with `raise`, so that a failure is a failure"
            / "请在处理块末尾写 `raise`，让失败就是失败";
        why: "The test itself says that it failed, and still returns normally: every tool that only looks at the exit status counts that as a pass."
           / "测试自己打印了失败，却正常返回：只看退出码的工具都会把它算作通过。";
    }
    RETURNED_FALSE = "answers/test-returned-false" Error {
        message: "{target} returned False" / "{target} 返回了 False";
        help: "use `assert` instead of `return`" / "请用 `assert` 代替 `return`";
        why: "Nobody looks at the value a test returns, so a comparison in a return statement tests nothing."
           / "没有人会看测试的返回值，把比较写在 return 里等于没有测试。";
    }
    EARLY_EXIT = "answers/early-exit" Error {
        message: "the notebook ended before its tests were done: {how}" / "笔记本在测试完成之前就退出了：{how}";
        help: "remove the exit; a notebook ends with its last cell" / "请去掉退出语句；笔记本应当运行到最后一个单元格";
        why: "Leaving early with status 0 skips every test that follows. Only the end of the last cell is proof."
           / "以 0 状态提前退出会跳过后面的所有测试。只有运行到最后一个单元格才算数。";
    }
    KILLED = "answers/killed" Error {
        message: "the process died while this cell ran: {how}" / "运行该单元格时进程终止：{how}";
        help: "run the cell alone; native code, recursion and memory are the usual suspects"
            / "请单独运行该单元格；常见原因是原生代码、递归过深和内存不足";
        why: "A process that dies has not reached its tests, whatever it printed before."
           / "进程终止就没有跑完测试，无论之前打印了什么。";
    }
    TESTS_NOT_CALLED = "answers/tests-not-called" Error {
        message: "no test was called; {target} is only defined" / "没有调用任何测试；{target} 只是定义了而已";
        help: "call {target}() at the end of the cell" / "请在单元格末尾调用 {target}()";
        why: "A test that is defined and never called proves nothing, and a wrong answer passes unseen."
           / "只定义不调用的测试什么也证明不了，错误答案会悄悄通过。";
    }
    TEST_NOT_CALLED = "answers/test-not-called" Warning {
        message: "{target} was never called" / "{target} 从未被调用";
        help: "call it, or remove it" / "请调用它，或将其删除";
        why: "Other tests ran, this one did not: what it would have shown is unknown."
           / "其他测试运行了，这个没有：它本应说明的问题无从得知。";
    }
    TIMEOUT = "answers/timeout" Error {
        message: "not done after {seconds} s" / "{seconds} 秒后仍未完成";
        help: "raise the limit with --timeout or `answers.timeout_s`, or make the example smaller"
            / "请用 --timeout 或 `answers.timeout_s` 调大时限，或缩小示例规模";
        why: "A notebook that does not end cannot be judged; everything it started was stopped."
           / "跑不完的笔记本无法判定；它启动的一切都已停止。";
    }
    SYNTAX = "answers/syntax" Error {
        message: "{message}" / "{message}";
        help: "" / "";
        why: "Each cell of a notebook is compiled on its own; one that does not compile runs for nobody."
           / "笔记本的每个单元格单独编译；无法编译的单元格对谁都运行不了。";
    }
    UNREADABLE = "answers/unreadable" Error {
        message: "this is no notebook: {cause}" / "不是可读的笔记本：{cause}";
        help: "open it in an editor: a half-merged file has lines that begin with <<<<<<< or >>>>>>>"
            / "请用编辑器打开检查：未合并完的文件里会有以 <<<<<<< 或 >>>>>>> 开头的行";
        why: "A notebook that cannot be read was not tested."
           / "读不了的笔记本没有被测试。";
    }
    NO_ANSWER_SECTION = "answers/no-answer-section" Error {
        message: "no heading and no tag opens an answer section" / "没有标题或标签标明答案区";
        help: "add a heading such as `## {marker}`, tag the cells `tutorial-answer`, or list the folder under `course.inline_notebooks`"
            / "请添加 `## {marker}` 这样的标题，或给单元格加上 `tutorial-answer` 标签，或把文件夹列入 `course.inline_notebooks`";
        why: "Without an answer section there is nothing to hold against the tests."
           / "没有答案区就没有可以拿来测试的内容。";
    }
    NO_ANSWER_CODE = "answers/no-answer-code" Error {
        message: "the answer section holds no code" / "答案区没有代码";
        help: "write the reference answer into a code cell below the heading" / "请在标题下方的代码单元格中写出参考答案";
        why: "An answer that is not there cannot be right."
           / "不存在的答案不可能是对的。";
    }
    NO_CODE = "answers/no-code" Error {
        message: "the notebook holds no code that could run" / "笔记本中没有可以运行的代码";
        help: "" / "";
        why: "A notebook without code was asked for by name or lies in a folder of exercises, and there is nothing to test in it."
           / "该笔记本被点名或位于练习目录中，但其中没有可测试的内容。";
    }
    NO_TEST = "answers/no-test" Error {
        message: "no test function and no cell tagged `tutorial-test`" / "没有测试函数，也没有带 `tutorial-test` 标签的单元格";
        help: "add a cell with `def test_…():` and call it" / "请添加包含 `def test_…():` 的单元格并调用它";
        why: "An answer that nothing tests is unproven."
           / "没有测试的答案等于没有证明。";
    }
    SKIPPED = "answers/skipped" Note {
        message: "the test declined to run: {reason}" / "测试声明跳过：{reason}";
        help: "" / "";
        why: "A skip says that nothing was verified on this machine; `--fail-on-skip` makes it a failure where the hardware is there."
           / "跳过意味着在这台机器上什么也没有验证；在具备硬件的机器上可用 `--fail-on-skip` 将其视为失败。";
    }
    SKIP_FORBIDDEN = "answers/skip-forbidden" Error {
        message: "the test was skipped, and --fail-on-skip is set" / "测试被跳过，而 --fail-on-skip 不允许跳过";
        help: "look for what the test says is missing" / "请检查测试所说缺少的条件";
        why: "On a machine that has the hardware a skip means that the test did not find it."
           / "在具备硬件的机器上跳过，说明测试没有找到它。";
    }
    QUESTION_ALREADY_SOLVED = "answers/question-already-solved" Warning {
        message: "the tests pass on the question area" / "题目区已经能通过测试";
        help: "put `raise NotImplementedError` where the learner is to write, or write a test that needs the answer"
            / "请在学习者作答处写 `raise NotImplementedError`，或让测试真正依赖答案";
        why: "A test that passes on the question proves nothing about the answer."
           / "在题目上就能通过的测试，对答案什么也证明不了。";
    }
    CONTEXT_USED = "answers/context-used" Note {
        message: "answer or test lean on {names} of this cell" / "答案或测试用到了该单元格的 {names}";
        help: "" / "";
        why: "The answer does not stand alone: a reader who runs only the answer section gets a NameError."
           / "答案不能独立运行：只运行答案区的读者会遇到 NameError。";
    }
    MAGIC_NOT_RUN = "answers/magic-not-run" Note {
        message: "`{magic}` was not run" / "没有执行 `{magic}`";
        help: "" / "";
        why: "A check installs nothing and runs no shell commands; magics are left out, line for line."
           / "检查过程不安装软件，也不执行 shell 命令；魔法命令会按行跳过。";
    }
    MAGIC_RESULT_NEEDED = "answers/magic-result-needed" Error {
        message: "`{name}` comes from `{magic}`, which is not run" / "`{name}` 来自 `{magic}`，而它不会被执行";
        help: "bind `{name}` in plain Python" / "请用普通 Python 代码给 `{name}` 赋值";
        why: "The value of a shell escape or magic differs from machine to machine, and a check runs none."
           / "shell 转义和魔法命令的结果因机器而异，检查过程不会执行它们。";
    }
    LEFT_PROCESS = "answers/left-process" Warning {
        message: "the notebook left a process running: {command}" / "笔记本遗留了正在运行的进程：{command}";
        help: "wait for it or end it in the notebook; it has been stopped" / "请在笔记本中等待或结束它；该进程已被停止";
        why: "What a notebook starts and does not end stays on the reader's machine."
           / "笔记本启动而不结束的进程会留在读者的机器上。";
    }
    CHANGED_FILES = "answers/changed-files" Error {
        message: "{change} while the notebooks ran" / "笔记本运行期间{change}";
        help: "write to a path relative to the notebook, or to tempfile.mkdtemp()"
            / "请写到相对于笔记本的路径，或 tempfile.mkdtemp() 创建的目录";
        why: "A check must leave the repository as it found it."
           / "检查必须让仓库保持原样。";
    }
    MISSING_MODULE = "answers/missing-module" Error {
        message: "Python has no module `{module}`; notebooks that need it: {count}" / "Python 中没有模块 `{module}`；需要它的笔记本：{count} 个";
        help: "{install}" / "{install}";
        why: "Notebooks that import it could not be judged. They count as errors, never as passed."
           / "导入它的笔记本无法判定，按错误计，绝不算通过。";
    }
    NO_PYTHON = "answers/no-python" Error {
        message: "no Python interpreter: {cause}" / "没有可用的 Python 解释器：{cause}";
        help: "install Python 3.8 or newer, or name one with --python or `answers.python`"
            / "请安装 Python 3.8 或更新版本，或用 --python 或 `answers.python` 指定";
        why: "Without an interpreter no answer can be run, and what was not run cannot pass."
           / "没有解释器就无法运行答案，没有运行就不能算通过。";
    }
    NO_PROCESS = "answers/no-process" Error {
        message: "the process that cleans up after a run cannot be started: {cause}" / "无法启动负责善后清理的进程：{cause}";
        help: "raise the limit of processes (`ulimit -u`), or end other programs" / "请调大进程数上限（`ulimit -u`），或结束其他程序";
        why: "Without it an interrupted run would leave processes and files behind, so nothing was run."
           / "没有它，中断的运行会遗留进程和文件，因此什么也没有运行。";
    }
    NO_SCRATCH = "answers/no-scratch" Error {
        message: "no scratch folder can be made in the temporary folder {folder}: {cause}"
               / "无法在临时目录 {folder} 中创建工作目录：{cause}";
        help: "set TMPDIR to a folder that exists and can be written" / "请把 TMPDIR 设为存在且可写的目录";
        why: "Notebooks run in a scratch folder, so that they leave the repository as it was; without one nothing was run."
           / "笔记本在临时工作目录中运行，以保持仓库原样；没有该目录就什么也没有运行。";
    }
    INTERPRETER_FAILED = "answers/interpreter-failed" Error {
        message: "the interpreter ended before the first cell: {how}" / "解释器在第一个单元格之前就退出了：{how}";
        help: "run `python -c pass` with the same interpreter" / "请用同一个解释器运行 `python -c pass` 试试";
        why: "Nothing of the notebook was run."
           / "笔记本的代码一行也没有运行。";
    }
    PRELOAD_FAILED = "answers/preload-failed" Note {
        message: "shared modules were not imported ahead: {cause}" / "没有预先导入公共模块：{cause}";
        help: "each notebook got an interpreter of its own" / "每个笔记本改用各自的解释器";
        why: "Importing once and forking is only faster; verdicts are the same without it."
           / "导入一次再 fork 只是更快；不这样做判定结果也相同。";
    }
    SANDBOX = "answers/sandbox" Note {
        message: "notebooks ran with: {held}" / "笔记本的运行限制：{held}";
        help: "" / "";
        why: "Courses test pull requests from strangers; the report says which walls held on this machine."
           / "课程会测试来自陌生人的 PR；报告说明在这台机器上哪些隔离措施生效。";
    }
    SANDBOX_UNAVAILABLE = "answers/sandbox-unavailable" Error {
        message: "--sandbox on, but this machine gives no {what}" / "指定了 --sandbox on，但这台机器不支持{what}";
        help: "use `--sandbox auto` to run with what there is" / "可用 `--sandbox auto` 以现有的隔离措施运行";
        why: "A wall that was asked for and is not there must not be passed over in silence."
           / "要求的隔离措施缺失时不能悄悄略过。";
    }
    PROVED = "answers/proved" Note {
        message: "changed answers and question areas that the tests were held against: {count}" / "用来检验测试的改动答案与题目区数量：{count}";
        help: "" / "";
        why: "`--prove` tests the tests: each answer function is changed on purpose, and what no test notices is listed."
           / "`--prove` 检验测试本身：逐个故意改坏答案函数，列出没有测试能发现的改动。";
    }
    UNTESTED = "answers/untested" Warning {
        message: "no test notices when {target} is wrong: {mutant}" / "{target} 出错时没有测试能发现：{mutant}";
        help: "add an assertion that depends on what {target} gives" / "请补充依赖 {target} 结果的断言";
        why: "The tests pass although the function was changed on purpose, so they say nothing about it."
           / "故意改坏该函数后测试仍然通过，说明测试没有覆盖它。";
    }
}
