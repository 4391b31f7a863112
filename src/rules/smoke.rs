//! Rules of `verify smoke`.

super::rules! {
    BACKEND_MISSING = "smoke/backend-missing" Error {
        message: "backend {backend} is not here: {cause}" / "后端 {backend} 不可用：{cause}";
        help: "run `{install}`" / "请运行 `{install}`";
        why: "A backend was asked for by name; without it nothing was shown."
           / "点名要求的后端不存在，就什么也没有证明。";
    }
    MODEL_MISSING = "smoke/model-missing" Error {
        message: "model {model} does not exist" / "模型 {model} 不存在（does not exist）";
        help: "give an existing folder or file with --model (or `smoke.model`)" / "请用 --model（或 `smoke.model`）给出存在的文件夹或文件";
        why: "A server takes many seconds to say that its model is not there; this is seen before it starts."
           / "服务要很多秒后才会报告模型不存在；启动前就能看出来。";
    }
    MODEL_INCOMPLETE = "smoke/model-incomplete" Error {
        message: "the model is not whole: {cause}" / "模型不完整：{cause}";
        help: "delete the file and fetch it again, or give another model" / "请删除该文件后重新下载，或换一个模型";
        why: "A server finds a truncated file only after it has loaded the rest; headers and sizes tell it in milliseconds."
           / "服务要加载完其余部分才会发现文件被截断；看文件头和大小只需几毫秒。";
    }
    MODEL_NOT_FETCHED = "smoke/model-not-fetched" Error {
        message: "model {model} could not be fetched: {cause}" / "模型 {model} 无法下载：{cause}";
        help: "run the command again: a download goes on where it stopped" / "请重新运行：下载会从中断处继续";
        why: "A model is fetched only when that was allowed, into the cache of its hub, and every file must have the digest that the hub lists."
           / "只有得到允许才会下载模型；文件放进平台自己的缓存，并且每个文件的摘要都必须与平台列表一致。";
    }
    MODEL_CODE = "smoke/model-code" Warning {
        message: "the model brings code of its own ({files}), which is not run" / "模型自带代码（{files}），不会被执行";
        help: "read that code; to allow it set `smoke.trust_remote_code = true` and pin the model: `MODEL@COMMIT`"
            / "请先审阅这些代码；确需启用时设置 `smoke.trust_remote_code = true` 并固定版本：`MODEL@COMMIT`";
        why: "Whoever may change the repository of a model could run code on this machine; only code that was read, at a commit that cannot change, is let through."
           / "能改动模型仓库的人就能在这台机器上执行代码；只有审阅过、且固定在不可变提交上的代码才会放行。";
    }
    NO_MODEL = "smoke/no-model" Error {
        message: "backend {backend} needs a model" / "后端 {backend} 需要指定模型";
        help: "give one with --model (or `smoke.model` in verify.toml)" / "请用 --model（或 verify.toml 中的 `smoke.model`）指定";
        why: "Only the provisioned backend brings a model of its own."
           / "只有 verify 自己安装的后端自带模型。";
    }
    KEY_MISSING = "smoke/key-missing" Error {
        message: "the environment variable {variable} for the API key is not set" / "存放 API key 的环境变量 {variable} 没有设置";
        help: "set {variable}; keys are never given on a command line" / "请设置 {variable}；key 从不出现在命令行上";
        why: "A server that wants a key answers 401 to every request without one."
           / "需要 key 的服务对没有 key 的请求一律返回 401。";
    }
    UNAUTHORIZED = "smoke/unauthorized" Error {
        message: "the server answers {status} on {route}: it wants an API key" / "服务在 {route} 上返回 {status}：它需要 API key";
        help: "name the variable that holds the key: `api_key_env` in the run specification or in [smoke]"
            / "请在运行说明或 [smoke] 中用 `api_key_env` 写明存放 key 的环境变量";
        why: "A refused key does not heal by waiting, so the run ends at once."
           / "key 被拒绝不会因为等待而好转，所以立即结束。";
    }
    PORT_IN_USE = "smoke/port-in-use" Error {
        message: "port {port} is in use{owner}" / "端口 {port} 已被占用（in use）{owner}";
        help: "stop that program, or leave `port` out: a free one is then chosen" / "请停掉该程序，或去掉 `port`，由 verify 选择空闲端口";
        why: "Whatever answers on a port that our server does not own is somebody else's server; measuring it would be a false result."
           / "端口不归我们启动的服务所有，应答的就是别人的服务；测它等于造假。";
    }
    NOT_STARTED = "smoke/not-started" Error {
        message: "{backend} could not be started: {cause}" / "{backend} 无法启动：{cause}";
        help: "check the program and its arguments" / "请检查程序及其参数";
        why: "A program that does not start serves nothing."
           / "启动不了的程序提供不了任何服务。";
    }
    FLAG_UNKNOWN = "smoke/flag-unknown" Error {
        message: "{backend} ({version}) does not know the flag {flag} of `{part}`" / "{backend}（{version}）不认识 `{part}` 中的参数 {flag}";
        help: "change `{part}` of the backend in verify.toml to what this version knows, or install another version"
            / "请在 verify.toml 中把该后端的 `{part}` 改成此版本认识的写法，或换一个版本";
        why: "The flags of servers come and go between versions; the server's own help tells in advance what its log would tell after the start."
           / "服务的参数会随版本增减；启动之后日志才会说的事，服务自己的帮助事先就能告诉我们。";
    }
    SERVER_EXITED = "smoke/server-exited" Error {
        message: "{backend} ended with {exit} {when}: {cause}" / "{backend} {when}以 {exit} 结束：{cause}";
        help: "the log is {log}" / "日志见 {log}";
        why: "The end of a server is noticed at once; the whole log is searched for the cause, because the last line rarely names it."
           / "服务一结束就会被发现；原因要在整份日志里找，最后一行往往不是根因。";
    }
    NOT_READY = "smoke/not-ready" Error {
        message: "{backend} was not ready after {seconds} s; last probe: {last}" / "{backend} 在 {seconds} 秒后仍未就绪（not ready）；最后一次探测：{last}";
        help: "read the log {log}, or raise `ready_timeout_s`" / "请查看日志 {log}，或调大 `ready_timeout_s`";
        why: "Ready means: alive, healthy, the model listed, and one request of the workload's kind answered by our own process."
           / "就绪的含义是：进程存活、健康检查通过、列出模型，并且由我们自己的进程应答了一个同类请求。";
    }
    WRONG_MODEL = "smoke/wrong-model" Error {
        message: "the server does not serve {expected}; it lists {listed}" / "服务没有提供 {expected}；它列出的是 {listed}";
        help: "set `served_model` to a listed name" / "请把 `served_model` 设为列表中的名字";
        why: "Figures belong to the model that answered, not to the one that was meant."
           / "数据属于实际应答的模型，而不是以为的那个。";
    }
    REQUEST_FAILED = "smoke/request-failed" Error {
        message: "{failed} of {total} requests failed; first: {kind}: {detail}" / "{total} 个请求中有 {failed} 个失败；首个：{kind}：{detail}";
        help: "the failure record is {record}" / "失败记录见 {record}";
        why: "HTTP 200 is not success: an error inside the stream, a cut stream or an answer without a token is a failed request."
           / "HTTP 200 不等于成功：流中出错、流被截断、没有 token 的回答都算失败。";
    }
    WORKLOAD = "smoke/workload" Error {
        message: "the workload cannot be used: {cause}" / "工作负载不可用：{cause}";
        help: "a workload is a JSONL file; each line has `prompt` or `messages`" / "工作负载是 JSONL 文件，每行含 `prompt` 或 `messages`";
        why: "What is measured must be written down before it is measured."
           / "测什么，必须在测之前写清楚。";
    }
    RESULT_OUTSIDE = "smoke/result-outside" Error {
        message: "{folder} leads out of the course, so {path} is not written" / "{folder} 指向课程目录之外，因此不会写入 {path}";
        help: "replace the symbolic link by a folder" / "请把该符号链接换成真正的文件夹";
        why: "A course that somebody else wrote must not decide where on this machine files are written."
           / "别人编写的课程不应决定把文件写到这台机器的哪个位置。";
    }
    RESULT_NOT_WRITTEN = "smoke/result-not-written" Error {
        message: "the result {path} could not be written: {cause}" / "结果 {path} 无法写入：{cause}";
        help: "check free disk space and permissions; an earlier result is untouched" / "请检查磁盘空间与权限；先前的结果没有被改动";
        why: "A result is written whole or not at all."
           / "结果要么完整写入，要么不写。";
    }
    LEFTOVER = "smoke/leftover" Error {
        message: "something of {backend} may still run after the stop" / "停止后 {backend} 可能仍有进程残留";
        help: "look for its processes and stop them by hand" / "请查找并手动结束相关进程";
        why: "A server that is left behind holds memory of a machine that costs money."
           / "残留的服务会继续占用花钱的机器。";
    }
    GPU_MEMORY_LEFT = "smoke/gpu-memory-left" Error {
        message: "after the stop of {backend} GPU memory is still held by process {processes}" / "{backend} 停止后显存仍被进程占用：{processes}";
        help: "see whether the process still runs (`nvidia-smi`) and end it; a driver that keeps the memory of a dead process needs a reset by the administrator"
            / "用 `nvidia-smi` 查看该进程是否仍在并结束它；若进程已不在而驱动仍占着显存，需由管理员重置";
        why: "Memory that a stopped server still holds is missing in the next run, which then fails for no reason of its own."
           / "停掉的服务还占着显存，下一次运行就会无辜失败。";
    }
    CLAIM_NOT_SHOWN = "smoke/claim-not-shown" Error {
        message: "the run claims {claim}, but the server's counters do not show it: {evidence}" / "本次运行声称 {claim}，但服务的计数器没有体现：{evidence}";
        help: "switch the feature on in the server, or take the claim back" / "请在服务端真正打开该功能，或撤回声明";
        why: "A flag on a command line is no proof; counters of this very run are."
           / "命令行上的参数不算证明，本次运行的计数器才算。";
    }
    SPECULATION_NOT_ACTIVE = "smoke/speculation-not-active" Error {
        message: "speculation not active: the server drafted {drafted} tokens in this run" / "投机解码没有生效（speculation not active）：本次运行服务共起草 {drafted} 个 token";
        help: "give a draft model or n-gram settings that this version knows, and a workload that can be drafted"
            / "请给出该版本认识的草稿模型或 n-gram 参数，并使用能够被起草的工作负载";
        why: "A draft model on the command line is no proof: some servers load it and never draft."
           / "命令行里有草稿模型不算证明：有的服务加载了它却从不起草。";
    }
    FEATURE_NOT_OFFERED = "smoke/feature-not-offered" Note {
        message: "backend {backend} does not offer {features}; the run is without it and claims nothing of it" / "后端 {backend} 不提供 {features}；本次运行不使用它，也不作相关声明";
        help: "add the feature's arguments to `features` of the backend in verify.toml" / "请在 verify.toml 该后端的 `features` 中补充对应参数";
        why: "A run without the feature is a baseline smoke: it keeps its boundary."
           / "没有该功能的运行只是基线冒烟，要守住边界。";
    }
    COUNTERS_DISAGREE = "smoke/counters-disagree" Warning {
        message: "the server counted {counted} {what}, its answers add up to {answered}" / "服务计数为 {counted} {what}，而回答合计 {answered}";
        help: "see whether somebody else uses the server" / "请检查是否有别人也在使用该服务";
        why: "Counters of the window and the answers we got describe the same work; when they differ, something else was served too."
           / "窗口内的计数与收到的回答描述的是同一份工作；对不上说明服务还在处理别的请求。";
    }
    DISTURBED = "smoke/disturbed" Note {
        message: "other programs used {value} of the processors while requests ran; the figures are disturbed" / "测量期间其他程序占用了 {value} 的处理器，数据受到干扰";
        help: "stop what else runs and repeat; up to {wanted} is tolerated (`conclude.max_others_cpu`)" / "请停止其他负载后重测；最多容忍 {wanted}（`conclude.max_others_cpu`）";
        why: "A server that shares its cores was seen to be twenty times slower: such figures compare with nothing."
           / "与他人共用核心的服务曾慢过二十倍，这样的数据无法比较。";
    }
    NO_QUEUE = "smoke/no-queue" Note {
        message: "no queue formed: the server never had a request waiting" / "没有形成排队（no queue formed）：服务中始终没有等待的请求";
        help: "raise `concurrency`, or lower `parallel` of the project" / "请提高 `concurrency`，或降低该项目的 `parallel`";
        why: "Without a queue a scheduler has nothing to decide."
           / "没有排队，调度器就无事可做。";
    }
    CONCURRENCY_TOO_LOW = "smoke/concurrency-too-low" Error {
        message: "project {project} needs at least {needed} requests in flight, the run has {given}" / "项目 {project} 至少需要 {needed} 个并发请求，本次只有 {given}";
        help: "raise `concurrency` of the project" / "请提高该项目的 `concurrency`";
        why: "With fewer requests no queue forms, and nothing about a scheduler is seen."
           / "并发太低就不会排队，也就看不到调度器的行为。";
    }
    TO_CONFIRM = "smoke/to-confirm" Note {
        message: "not shown by this smoke run, still to be confirmed: {list}" / "本次冒烟没有证明、仍需学习者确认：{list}";
        help: "" / "";
        why: "A smoke run proves a path; the note keeps its boundary beside its figures."
           / "冒烟只证明链路可用；这条提示把边界和数据放在一起。";
    }
    ESTIMATED_TOKENS = "smoke/estimated-tokens" Warning {
        message: "the server gave no usable token counts; chunks were counted instead" / "服务没有给出可用的 token 计数；改为按数据块计数";
        help: "token figures of this result are estimates" / "本结果中与 token 相关的数字是估计值";
        why: "A chunk may hold several tokens, so figures per token are only estimates."
           / "一个数据块可能包含多个 token，所以每 token 的数字只是估计。";
    }
    ANSWERED_BY_ANOTHER = "smoke/answered-by-another" Warning {
        message: "asked for {model}, the answers say {answered}" / "请求的是 {model}，回答中写的却是 {answered}";
        help: "ask under the name of the model that answers, or correct what the server was started with" / "请改用实际作答的模型名，或更正服务启动时加载的模型";
        why: "Some servers answer to any name with the one model they have; the figures then stand under the name of a model that was never measured."
           / "有的服务不论请求哪个模型，都用自己唯一的模型回答；这样数据就记在了一个从未测量过的模型名下。";
    }
}
