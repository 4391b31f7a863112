//! Rules of `verify static`.

super::rules! {
    SYNTAX = "static/syntax" Error {
        message: "{message}" / "{message}";
        help: "" / "";
        why: "A file or cell that does not compile cannot run for anybody, whatever is written below it."
           / "无法编译的文件或单元格对任何人都运行不了，后面写得再好也没有用。";
    }
    CHARACTER = "static/character" Error {
        message: "{message}" / "{message}";
        help: "" / "";
        why: "Full-width punctuation and invisible characters come in with an input method or a copied web page; they look right and are no Python."
           / "全角标点和不可见字符常由输入法或网页复制带入，看起来没问题，却不是合法的 Python。";
    }
    NEWER_SYNTAX = "static/newer-syntax" Error {
        message: "{message}" / "{message}";
        help: "" / "";
        why: "A checker that asks the Python at hand accepts what the readers' older Python refuses; this one judges for the version that the course promises."
           / "用本机 Python 检查会放过读者较旧版本不支持的语法；这里按课程承诺的版本来判断。";
    }
    CONFLICT = "static/conflict-marker" Error {
        message: "a merge conflict was committed unresolved" / "合并冲突尚未解决就提交了";
        help: "keep one side, delete the lines with `<<<<<<<`, `=======` and `>>>>>>>`; what follows was not judged"
            / "请保留其中一侧并删除 `<<<<<<<`、`=======`、`>>>>>>>` 行；其后的内容未检查";
        why: "Git leaves both sides of a conflict in the file; neither Python nor Jupyter can read that."
           / "Git 会把冲突的两侧都留在文件里，Python 和 Jupyter 都无法读取。";
    }
    ENCODING = "static/encoding" Error {
        message: "{message}" / "{message}";
        help: "save the file as UTF-8, or declare its encoding in the first line: `# -*- coding: gbk -*-`"
            / "请把文件保存为 UTF-8，或在第一行声明编码：`# -*- coding: gbk -*-`";
        why: "Python reads a source file as UTF-8 unless its first two lines declare another encoding (PEP 263)."
           / "除非前两行声明了其他编码，Python 一律按 UTF-8 读取源文件（PEP 263）。";
    }
    NULL_BYTE = "static/null-byte" Error {
        message: "{message}" / "{message}";
        help: "the file may be damaged or saved as UTF-16; save it again as UTF-8" / "文件可能已损坏，或被保存成了 UTF-16；请重新保存为 UTF-8";
        why: "Python refuses source text with null bytes." / "Python 不接受含空字节的源代码。";
    }
    TOO_DEEP = "static/too-deep" Error {
        message: "this is nested too deeply: Python gives up with RecursionError" / "嵌套过深：Python 会以 RecursionError 放弃编译";
        help: "split the expression into several statements" / "请把表达式拆成多条语句";
        why: "CPython stops compiling at about 3000 levels of nesting; other tools crash on such a file and hide the others."
           / "CPython 嵌套约 3000 层就会停止编译；其他工具遇到这种文件会直接崩溃，连累其余文件。";
    }
    TOO_LARGE = "static/too-large" Error {
        message: "the file has {size} MiB; files over {limit} MiB are not judged" / "文件有 {size} MiB；超过 {limit} MiB 的文件不检查";
        help: "move the data out of the source file, or exclude it with `course.exclude`" / "请把数据移出源文件，或用 `course.exclude` 排除它";
        why: "A source file of this size holds data, not code; what was not judged cannot pass."
           / "这么大的源文件装的是数据而不是代码；没有检查过就不能算通过。";
    }
    CHECKER = "static/checker-failed" Error {
        message: "the checker itself failed on this file: {cause}" / "检查程序自身在该文件上出错：{cause}";
        help: "this is a fault of verify; please report it with the file" / "这是 verify 的缺陷，请附上该文件反馈";
        why: "A file that could not be judged must not pass, and must not hide the others."
           / "没能检查的文件不能算通过，也不能影响其他文件。";
    }
    AUTOMAGIC = "static/automagic" Warning {
        message: "{message}" / "{message}";
        help: "" / "";
        why: "IPython guesses the `%` of a magic only in a cell of one line, and no other tool guesses at all."
           / "IPython 只在单行单元格里自动补全 `%`，其他工具完全不会补全。";
    }
    NOTEBOOK_JSON = "static/notebook-json" Error {
        message: "the notebook is not valid JSON: {message}" / "notebook 不是合法的 JSON：{message}";
        help: "open the file as text at this place, or restore it from the last commit that worked" / "请用文本编辑器打开此处修正，或从上一个正常的提交恢复";
        why: "Jupyter cannot open a notebook that is not JSON, and no cell of it can be judged."
           / "不是 JSON 的 notebook，Jupyter 打不开，其中的单元格也无法检查。";
    }
    NOTEBOOK_FORMAT = "static/notebook-format" Error {
        message: "{message}" / "{message}";
        help: "open and save it with a current Jupyter, or run `jupyter nbconvert --to notebook --inplace {path}`"
            / "请用新版 Jupyter 打开并保存，或运行 `jupyter nbconvert --to notebook --inplace {path}`";
        why: "Notebooks have had a flat list of cells since format 4 (2014); tools of today read nothing else."
           / "自格式 4（2014 年）起，notebook 使用扁平的单元格列表；如今的工具只读这种格式。";
    }
    NOTEBOOK_CELL = "static/notebook-cell" Error {
        message: "{message}" / "{message}";
        help: "correct the cell in the JSON text, or restore it from the last commit that worked" / "请在 JSON 文本中修正该单元格，或从上一个正常的提交恢复";
        why: "A cell without type or source cannot be shown or run." / "缺少类型或内容的单元格既无法显示也无法运行。";
    }
    NOTEBOOK_BOM = "static/byte-order-mark" Note {
        message: "the notebook begins with a byte-order mark" / "notebook 以字节顺序标记（BOM）开头";
        help: "save it as UTF-8 without BOM; some JSON readers refuse the mark" / "请保存为不带 BOM 的 UTF-8；有些 JSON 解析器不接受 BOM";
        why: "JSON has no byte-order mark; Jupyter reads it, other tools do not."
           / "JSON 不应带 BOM；Jupyter 能读，其他工具未必。";
    }
    CELL_ID = "static/cell-id" Warning {
        message: "{message}" / "{message}";
        help: "open and save the notebook with a current Jupyter; it gives every cell an id of its own" / "用新版 Jupyter 打开并保存即可，它会给每个单元格分配唯一的 id";
        why: "Since format 4.5 every cell needs an id of its own; viewers refuse a notebook without, and editors mix up cells that share one."
           / "自格式 4.5 起每个单元格都需要唯一的 id；缺失时有的查看器拒绝打开，重复时编辑器会弄混单元格。";
    }
    KERNELSPEC = "static/kernelspec" Warning {
        message: "the notebook asks for the kernel `{kernel}`, which readers do not have" / "notebook 指定了内核 `{kernel}`，读者的机器上没有它";
        help: "choose the kernel `python3` and save" / "请选择内核 `python3` 后保存";
        why: "The name of a private environment in the metadata makes Jupyter ask for a kernel, and CI fail."
           / "元数据里若是私人环境的内核名，Jupyter 会要求重新选择内核，CI 也会失败。";
    }
    STORED_ERROR = "static/stored-error" Warning {
        message: "the cell was saved with an error in its output ({error})" / "单元格保存的输出里有错误（{error}）";
        help: "run the cell again, or clear its outputs before committing" / "请重新运行该单元格，或在提交前清除输出";
        why: "The reader sees a traceback where the course shows a result." / "读者会在本该是结果的地方看到报错信息。";
    }
    BACKEND_SWITCH = "static/backend-switch" Warning {
        message: "`{switch}` is committed as `True`" / "`{switch}` 以 `True` 提交了";
        help: "set it to `False` before committing; the reader turns it on" / "提交前请改回 `False`，由读者自己打开";
        why: "With the switch on, the notebook starts a real backend on the machine of everybody who runs it."
           / "开关打开时，任何人运行 notebook 都会在自己机器上启动真实后端。";
    }
    SWALLOWED_ASSERTION = "static/swallowed-assertion" Warning {
        message: "`{test}` catches the AssertionError of its own assertions" / "`{test}` 捕获了自己断言抛出的 AssertionError";
        help: "catch only what the test expects, or `raise` again at the end of the handler" / "请只捕获测试预期的异常，或在处理末尾再次 `raise`";
        why: "A test that swallows its own failure passes whatever the answer does." / "吞掉自身失败的测试，无论答案对错都会通过。";
    }
    ASSERT_TUPLE = "static/assert-tuple" Warning {
        message: "this assertion is always true: it tests a tuple" / "该断言恒为真：它判断的是一个元组";
        help: "write `assert condition, \"message\"` without the parentheses" / "请去掉括号，写成 `assert 条件, \"说明\"`";
        why: "`assert (condition, \"message\")` asks whether a tuple of two is empty; it never is."
           / "`assert (条件, \"说明\")` 判断的是含两个元素的元组是否为空，它永远为真。";
    }
    TEST_NEVER_CALLED = "static/test-never-called" Warning {
        message: "`{test}` is defined and never called" / "`{test}` 定义了却从未被调用";
        help: "call `{test}()` in the notebook" / "请在 notebook 中调用 `{test}()`";
        why: "Defining a test proves nothing; notebooks have no runner that finds it." / "只定义测试什么也证明不了；notebook 没有会自动发现它的测试框架。";
    }
    TEST_RETURNS = "static/test-returns" Warning {
        message: "`{test}` returns its verdict instead of asserting it" / "`{test}` 返回了判断结果，而不是断言它";
        help: "write `assert …` instead of `return …`" / "请把 `return …` 改成 `assert …`";
        why: "A test that returns False does not fail; whoever calls it has to look." / "返回 False 的测试不会失败，除非调用者去检查返回值。";
    }
    DUPLICATE_TEST = "static/duplicate-test" Warning {
        message: "`{test}` is defined again before the first one was called{where}" / "`{test}` 在首次调用之前又被定义了一次{where}";
        help: "give the two tests different names" / "请给两个测试取不同的名字";
        why: "The second definition replaces the first, which then never runs." / "后一个定义会覆盖前一个，前一个就永远不会运行。";
    }
    ANSWER_WITHOUT_CODE = "static/answer-without-code" Warning {
        message: "the answer section holds no code cell" / "答案部分没有代码单元格";
        help: "put the reference answer below this heading, or remove the heading" / "请在该标题下放入参考代码，或去掉标题";
        why: "`verify answers` runs what stands below this heading; there is nothing to run."
           / "`verify answers` 会运行该标题下的代码，而这里没有可运行的内容。";
    }
    TOOL_MISSING = "static/tool-missing" Note {
        message: "{path} is named in `course.tools` and does not exist" / "`course.tools` 列出的 {path} 不存在";
        help: "correct the list in verify.toml, or add the file" / "请更正 verify.toml 中的列表，或补上该文件";
        why: "The tools of the course are compiled with it; one that is missing was not judged."
           / "课程工具会一并编译检查；缺失的文件没有被检查。";
    }
    NOTEBOOK_MISSING = "static/notebook-missing" Note {
        message: "the notebook {path} of project {project} does not exist" / "项目 {project} 的 notebook {path} 不存在";
        help: "correct `notebook` of the project in verify.toml" / "请更正 verify.toml 中该项目的 `notebook`";
        why: "A project is judged by its notebook; one that is missing was not judged." / "项目依据其 notebook 检查；缺失的 notebook 没有被检查。";
    }
    DISAGREEMENT = "static/interpreter-disagrees" Note {
        message: "Python {version} {message}" / "Python {version} {message}";
        help: "the verdict is for Python {target}; if the version is not the reason, please report it" / "结论针对 Python {target}；如果不是版本原因，请反馈";
        why: "`--python` asks a real interpreter about every unit; where it and the embedded parser differ, a person should look."
           / "`--python` 会用真实解释器复核每个单元；两者不一致时需要人来看一眼。";
    }
}
