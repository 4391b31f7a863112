//! Rules of `verify conclude`: each that fires puts a ceiling on the decision.

super::rules! {
    LEVEL_TOO_LOW = "evidence/level-too-low" Note {
        message: "the evidence level is {level}; only real_benchmark can carry accept" / "证据级别为 {level}；只有 real_benchmark 才能支撑 accept";
        help: "run the enlarged workload on a real backend" / "请在真实后端上运行放大后的工作负载";
        why: "A smoke run proves that the path works, not how fast or how well it works."
           / "冒烟运行只能证明链路可用，不能证明性能或质量。";
    }
}
