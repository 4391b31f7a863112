//! Rules of `verify smoke`.

super::rules! {
    NOT_READY = "smoke/not-ready" Error {
        message: "{backend} was not ready after {seconds} s: {last}" / "{backend} 在 {seconds} 秒后仍未就绪：{last}";
        help: "read the log, or raise `ready_timeout_s`" / "请查看日志，或调大 `ready_timeout_s`";
        why: "A server that answers no request of the workload's kind has proven nothing."
           / "不能应答同类请求的服务什么也证明不了。";
    }
}
