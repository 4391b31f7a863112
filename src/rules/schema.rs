//! Rules of `verify schema`: `schema/…` about the contract, `json/…` about the document.

super::rules! {
    FILE_MISSING = "schema/file-missing" Error {
        message: "{path} does not exist" / "{path} 不存在";
        help: "run the measurement that writes it, or correct the name" / "请运行会写出该文件的测量，或更正文件名";
        why: "A result that was asked for and is not there was not measured."
           / "点名要求的结果不存在，就等于没有测量。";
    }
    EMPTY = "json/empty" Error {
        message: "the file is empty: no result was written" / "文件是空的：没有写入任何结果";
        help: "run the measurement again; a run that was cut short often leaves an empty file" / "请重新测量；中途中断的运行常常留下空文件";
        why: "jq 1.6 exits 0 when there is no input, so an aborted run used to pass the published gate."
           / "输入为空时 jq 1.6 返回 0，中断的运行因此曾能通过公开的检查。";
    }
    ENCODING = "json/encoding" Error {
        message: "the file is not UTF-8: {what}" / "文件不是 UTF-8：{what}";
        help: "save it as UTF-8 without byte order mark" / "请另存为不带 BOM 的 UTF-8";
        why: "JSON is exchanged as UTF-8. Readers replace a bad byte silently, so a name that was never written is compared later."
           / "JSON 以 UTF-8 交换。读取程序会悄悄替换坏字节，之后比较的就是一个从未写过的名字。";
    }
    SYNTAX = "json/syntax" Error {
        message: "not JSON: {what}" / "不是合法的 JSON：{what}";
        help: "correct the place that is marked; nothing after it was read" / "请修正标出的位置；其后的内容没有读取";
        why: "A result is exactly one RFC 8259 document. What lenient readers accept (NaN, trailing commas, comments) the next reader refuses or changes."
           / "一个结果就是一份完整的 RFC 8259 文档。宽松的读取程序接受的写法（NaN、尾随逗号、注释），下一个程序会拒绝或改写。";
    }
    TOO_DEEP = "json/too-deep" Error {
        message: "nested deeper than 256 levels" / "嵌套超过 256 层";
        help: "a result needs about six levels; look for a value that contains itself" / "结果文件大约只需要六层；请检查是否有自我包含的值";
        why: "A limit with a clear message instead of a reader that runs out of stack."
           / "给出明确信息的上限，好过读取程序栈溢出。";
    }
    TOO_LARGE = "json/too-large" Error {
        message: "the file is larger than {limit} bytes" / "文件超过 {limit} 字节";
        help: "keep request rows and logs in files of their own, or raise `schema.max_bytes`" / "请把逐请求数据和日志放到单独的文件，或调高 `schema.max_bytes`";
        why: "A gate must answer in bounded time and memory."
           / "检查必须在有限的时间和内存内给出结论。";
    }
    NUMBER_RANGE = "json/number-range" Error {
        message: "{value} is larger than any double" / "{value} 超出双精度浮点数的范围";
        help: "write the measured value, or null when it was not measured" / "请写入测得的值；没有测量则写 null";
        why: "Readers turn such a number into infinity or into the largest double, each its own way, without a word."
           / "读取程序会悄悄把这样的数变成无穷大或最大的双精度数，各不相同。";
    }
    DUPLICATE_KEY = "json/duplicate-key" Error {
        message: "`{value}` occurs twice in this object" / "`{value}` 在同一个对象中出现了两次";
        help: "keep the one that was measured; most readers keep the last and hide the first" / "只保留真正测得的那个；多数读取程序取最后一个并隐藏前面的";
        why: "Which of the two was measured nobody can tell, and a JSON schema cannot see it."
           / "谁也说不清哪个才是测得的值，而 JSON Schema 看不到这种错误。";
    }
    TRAILING_DATA = "json/trailing-data" Error {
        message: "something follows the document" / "文档之后还有内容";
        help: "keep one document in one file; `verify normalize --line N` picks one line of a JSONL file" / "一个文件只放一份文档；JSONL 文件可用 `verify normalize --line N` 选取一行";
        why: "With several documents in one file, jq judges the last one only."
           / "一个文件里有多份文档时，jq 只看最后一份。";
    }
    BOM = "json/bom" Warning {
        message: "the file starts with a byte order mark" / "文件以字节顺序标记（BOM）开头";
        help: "save it as UTF-8 without byte order mark" / "请另存为不带 BOM 的 UTF-8";
        why: "RFC 8259 forbids writing it; several readers refuse the file."
           / "RFC 8259 禁止写入 BOM，有些读取程序会拒绝这样的文件。";
    }
    MISSING = "schema/missing" Error {
        message: "{target} is missing" / "缺少 {target}";
        help: "{remedy}" / "{remedy}";
        why: "Without this member the result cannot be compared, or the checklist's gate refuses it."
           / "缺少该字段，结果就无法比较，或通不过检查清单的检查。";
    }
    NULL = "schema/null" Error {
        message: "{target} is null, but a result must have it" / "{target} 为 null，而结果必须包含它";
        help: "{remedy}" / "{remedy}";
        why: "null says that nothing was measured or recorded; a result without this value is no result."
           / "null 表示没有测量或记录；缺少这个值就不算结果。";
    }
    BLANK = "schema/blank" Error {
        message: "{target} is {value}: nothing stands there" / "{target} 是 {value}：里面没有内容";
        help: "{remedy}" / "{remedy}";
        why: "For jq everything but null and false is true, so an empty text or object used to count as recorded."
           / "在 jq 里，除 null 和 false 之外都算真，空文本和空对象因此曾被当作已记录。";
    }
    TYPE = "schema/type" Error {
        message: "{target} is {value}, but must be {wanted}" / "{target} 是 {value}，但应为{wanted}";
        help: "{remedy}" / "{remedy}";
        why: "A value of the wrong type cannot be compared with the same value of another run."
           / "类型不对的值无法与其他运行的同一字段比较。";
    }
    RANGE = "schema/range" Error {
        message: "{target} is {value}, but must be {wanted}" / "{target} 是 {value}，但应为{wanted}";
        help: "{remedy}" / "{remedy}";
        why: "A latency of zero or a negative count was not measured; what was not measured is null."
           / "为零的延迟或负的计数不可能是测出来的；没有测量就写 null。";
    }
    ENUM = "schema/enum" Error {
        message: "{target} is {value}, which is none of {wanted}" / "{target} 是 {value}，不在 {wanted} 之中";
        help: "{remedy}" / "{remedy}";
        why: "Readers and tools act on these words; another word means nothing to them."
           / "读者和工具依据这些词行事，其他的词对它们没有意义。";
    }
    INCONSISTENT = "schema/inconsistent" Error {
        message: "{target} is {value}, {relation}" / "{target} 是 {value}，{relation}";
        help: "no set of measurements gives this: look for swapped columns or an edit by hand, and take the figures from the raw data again"
            / "任何测量数据都不会得出这样的结果：请检查列是否对调、是否手工改过，并从原始数据重新取值";
        why: "Percentiles ascend, and no request gets its first token after its last."
           / "分位数必然递增，首 token 也不可能晚于最后一个 token。";
    }
    PLACEHOLDER = "schema/placeholder" Warning {
        message: "{target} is {value}: a placeholder, not what ran" / "{target} 是 {value}：这是占位符，不是实际运行的值";
        help: "{remedy}" / "{remedy}";
        why: "\"auto\" is what was asked for; two runs with \"auto\" may have run two different things."
           / "“auto” 只是请求；两次都写 “auto” 的运行，实际可能并不相同。";
    }
    NOT_COLLECTED = "schema/not-collected" Warning {
        message: "{target} is absent" / "没有 {target}";
        help: "{remedy}" / "{remedy}";
        why: "A member that is left out looks like one that was forgotten; null says that it was not measured."
           / "省略字段看起来像是忘了写；null 才表示没有测量。";
    }
    MISPLACED_STRATEGY_METRIC = "schema/misplaced-strategy-metric" Warning {
        message: "{target} belongs to one strategy, not to the public metrics" / "{target} 属于某个策略，不是公共指标";
        help: "move it to /normalized_result/strategy_metrics" / "请移到 /normalized_result/strategy_metrics";
        why: "Public metrics mean the same in every result; a strategy's own figures next to them would be compared with results that cannot have them."
           / "公共指标在每份结果里含义相同；混入某个策略自己的指标，会被拿去和根本没有它的结果比较。";
    }
    VERSION = "schema/version" Error {
        message: "{target} is {value}; this gate knows \"inference-benchmark/v1\"" / "{target} 是 {value}；本检查只认识 \"inference-benchmark/v1\"";
        help: "{remedy}" / "{remedy}";
        why: "Another version may mean something else by the same names."
           / "其他版本的同名字段可能含义不同。";
    }
    NOT_ENVELOPED = "schema/not-enveloped" Error {
        message: "a bare inference-benchmark/v1 document: the gate reads `normalized_result`, and there is none" / "这是裸的 inference-benchmark/v1 文档：检查读取的是 `normalized_result`，而这里没有";
        help: "wrap it: {command}" / "请加上外层：{command}";
        why: "The historical normalizer wrote the inner document alone, and the gate of the same course refuses it."
           / "历史上的归一化工具只写了内层文档，而同一课程的检查会拒绝它。";
    }
    RAW_REPORT = "schema/raw-report" Error {
        message: "a report of {source} that was not migrated: there is no `normalized_result`" / "这是 {source} 的报告，尚未迁移：没有 `normalized_result`";
        help: "migrate it (the original stays as it is): {command}" / "请迁移（原文件不会被改动）：{command}";
        why: "Producers name and measure things differently; only the public block can be compared."
           / "各种工具的命名和口径不同，只有公共部分可以比较。";
    }
    FAILURE_RECORD = "schema/failure-record" Error {
        message: "the record of a run that failed, not a result: {reason}" / "这是一次失败运行的记录，不是结果：{reason}";
        help: "remove the cause and run it again{retest}" / "请排除原因后重新运行{retest}";
        why: "A start that failed must not leave anything that counts as a measurement."
           / "启动失败不能留下任何会被当作测量结果的东西。";
    }
    MANIFEST = "schema/manifest" Error {
        message: "a manifest of {value} results ({groups}), not a result" / "这是 {value} 份结果的清单（{groups}），不是结果本身";
        help: "check the results that it names, or extract one: {command}" / "请检查它列出的结果，或提取其中一份：{command}";
        why: "A pair of runs has two decisions; the gate judges one result at a time."
           / "一对运行有两个结论，而检查每次只判断一份结果。";
    }
    OTHER_CONTRACT = "schema/other-contract" Error {
        message: "a document of another contract ({value}), not an inference result" / "这是另一种契约（{value}）的文档，不是推理结果";
        help: "leave it out of the command; found by folder it is skipped" / "请不要在命令中点名它；按文件夹查找时会跳过";
        why: "Training and memory results have gates of their own; nothing here can judge them."
           / "训练和显存类结果有各自的检查，这里无法判断。";
    }
    COMPAT = "schema/compat" Error {
        message: "the checklist's jq filter fails here: {what}" / "检查清单的 jq 过滤器在这里失败：{what}";
        help: "`verify schema --level strict` names every fault with its place" / "`verify schema --level strict` 会逐一指出每处错误及其位置";
        why: "With --level compat the verdict is exactly that of the checklist's filter under jq 1.6, for those who need parity."
           / "使用 --level compat 时，结论与检查清单的过滤器在 jq 1.6 下完全一致，供需要对齐的人使用。";
    }
    FAILED_SINCE = "schema/failed-since" Warning {
        message: "this result is of an earlier run; the last one failed: {reason}" / "这是更早一次运行的结果；最近一次运行失败了：{reason}";
        help: "mend the cause and run it again; {record} says more, and goes to history/ when a run succeeds" / "请排除原因后重新运行；详情见 {record}，运行成功后它会移入 history/";
        why: "A failed run leaves the earlier result untouched, so the file looks fresh while what it describes no longer works."
           / "失败的运行不会改动更早的结果，文件看上去是新的，所描述的配置却可能已经跑不通。";
    }
}
