//! Rules of `verify bench EXPERIMENT.toml`.

super::rules! {
    NOT_WRITTEN = "experiment/not-written" Error {
        message: "a file of the experiment could not be written: {cause}" / "实验的文件写不进去：{cause}";
        help: "check the folder and the free space, then go on with --resume" / "请检查目录与剩余空间，然后用 --resume 继续";
        why: "A pass that is not kept was not measured."
           / "没有保存下来的一轮等于没测。";
    }
    ALL_FAILED = "experiment/all-failed" Error {
        message: "every request of a pass failed; first: {first}" / "一轮中的请求全部失败；首个：{first}";
        help: "see the log of the server, then go on with --resume" / "请查看服务日志，然后用 --resume 继续";
        why: "A server that answers nothing would cost a timeout per request; the passes before it are kept."
           / "什么都不应答的服务会让每个请求都耗到超时；之前各轮已经保存。";
    }
    REQUESTS_FAILED = "experiment/requests-failed" Error {
        message: "{failed} of {total} requests of arm {arm} failed: {kinds}" / "{arm} 组的 {total} 个请求中有 {failed} 个失败：{kinds}";
        help: "latencies are those of the successes; find the cause before you compare" / "延迟只统计成功的请求；请先找到原因再比较";
        why: "A server that refuses looks faster, so an experiment with failures is no success."
           / "拒绝请求的服务反而显得更快，所以有失败的实验不算成功。";
    }
    INCOMPLETE = "experiment/incomplete" Error {
        message: "{done} of {total} passes are there" / "共 {total} 轮，已有 {done} 轮";
        help: "go on with --resume" / "请用 --resume 继续";
        why: "Passes are kept as they end, so nothing is measured twice."
           / "每轮结束即保存，已测的不会重测。";
    }
    GATE = "experiment/result-invalid" Error {
        message: "the result of arm {arm} does not pass the gate: {cause}" / "{arm} 组的结果没有通过契约检查：{cause}";
        help: "" / "";
        why: "Nothing is concluded from a result that its own gate refuses."
           / "连自己的契约检查都过不了的结果，不能据此下结论。";
    }
    FEW_REPEATS = "experiment/few-repeats" Warning {
        message: "{repeats} repeats carry no conclusion" / "{repeats} 次重复不足以下结论";
        help: "set `repeats` to 3 at least, 5 are better" / "请把 `repeats` 设为至少 3，最好 5";
        why: "An interval of paired differences needs three pairs."
           / "配对差值的置信区间至少需要三对。";
    }
    COLD_MIXED_IN = "experiment/cold-mixed-in" Warning {
        message: "cold mixed in: the first request of {count} passes of arm {arm} took more than 3 times the median TTFT"
            / "混入了冷请求（cold）：{arm} 组有 {count} 轮的首个请求 TTFT 超过中位数的 3 倍";
        help: "raise `warmup`" / "请调大 `warmup`";
        why: "A first request that pays for loading or compiling is no sample of a warm server."
           / "为加载或编译付出代价的首个请求，不是热服务的样本。";
    }
    DRIFT = "experiment/drift" Warning {
        message: "the throughput of arm {arm} drifts by {value} from its first to its last pass" / "{arm} 组的吞吐从首轮到末轮漂移了 {value}";
        help: "see what else runs on the machine; interleaving spreads it over the arms" / "请看机器上还有什么在运行；交错执行已把影响分摊到各组";
        why: "Figures that move while nothing is changed belong to the machine, not to the arm."
           / "什么都没改而数字在动，那是机器的变化，不是实验组的差别。";
    }
    CLIENT_ERROR = "experiment/client-error" Warning {
        message: "the client's own error at the load of arm {arm} is beyond its limits: TTFT {ttft} ms, E2E {e2e} ms"
            / "在 {arm} 组的负载下，客户端自身误差超限：TTFT {ttft} ms，E2E {e2e} ms";
        help: "measure on a quieter machine; no accept rests on these figures" / "请在更空闲的机器上测量；这些数据不能支撑 accept";
        why: "A client that is the bottleneck measures itself."
           / "客户端成了瓶颈，测到的就是它自己。";
    }
    CLIENT_UNCHECKED = "experiment/client-unchecked" Warning {
        message: "the client's own error at the load of arm {arm} is not known: its check did not run" / "{arm} 组负载下的客户端自身误差未知：自检没有运行";
        help: "see `verify calibrate`, then measure again with `--fresh`; no accept rests on these figures" / "请查看 `verify calibrate`，再用 `--fresh` 重新测量；这些数据不能支撑 accept";
        why: "A check that did not run is not one that was passed."
           / "没有运行的检查不等于通过。";
    }
    CLIENT_STARVED = "experiment/client-starved" Warning {
        message: "the client waited {value} of the time for a processor in passes of arm {arm}" / "{arm} 组的测量中，客户端有 {value} 的时间在等处理器";
        help: "leave the client a core of its own" / "请给客户端留出一个核";
        why: "Time that the client spends waiting for a core is counted as the server's."
           / "客户端等待处理器的时间会被算到服务头上。";
    }
    COUNTER_RESET = "experiment/counter-reset" Warning {
        message: "counters of arm {arm} fell during a pass: {list}" / "{arm} 组的计数器在一轮之中变小：{list}";
        help: "see whether the server restarted" / "请检查服务是否重启过";
        why: "A counter that falls was reset: what it says of the window is a lower bound."
           / "计数器变小说明被清零，对这段时间只能给出下限。";
    }
    NOT_SHOWN = "experiment/variable-not-shown" Warning {
        message: "arm {arm}: {variable} is not shown by the server's counters ({evidence})" / "{arm} 组：服务的计数器没有显示 {variable} 生效（{evidence}）";
        help: "nothing is concluded for it; check features and arguments of the backend" / "因此不作结论；请检查后端的开关与参数";
        why: "A flag on the command line is no proof: speculation needs drafted tokens, a prefix cache needs hits."
           / "命令行上有开关不算证据：投机解码要有草稿 token，前缀缓存要有命中。";
    }
    PROBES_FAILED = "experiment/probes-failed" Warning {
        message: "{count} answers to probes of arm {arm} are missing; first: {first}" / "{arm} 组缺少 {count} 个探针回答；首个：{first}";
        help: "quality is compared over the answers that are there" / "质量只在已有的回答上比较";
        why: "A probe that was not answered says nothing of quality."
           / "没有回答的探针说明不了质量。";
    }
    DIFFERS_UNDER_LOAD = "experiment/differs-under-load" Note {
        message: "arm {arm}: {count} of {of} probes answer differently under load" / "{arm} 组：{of} 个探针中有 {count} 个在负载下给出不同回答";
        help: "batching can flip greedy tokens; see `stability` in the record" / "批处理可能改变贪心解码的 token；见记录中的 `stability`";
        why: "Greedy decoding is repeatable alone and not always in a batch."
           / "贪心解码单独运行时可复现，批处理时未必。";
    }
    NO_GPU_FIGURES = "experiment/no-gpu-figures" Note {
        message: "no GPU memory, energy or clocks: NVML is not on this machine" / "没有 GPU 显存、能耗与频率数据：本机没有 NVML";
        help: "" / "";
        why: "What was not measured is null, never zero."
           / "没有测到的就是 null，绝不写 0。";
    }
    FEATURE_NOT_OFFERED = "experiment/feature-not-offered" Error {
        message: "backend {backend} has no {features}, which arm {arm} needs" / "后端 {backend} 没有 {arm} 组需要的 {features}";
        help: "give the flags of the backend as `args`, or add the feature to its [[backend]]" / "请用 `args` 写出后端参数，或在 [[backend]] 中加上该特性";
        why: "An arm that cannot be switched is the other arm measured twice."
           / "切换不了的实验组，等于把另一组测了两遍。";
    }
}
