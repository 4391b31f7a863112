//! Rules of `verify bench`: what a report says in words beside its figures.

super::rules! {
    NOT_READY = "bench/not-ready" Error {
        message: "the server was not ready after {seconds} s; last look: {last}" / "服务在 {seconds} 秒后仍未就绪（not ready）；最后一次查看：{last}";
        help: "start the server, or raise --ready-timeout" / "请先启动服务，或调大 --ready-timeout";
        why: "Answers of a server that is still loading are no measurement."
           / "还在加载的服务给出的应答不算测量。";
    }
    UNAUTHORIZED = "bench/unauthorized" Error {
        message: "the server answers {status}: it wants an API key" / "服务返回 {status}：它需要 API key";
        help: "name the variable that holds the key with --api-key-env" / "请用 --api-key-env 指出存放 key 的环境变量";
        why: "A refused key does not heal by waiting, so the run ends at once."
           / "key 被拒绝不会因为等待而好转，所以立即结束。";
    }
    REQUESTS_FAILED = "bench/requests-failed" Error {
        message: "{failed} of {total} requests failed: {kinds}; first: {first}" / "{total} 个请求中有 {failed} 个失败：{kinds}；首个：{first}";
        help: "latencies are those of the successes; --tolerate-failures SHARE lets some fail" / "延迟只统计成功的请求；可用 --tolerate-failures 允许一部分失败";
        why: "Failed requests leave the average, so a server that refuses looks faster: a run with failures is no success."
           / "失败的请求不进入平均值，于是拒绝请求的服务反而显得更快：有失败的运行不算成功。";
    }
    FAILURES_TOLERATED = "bench/failures-tolerated" Warning {
        message: "{failed} of {total} requests failed: {kinds}; as many were tolerated" / "{total} 个请求中有 {failed} 个失败：{kinds}；在允许范围内";
        help: "" / "";
        why: "Tolerated failures are still shown, since they leave the averages."
           / "被允许的失败仍要写明，因为它们不在平均值里。";
    }
    INTERRUPTED = "bench/interrupted" Error {
        message: "interrupted by {signal}: the figures are those of the {done} requests that had ended" / "被 {signal} 中断（interrupted）：数据只含已结束的 {done} 个请求";
        help: "" / "";
        why: "A run that was cut short is shown, and never passes."
           / "被中断的运行照样展示，但不算通过。";
    }
    PERCENTILES = "bench/percentile-unsupported" Note {
        message: "{list} not claimable with n={n}" / "n={n} 无法支撑 {list}（not claimable）";
        help: "measure more requests: P90 needs 29, P95 59, P99 100 (299 without a warning)" / "请增加请求数：P90 需要 29 个，P95 需要 59 个，P99 需要 100 个（299 个以上才没有警告）";
        why: "The 99th percentile of eight values is their maximum. A q-quantile is claimed only from n >= ln(0.05)/ln(q)."
           / "8 个值的第 99 百分位就是最大值。只有 n ≥ ln(0.05)/ln(q) 时才给出 q 分位数。";
    }
    P99_THIN = "bench/p99-thin" Note {
        message: "P99 rests on n={n}; 299 values bound it with 95 % confidence" / "P99 只有 n={n} 个值支撑；要 299 个才有 95 % 置信度";
        help: "" / "";
        why: "From 100 values on P99 is shown, below 299 with this note."
           / "从 100 个值起给出 P99，不足 299 个时附上这条说明。";
    }
    CENSORED = "bench/censored" Warning {
        message: "{count} censored samples at {limit} ms" / "有 {count} 个样本在 {limit} ms 处被截断（censored）";
        help: "raise --timeout to see how slow they are" / "调大 --timeout 可以看到它们到底有多慢";
        why: "A request that ran out of time is slower than the limit by an unknown amount; dropping it would flatter the server."
           / "超时的请求比上限更慢，但不知道慢多少；把它丢掉等于美化服务。";
    }
    UNBOUNDED = "bench/unbounded-quantile" Warning {
        message: "{first} and above not claimable over all requests: {failed} of {total} failed" / "就全部请求而言 {first} 及以上无法给出（not claimable）：{total} 个中有 {failed} 个失败";
        help: "the figures shown are those of successes only" / "显示的只是成功请求的数据";
        why: "With failures counted as infinitely slow, a quantile that lies among them has no bound."
           / "把失败算作无限慢时，落在其中的分位数没有上界。";
    }
    USAGE_INCONSISTENT = "bench/usage-inconsistent" Warning {
        message: "usage_inconsistent: {detail} ({count} answers)" / "usage 不可信（usage_inconsistent）：{detail}（{count} 个回答）";
        help: "no TPOT is derived from such a count" / "不会用这样的计数推导 TPOT";
        why: "A token count above the limit, or below the number of chunks, cannot be true; dividing by it would publish a wrong latency."
           / "高于上限或低于数据块数的 token 计数不可能为真；用它做除数会得出错误的延迟。";
    }
    TOKENS_BY_CHUNKS = "bench/tokens-by-chunks" Warning {
        message: "token count is a lower bound (chunks); tokens_source: chunks; TPOT is an upper bound" / "token 数是下界（按数据块计）（token count is a lower bound (chunks); tokens_source: chunks）；TPOT 是上界";
        help: "let the server send usage (stream_options.include_usage)" / "请让服务返回 usage（stream_options.include_usage）";
        why: "A chunk may hold several tokens, so without usage only a lower bound is known."
           / "一个数据块可能含多个 token，没有 usage 就只知道下界。";
    }
    FIRST_CHUNK = "bench/first-chunk-tokens" Note {
        message: "several tokens come in a chunk and the server does not count in each: the first chunk is taken as 1 token for TPOT" / "一个数据块含多个 token，而服务没有逐块计数：计算 TPOT 时首块按 1 个 token 计";
        help: "with a warm-up, counts in every chunk are asked for once (continuous_usage_stats)" / "有预热时会询问一次逐块计数（continuous_usage_stats）";
        why: "TPOT divides by the tokens after the first chunk; how many were in it must be known or said."
           / "TPOT 的除数是首块之后的 token 数；首块里有几个，要么知道，要么说明。";
    }
    ONE_TOKEN = "bench/one-token" Note {
        message: "tpot undefined for one token ({count} answers)" / "只有一个 token 的回答没有 TPOT（tpot undefined for one token）（{count} 个）";
        help: "" / "";
        why: "Time per output token needs a second token; 0 would be a lie."
           / "至少要有第二个 token 才谈得上每 token 时间；写 0 就是造假。";
    }
    ROLE_CHUNK = "bench/role-chunk" Note {
        message: "role-only chunk ignored for TTFT: a chunk without a token came {gap} ms before the first token" / "计算 TTFT 时忽略了只有 role 的数据块（role-only chunk ignored for TTFT）：它比首个 token 早 {gap} ms";
        help: "" / "";
        why: "A chunk that carries no token says nothing about the first token."
           / "不带 token 的数据块与首 token 无关。";
    }
    COLD_MIXED = "bench/cold-mixed" Warning {
        message: "first request is an outlier: cold and warm are mixed (TTFT {first} ms, median {median} ms)" / "首个请求是离群值：冷热数据混在一起（first request is an outlier: cold and warm are mixed）（TTFT {first} ms，中位数 {median} ms）";
        help: "measure with a warm-up (--warmup)" / "请加上预热（--warmup）再测";
        why: "Compilation and empty caches belong to the cold start; in a warm figure they are an error."
           / "编译和空缓存属于冷启动；混进热数据就是误差。";
    }
    DRIFT = "bench/drift" Warning {
        message: "drift: the median TTFT of the last third is {percent} % off that of the first third" / "漂移（drift）：最后三分之一的 TTFT 中位数与前三分之一相差 {percent} %";
        help: "the load is above what the server can carry, or the machine changed while it ran" / "负载超过了服务能力，或运行期间机器状态有变化";
        why: "A figure that drifts during the run depends on its length and says little."
           / "运行中不断漂移的数据取决于运行时长，说明不了什么。";
    }
    STALLS = "bench/stalls" Warning {
        message: "{count} stalls: gaps between tokens above {limit} ms, the longest {longest} ms" / "{count} 次停顿（stalls）：token 间隔超过 {limit} ms，最长 {longest} ms";
        help: "" / "";
        why: "A mean hides a pause that every reader notices."
           / "平均值会掩盖读者都能察觉的停顿。";
    }
    CACHE_HITS = "bench/prefix-cache" Note {
        message: "prefix cache: hits {hits} of {queries} query tokens" / "前缀缓存：hits {hits} of {queries} query tokens（命中/查询 token 数）";
        help: "" / "";
        why: "Counter differences around the measured window, and nothing else, are evidence of a cache."
           / "只有测量窗口前后计数器的差值才是缓存的证据。";
    }
    NO_CACHE_EVIDENCE = "bench/no-cache-evidence" Note {
        message: "prefix cache: no evidence (the server publishes no such counters)" / "前缀缓存：没有证据（prefix cache: no evidence）（服务没有公布相应计数器）";
        help: "" / "";
        why: "No counters means unknown: not off, and not on."
           / "没有计数器就是未知：既不是关，也不是开。";
    }
    COUNTERS_DISAGREE = "bench/counters-disagree" Warning {
        message: "the server counted {counted} generated tokens, its answers add up to {answered}" / "服务计数为 {counted} 个生成 token，而回答合计 {answered} 个";
        help: "see whether somebody else uses the server" / "请检查是否有别人也在使用该服务";
        why: "Counters of the window and the answers we got describe the same work."
           / "窗口内的计数与收到的回答描述的是同一份工作。";
    }
    CONTENT_TYPE = "bench/content-type" Note {
        message: "content_type {kind} on {count} answers; the events were read all the same" / "有 {count} 个回答的 content_type 为 {kind}；事件照常读取";
        help: "" / "";
        why: "A stream of well-formed events is one, whatever its label."
           / "事件格式正确就是事件流，标签写错不影响。";
    }
    NO_DONE = "bench/no-done" Note {
        message: "no_done: {count} answers ended without [DONE]" / "no_done：{count} 个回答没有以 [DONE] 结束";
        help: "" / "";
        why: "finish_reason proves the end of an answer as well."
           / "finish_reason 同样能证明回答已经结束。";
    }
    UTF8_REPLACED = "bench/utf8-replaced" Note {
        message: "utf8_replaced: {count} answers hold bytes that are no UTF-8" / "utf8_replaced：{count} 个回答含有非 UTF-8 的字节";
        help: "" / "";
        why: "Damaged text does not change times, but it is not what was generated."
           / "损坏的文本不影响时间，但它不是模型生成的内容。";
    }
    UNKNOWN_FIELD = "bench/unknown-field" Note {
        message: "unknown_field: {count} answers hold lines that are no event" / "unknown_field：{count} 个回答含有不属于事件流的行";
        help: "" / "";
        why: "The grammar of event streams passes such lines over; a proxy may have written them."
           / "按事件流语法这些行会被忽略；它们可能是代理写入的。";
    }
    STALE_RETRY = "bench/stale-retry" Note {
        message: "stale_retry: {count} requests were sent again because the server had closed a kept connection" / "stale_retry：有 {count} 个请求因服务关闭了保持的连接而重发";
        help: "" / "";
        why: "The server never saw the first try: its clock starts again, and it is counted."
           / "服务从未看到第一次发送：计时重新开始，并计入次数。";
    }
    RETRIED = "bench/retried" Note {
        message: "{count} further tries after 429 or 503; TTFT is that of the last try" / "因 429 或 503 又重试了 {count} 次；TTFT 以最后一次为准";
        help: "" / "";
        why: "A refused request waits at the client; the wait is in latency_from_schedule_ms."
           / "被拒绝的请求在客户端等待；等待时间计入 latency_from_schedule_ms。";
    }
    CLIENT_ERROR = "bench/client-error" Warning {
        message: "this client's own error on this machine is above its limit: {detail}" / "本机上客户端自身的误差超过限度：{detail}";
        help: "run on a quieter machine, or with fewer requests in flight; the result carries no accept" / "请换一台更空闲的机器或降低并发；该结果不能支撑 accept";
        why: "The client measured a server in its own process with known send times; what it got wrong there it gets wrong everywhere."
           / "客户端先测了一个发送时间已知的本地服务；在那里测错多少，在别处就会错多少。";
    }
    STARVED = "bench/starved" Warning {
        message: "the client waited {wait} ms for a core ({percent} % of the run)" / "客户端为等待 CPU 核心花了 {wait} ms（占运行时间的 {percent} %）";
        help: "stop other programs, or give the client cores of its own" / "请停掉其他程序，或给客户端单独的核心";
        why: "A client that waits for a core reads late and counts its own wait as the server's time."
           / "客户端抢不到核心就会读得晚，把自己的等待算成服务的时间。";
    }
    MODEL_NOT_LISTED = "bench/model-not-listed" Warning {
        message: "the server lists {listed}, not {model}" / "服务列出的是 {listed}，没有 {model}";
        help: "give a listed name with --model, or see to it that these answers really come from {model}" / "请用 --model 给出列出的名称，或确认这些回答确实来自 {model}";
        why: "Some servers take names that they do not list and answer with the one model they have; most answer 404."
           / "有的服务接受未列出的名字，并用自己唯一的模型回答；大多数会返回 404。";
    }
    OUTPUT_LENGTHS = "bench/output-lengths" Note {
        message: "answers are {least} to {most} tokens long: compare latencies per token" / "回答长度从 {least} 到 {most} 个 token 不等：请按 token 比较延迟";
        help: "--ignore-eos asks for full length" / "--ignore-eos 可要求生成到上限";
        why: "End-to-end latency grows with the length of the answer."
           / "端到端延迟随回答长度增长。";
    }
    NO_LOGPROBS = "bench/no-logprobs" Note {
        message: "log-probabilities: not available from this server" / "该服务不提供 logprobs（not available）";
        help: "" / "";
        why: "What a server does not tell is unknown, not zero."
           / "服务没有给出的就是未知，不是 0。";
    }
    TRUTH_FAILED = "bench/self-check-failed" Warning {
        message: "the client's own error could not be measured: {cause}" / "无法测量客户端自身的误差：{cause}";
        help: "" / "";
        why: "A result without a known error carries no accept."
           / "误差未知的结果不能支撑 accept。";
    }
    MEETING = "bench/no-meeting" Error {
        message: "the generators of this load did not meet: {cause}" / "这次负载的压测进程没有会合（did not meet）：{cause}";
        help: "start every part with the same options and the same --meet HOST:PORT; part 1 listens there"
            / "请用相同的选项和同一个 --meet HOST:PORT 启动每一份；第 1 份在该地址监听";
        why: "Generators that start apart put another load on the server than the one that was asked for."
           / "不同时开始的压测进程给服务施加的不是所要求的负载。";
    }
    CLOCK_UNKNOWN = "bench/clock-unknown" Error {
        message: "the clocks of the generators are not known to each other: no throughput, no duration, no concurrency over time"
               / "各压测进程的时钟之间没有可比性（clock unknown）：无法给出吞吐、时长和并发变化";
        help: "let them meet (--meet), or say with --clock-error MS how far their wall clocks can differ"
            / "请让它们会合（--meet），或用 --clock-error MS 说明各机系统时钟最多相差多少";
        why: "A rate over machines whose clocks may be seconds apart is a guess. Latencies within a request come from one clock and stand."
           / "时钟可能相差几秒的机器之间，速率只是猜测。单个请求内的延迟只取自一个时钟，仍然有效。";
    }
    CLOCK_UNCERTAIN = "bench/clock-uncertain" Warning {
        message: "the clocks of the generators can differ by {ms} ms: rates can be wrong by {percent} %"
               / "各压测进程的时钟可能相差 {ms} ms：速率的误差可达 {percent} %";
        help: "measure for longer, or on a network with a shorter round trip" / "请延长测量时间，或换用往返更短的网络";
        why: "The window of all generators is as uncertain as their clocks are towards each other."
           / "整体测量窗口的误差取决于各时钟之间的误差。";
    }
    GENERATORS_APART = "bench/generators-apart" Warning {
        message: "during {percent} % of the window not every generator was sending"
               / "在 {percent} % 的测量窗口里，不是每个压测进程都在发送";
        help: "use more requests, or machines that are alike; the rates are those of the whole window"
            / "请增加请求数，或使用性能相近的机器；速率按整个窗口计算";
        why: "While one generator is silent, the load is smaller than the one that was asked for."
           / "有压测进程空闲时，实际负载小于所要求的负载。";
    }
    WALL_CLOCK_OFF = "bench/wall-clock-off" Note {
        message: "the wall clock of part {part} is {seconds} s off that of part 1; it was corrected, no figure rests on it"
               / "第 {part} 份所在机器的系统时钟与第 1 份相差 {seconds} 秒；已校正，没有数据依赖它";
        help: "let both machines set their clocks (chrony, NTP)" / "请让两台机器校时（chrony、NTP）";
        why: "Generators compare their clocks with each other before and after the load; logs of the machines do not."
           / "压测进程在负载前后互相比对时钟；机器上的日志则没有。";
    }
    ANSWERED_BY_ANOTHER = "bench/answered-by-another" Warning {
        message: "asked for {model}, the answers say {answered}" / "请求的是 {model}，回答中写的却是 {answered}";
        help: "ask under the name of the model that answers, or correct what the server was started with" / "请改用实际作答的模型名，或更正服务启动时加载的模型";
        why: "Some servers answer to any name with the one model they have; the figures then stand under the name of a model that was never measured."
           / "有的服务不论请求哪个模型，都用自己唯一的模型回答；这样数据就记在了一个从未测量过的模型名下。";
    }
}
