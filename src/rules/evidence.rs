//! Rules of `verify conclude`: each that fires puts a ceiling on the decision. The
//! severity of a row is that of a reason under the ceiling; a claim above it is an error.

super::rules! {
    LEVEL_TOO_LOW = "evidence/level-too-low" Note {
        message: "the evidence level is {value}; only real_benchmark can carry accept" / "证据级别为 {value}；只有 real_benchmark 才能支撑 accept";
        help: "run the enlarged workload on a real backend" / "请在真实后端上运行放大后的工作负载";
        why: "A smoke run proves that the path works, not how fast or how well it works."
           / "冒烟运行只能证明链路可用，不能证明性能或质量。";
    }
    RUN_FAILED = "evidence/run-failed" Note {
        message: "the run failed or has no end-to-end median ({value})" / "运行失败，或没有端到端中位数（{value}）";
        help: "remove the cause and run it again" / "请排除原因后重新运行";
        why: "A start that failed proves nothing about the strategy."
           / "启动失败对策略什么也证明不了。";
    }
    FAILED_REQUESTS = "evidence/failed-requests" Note {
        message: "failed requests: {value}; their latencies are in no figure" / "有 {value} 个请求失败，它们的延迟没有计入任何指标";
        help: "find out why they failed, then measure again" / "请查明失败原因后重新测量";
        why: "The slowest requests are often the ones that fail: what is left looks better than it is."
           / "失败的往往正是最慢的请求，剩下的看起来比实际更好。";
    }
    SINGLE_RUN = "evidence/single-run" Note {
        message: "measured runs: {value}; {wanted} are needed" / "只测了 {value} 轮，需要 {wanted} 轮";
        help: "repeat the run with the same configuration" / "请用相同配置重复运行";
        why: "One run cannot tell an effect from chance."
           / "单次运行分不清效果与偶然。";
    }
    TOO_FEW_SAMPLES = "evidence/too-few-samples" Note {
        message: "samples: {value}; {wanted} are needed" / "只有 {value} 个样本，需要 {wanted} 个";
        help: "enlarge the workload or repeat it" / "请扩大工作负载或增加轮次";
        why: "A handful of requests is a smoke run."
           / "寥寥几个请求只是冒烟运行。";
    }
    UNSTABLE = "evidence/unstable" Note {
        message: "throughput varies between runs: {value}; at most {wanted} is accepted" / "各轮吞吐波动：{value}；最多接受 {wanted}";
        help: "fix clocks and background load, warm up longer, then repeat" / "请固定频率、排除后台负载、延长预热，然后重复";
        why: "A difference smaller than the spread of the runs is no difference."
           / "比轮间波动还小的差异不算差异。";
    }
    DISTURBED = "evidence/disturbed" Note {
        message: "other programs used {value} of the processors while it was measured; at most {wanted} is accepted" / "测量期间其他程序占用了 {value} 的处理器；最多接受 {wanted}";
        help: "stop what else runs, then repeat the run" / "请停止其他负载后重新测量";
        why: "What strangers take from the cores differs from run to run: a difference of two such runs may be theirs."
           / "其他负载每次占用的核心都不同，两次结果的差异可能来自它们。";
    }
    CLIENT_ERROR = "evidence/client-error" Note {
        message: "the measuring client's own error was beyond its limits" / "测量客户端自身的误差超限";
        help: "measure on a quieter machine or with a lower load" / "请在更空闲的机器上或以更低的负载测量";
        why: "A client that is the bottleneck measures itself."
           / "客户端成了瓶颈，测到的就是它自己。";
    }
    ACCEPT_WITHOUT_QUALITY = "evidence/accept-without-quality" Note {
        message: "quality was not proven: {value}" / "没有证明质量：{value}";
        help: "run the quality probes and state value and floor" / "请运行质量探针，并写明数值与下限";
        why: "Any strategy is fast if the answers may be wrong."
           / "如果允许答错，什么策略都很快。";
    }
    QUALITY_TOO_FEW_PROBES = "evidence/quality-too-few-probes" Note {
        message: "quality probes: {value}; {wanted} are needed" / "质量只来自 {value} 个探针，需要 {wanted} 个";
        help: "5 to 20 fixed probes are enough" / "5 到 20 个固定探针即可";
        why: "Two probes that agree say little about the third."
           / "两个探针一致，并不能说明第三个。";
    }
    QUALITY_BELOW_FLOOR = "evidence/quality-below-floor" Note {
        message: "quality {value} is beyond its floor {wanted}" / "质量 {value} 未达到下限 {wanted}";
        help: "restore quality, or decide reject" / "请恢复质量，或判为 reject";
        why: "Below its quality floor a strategy is rejected, however fast it is."
           / "低于质量下限的策略，再快也要拒绝。";
    }
    CRITICAL_FIELD_CHANGED = "evidence/critical-field-changed" Note {
        message: "the critical field {value} no longer agrees" / "关键字段 {value} 不再一致";
        help: "find the answers in which it changed, or decide reject" / "请找出发生变化的回答，或判为 reject";
        why: "An average hides that one field, such as an amount, is wrong."
           / "平均值会掩盖某个字段（例如金额）已经出错。";
    }
    BUDGET_MISSING = "evidence/budget-missing" Note {
        message: "no memory budget is stated" / "没有写明内存预算";
        help: "state decision.budget.peak_memory_mb" / "请写明 decision.budget.peak_memory_mb";
        why: "Without a cap nobody can say whether it fits."
           / "没有上限，就说不清是否放得下。";
    }
    BUDGET_EXCEEDED = "evidence/budget-exceeded" Note {
        message: "peak memory {value} MB exceeds the budget of {wanted} MB" / "峰值内存 {value} MB 超出预算 {wanted} MB";
        help: "lower the memory use, or decide reject" / "请降低内存占用，或判为 reject";
        why: "What does not fit cannot be deployed."
           / "放不下就无法部署。";
    }
    MEMORY_NOT_MEASURED = "evidence/memory-not-measured" Note {
        message: "peak memory was not measured" / "没有测量峰值内存";
        help: "measure it and state its scope" / "请测量并写明口径";
        why: "A gain in speed is often paid for in memory."
           / "速度的收益常常是用内存换来的。";
    }
    MEMORY_SCOPE_MISSING = "evidence/memory-scope-missing" Note {
        message: "peak memory has no scope" / "峰值内存没有口径";
        help: "state metrics.peak_memory_scope, such as device_reserved or rss" / "请写明 metrics.peak_memory_scope，例如 device_reserved 或 rss";
        why: "RSS, allocated and reserved are different figures."
           / "RSS、已分配、已预留是不同的数字。";
    }
    MEMORY_SCOPE_MISMATCH = "evidence/memory-scope-mismatch" Note {
        message: "the memory scopes differ: {value} here, {other} in the baseline" / "内存口径不同：这里是 {value}，基线是 {other}";
        help: "measure both sides in the same scope" / "请用同一口径测量两侧";
        why: "Different scopes must not stand in one column."
           / "不同口径不能放在同一列。";
    }
    TARGET_MISSING = "evidence/target-missing" Note {
        message: "no target is stated" / "没有写明目标";
        help: "state decision.targets, such as {\"metric\": \"ttft_ms.p50\", \"max_regression_ms\": 20}" / "请写明 decision.targets，例如 {\"metric\": \"ttft_ms.p50\", \"max_regression_ms\": 20}";
        why: "Targets that are chosen after the measurement are always met."
           / "测完再定的目标总能达到。";
    }
    TARGET_MISSED = "evidence/target-missed" Note {
        message: "target missed: {value}" / "未达到目标：{value}";
        help: "go on tuning, or decide reject" / "请继续调优，或判为 reject";
        why: "Accept means that every stated target is met."
           / "accept 意味着写明的目标全部达到。";
    }
    OBJECTIVE_MISMATCH = "evidence/objective-mismatch" Note {
        message: "the objective is {value}, but no target is on {wanted}" / "目标场景是 {value}，却没有针对 {wanted} 的目标";
        help: "add a target on it" / "请补充相应的目标";
        why: "An interactive service is judged by its first token and its tail first, a batch by its throughput."
           / "交互式服务首先看首 token 和尾延迟，批处理首先看吞吐。";
    }
    NO_BASELINE = "evidence/no-baseline" Note {
        message: "there is no baseline to compare with" / "没有可比较的基线";
        help: "measure a baseline and give it with --baseline" / "请测量基线，并用 --baseline 给出";
        why: "Accept says better than before, so a before is needed."
           / "accept 是说比原来好，因此必须有“原来”。";
    }
    WORKLOAD_MISMATCH = "evidence/workload-mismatch" Note {
        message: "the workloads differ: {value} here, {other} in the baseline" / "工作负载不同：这里是 {value}，基线是 {other}";
        help: "run both sides with the same workload file" / "请用同一份工作负载运行两侧";
        why: "Other prompts give other figures."
           / "提示不同，数字自然不同。";
    }
    ENVIRONMENT_MISMATCH = "evidence/environment-mismatch" Note {
        message: "the environments differ: {value} here, {other} in the baseline" / "环境不同：这里是 {value}，基线是 {other}";
        help: "run both sides on the same device with the same software" / "请在同一设备、同一软件版本上运行两侧";
        why: "A conclusion holds for one device and one set of versions."
           / "结论只对一种设备、一组版本成立。";
    }
    MULTIPLE_VARIABLES = "evidence/multiple-variables" Note {
        message: "several things changed at once: {value}" / "同时改变了多项：{value}";
        help: "change one thing at a time" / "请一次只改一项";
        why: "With two changes nobody knows which of them had the effect."
           / "同时改两项，就不知道是哪一项起了作用。";
    }
    NO_VARIABLE_CHANGED = "evidence/no-variable-changed" Note {
        message: "the configuration is that of the baseline" / "配置与基线相同";
        help: "record the setting that was changed in config" / "请在 config 中记录所改的设置";
        why: "No variable, so no cause."
           / "没有变量，也就没有原因。";
    }
    COLD_START_INCLUDED = "evidence/cold-start-included" Note {
        message: "there was no warm-up and no phase is stated: the cold start stands in the figures" / "没有预热，也没有写明阶段：冷启动混在数字里";
        help: "warm up, or state config.run_phase" / "请预热，或写明 config.run_phase";
        why: "Compilation and cache filling happen once and are not what users see later."
           / "编译和填充缓存只发生一次，并不是用户之后看到的性能。";
    }
    COLD_WARM_MIXED = "evidence/cold-warm-mixed" Note {
        message: "a {value} run is compared with a {other} one" / "把 {value} 运行与 {other} 运行相比较";
        help: "measure both sides in the same phase" / "请在同一阶段测量两侧";
        why: "The cold start would be counted as an effect of the strategy."
           / "冷启动会被当成策略的效果。";
    }
    OUTPUT_LENGTH_DIFFERS = "evidence/output-length-differs" Note {
        message: "answers have {value} tokens on average, {other} in the baseline" / "平均输出 {value} 个 token，基线为 {other} 个";
        help: "fix the output length (ignore_eos, min_tokens), or compare per token" / "请固定输出长度（ignore_eos、min_tokens），或按 token 比较";
        why: "Shorter answers are faster without any strategy."
           / "输出更短，不用任何策略也更快。";
    }
    ESTIMATED_TOKENS = "evidence/estimated-tokens" Note {
        message: "output tokens were estimated, not counted" / "输出 token 数是估计的，不是计数的";
        help: "ask the server for usage (stream_options.include_usage)" / "请让服务端返回 usage（stream_options.include_usage）";
        why: "Tokens per second are not measured then."
           / "这样得到的每秒 token 数不算测量。";
    }
    PLACEHOLDER = "evidence/placeholder" Note {
        message: "{value} is not recorded" / "没有记录 {value}";
        help: "record what really ran" / "请记录实际运行的值";
        why: "A result without model, engine or precision cannot be repeated."
           / "没有模型、引擎或精度的结果无法复现。";
    }
    ENVIRONMENT_MISSING = "evidence/environment-missing" Note {
        message: "not recorded: {value}" / "没有记录：{value}";
        help: "record it in config" / "请在 config 中记录";
        why: "A result that nobody can repeat proves nothing."
           / "无法复现的结果什么也证明不了。";
    }
    SCOPE_TOO_WIDE = "evidence/scope-too-wide" Note {
        message: "the claim reaches too far: {value}" / "结论的范围过宽：{value}";
        help: "limit it to this device, this backend and this workload" / "请限定为此设备、此后端、此工作负载";
        why: "One device was measured."
           / "测量的只有一种设备。";
    }
    SMOKE_AS_PRODUCTION = "evidence/smoke-as-production" Note {
        message: "{value} is claimed on the evidence level {level}" / "以 {level} 级别的证据声称 {value}";
        help: "drop the claim, or run a real benchmark" / "请去掉该声称，或进行真实基准测试";
        why: "A smoke run shows that the chain works, nothing about stable service."
           / "冒烟运行只说明链路可用，与稳定服务无关。";
    }
    P99_TOO_FEW_SAMPLES = "evidence/p99-too-few-samples" Note {
        message: "P99 from {value} samples is their maximum; {wanted} are needed" / "{value} 个样本的 P99 就是最大值，需要 {wanted} 个";
        help: "drop P99, or enlarge the workload" / "请去掉 P99，或扩大工作负载";
        why: "Below 100 samples the 99th percentile is the largest value, whatever happened."
           / "样本少于 100 时，P99 就是最大值，与分布无关。";
    }
    P99_WIDE_INTERVAL = "evidence/p99-wide-interval" Warning {
        message: "P99 from {value} samples has no upper bound at 95 percent; {wanted} give one" / "{value} 个样本的 P99 没有 95% 置信上界，{wanted} 个才有";
        help: "enlarge the workload before P99 decides anything" / "让 P99 参与决策之前，请扩大工作负载";
        why: "0.99 to the power of 299 is just below 0.05."
           / "0.99 的 299 次方刚好小于 0.05。";
    }
    NO_QUANTIZATION = "evidence/67-no-quantization" Note {
        message: "nothing was quantized: {value}" / "没有量化：{value}";
        help: "serve a quantized model and record quantization_format and quantization_artifact" / "请使用量化模型，并记录 quantization_format 与 quantization_artifact";
        why: "The default model proves the chain, not a gain from quantization."
           / "默认模型只能证明链路，不能证明量化收益。";
    }
    NOT_SPECULATIVE = "evidence/68-not-speculative" Note {
        message: "speculative decoding was not exercised: {value}" / "没有真正运行推测解码：{value}";
        help: "start the backend with a draft model and record the acceptance rate" / "请带草稿模型启动后端，并记录接受率";
        why: "A baseline endpoint is not speculative decoding."
           / "基线服务不是推测解码。";
    }
    VERIFY_COST_MISSING = "evidence/68-verify-cost-missing" Note {
        message: "the cost of verification was not measured" / "没有测量验证开销";
        help: "record strategy_metrics.verify_cost_ms" / "请记录 strategy_metrics.verify_cost_ms";
        why: "Accepted drafts are paid for by verifying all of them."
           / "接受的草稿要用验证全部草稿来换。";
    }
    CACHE_NOT_SHOWN = "evidence/69-cache-not-shown" Note {
        message: "a cache hit was not shown: {value}" / "没有证明缓存命中：{value}";
        help: "turn the prefix cache on and take the hit rate from the backend's metrics or log" / "请开启前缀缓存，并从后端指标或日志中取命中率";
        why: "A started server is not a cache hit, and a lower TTFT has other causes too."
           / "服务启动不等于缓存命中，TTFT 降低也可能有别的原因。";
    }
    INVALIDATION_COST_MISSING = "evidence/69-invalidation-cost-missing" Note {
        message: "the cost of invalidation was not measured" / "没有测量失效开销";
        help: "record strategy_metrics.invalidation_cost_ms" / "请记录 strategy_metrics.invalidation_cost_ms";
        why: "What a changed prefix costs belongs to the decision."
           / "前缀变化的代价属于决策的一部分。";
    }
    LOAD_SENSITIVITY_ONLY = "evidence/70-load-sensitivity-only" Note {
        message: "only the load changed: this shows how it scales, not what the scheduler does" / "只改变了负载：这说明扩展性，不说明调度器的作用";
        help: "compare two scheduler policies under the same load" / "请在相同负载下比较两种调度策略";
        why: "Concurrency 1 against 4 is a property of the load."
           / "并发 1 与并发 4 的差别是负载的性质。";
    }
    CONCURRENCY_TOO_LOW = "evidence/70-concurrency-too-low" Note {
        message: "concurrency {value} makes no queue; {wanted} is needed" / "并发 {value} 形不成队列，需要 {wanted}";
        help: "raise the concurrency on both sides" / "请在两侧提高并发";
        why: "Without a queue there is nothing to schedule."
           / "没有队列，就没有可调度的东西。";
    }
    FAIRNESS_MISSING = "evidence/70-fairness-missing" Note {
        message: "fairness was not measured" / "没有测量公平性";
        help: "record strategy_metrics.fairness" / "请记录 strategy_metrics.fairness";
        why: "Throughput alone hides requests that starve."
           / "只看吞吐会掩盖被饿死的请求。";
    }
    STRATEGY_METRIC_MISSING = "evidence/strategy-metric-missing" Note {
        message: "the project's own metrics were not measured: {value}" / "没有测量该项目自己的指标：{value}";
        help: "record them in strategy_metrics" / "请记录在 strategy_metrics 中";
        why: "The profile lists what shows that the strategy was exercised at all."
           / "课程配置列出了能证明策略确实运行过的指标。";
    }
    REJECT_WITHOUT_EVIDENCE = "evidence/reject-without-evidence" Error {
        message: "reject is claimed, but nothing measured violates a limit" / "声称 reject，但没有任何测量结果违反限制";
        help: "decide tune, or measure what speaks against it" / "请判为 tune，或测出反对它的证据";
        why: "A single test must not be stretched to a conclusion, in either direction."
           / "一次测试不能被拉伸成结论，无论哪个方向。";
    }
    REASON_MISSING = "evidence/reason-missing" Warning {
        message: "the decision has no {value}" / "结论没有 {value}";
        help: "say why, and what is done next" / "请写明原因和下一步";
        why: "The next person needs to know what the decision rests on."
           / "后来的人需要知道结论依据什么。";
    }
}
