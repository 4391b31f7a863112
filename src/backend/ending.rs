//! What the end of a server says of its cause: its log first, else the signal that ended it.

use super::diagnose::{Diagnosis, last_words};
use crate::course::Context;
use crate::model::{Finding, Lang, Localized};
use crate::process::Exit;
use crate::rules;
use std::path::Path;

/// Adds what the end of the server and its log say to a fault.
pub(super) fn explain(
    ctx: &Context,
    fault: Finding,
    exit: Option<Exit>,
    diagnosis: Option<Diagnosis>,
    text: &str,
    log: &Path,
    oom_kills: Option<u64>,
) -> Finding {
    if fault.rule.id != rules::smoke::SERVER_EXITED.id {
        return with_cause(fault, diagnosis);
    }
    let last_line = || last_words(text).unwrap_or_else(|| "it logged nothing".to_owned());
    let exit_text = exit.map_or_else(|| "an unknown end".to_owned(), |exit| exit.to_string());
    let fault = fault.arg("exit", exit_text);
    let shown = ctx.repo_path(log);
    match diagnosis {
        Some(Diagnosis { signature, line }) => fault
            .arg(
                "cause",
                Localized::both(format!("{} — {line}", signature.cause.en), format!("{} — {line}", signature.cause.zh)),
            )
            .help(Localized::both(
                format!("{}; the log is {shown}", signature.advice.en),
                format!("{}；日志见 {shown}", signature.advice.zh),
            )),
        None if exit.and_then(|exit| exit.code) == Some(0) => fault.arg(
            "cause",
            Localized::both(
                "the command returned; a server must stay in the foreground",
                "命令已返回；服务必须在前台运行",
            ),
        ),
        None => match exit.and_then(|exit| by_signal(exit.signal?, &last_line(), oom_kills)) {
            Some((cause, help)) => fault.arg("cause", cause).help(help),
            None => fault.arg("cause", last_line()),
        },
    }
}

/// Cause and next step of a server that was killed, from how often the kernel's OOM killer
/// struck meanwhile; `None`: it does not say.
fn killed(oom_kills: Option<u64>) -> (Localized, Localized) {
    let memory = Localized::both(
        "compare the memory it needs with what is free (a smaller model, context or KV cache needs less)",
        "请对比所需内存与可用内存；换更小的模型、缩短上下文或减小 KV cache 都能降低占用",
    );
    match oom_kills {
        None => (
            Localized::both(
                "killed, perhaps by the kernel for lack of memory (OOM killer)",
                "被强制结束，可能是内核因内存不足所为（OOM killer，memory）",
            ),
            memory,
        ),
        Some(0) => (
            Localized::both(
                "killed by another process; the kernel's OOM killer did not strike meanwhile, so the kernel was not short of memory",
                "被其他进程强制结束；期间内核的 OOM killer 没有动作，并非内核内存（memory）不足",
            ),
            Localized::both(
                "see what stops processes on this machine: a user, the limit of a job, or a guard such as systemd-oomd",
                "请查明本机由谁结束进程：其他用户、作业限额，或 systemd-oomd 之类的守护程序",
            ),
        ),
        Some(_) => (
            Localized::both(
                "killed while the kernel was short of memory: its OOM killer struck during this run",
                "被强制结束，期间内核内存（memory）不足：OOM killer 在本次运行中动作过",
            ),
            memory,
        ),
    }
}

/// What the log says of the cause, added to the help of a fault that has another form
/// than the server's end: requests that failed, a wait that was too long.
fn with_cause(fault: Finding, diagnosis: Option<Diagnosis>) -> Finding {
    let explained = [rules::smoke::REQUEST_FAILED.id, rules::smoke::NOT_READY.id];
    let Some(Diagnosis { signature, line }) = diagnosis.filter(|_| explained.contains(&fault.rule.id)) else {
        return fault;
    };
    let given = |lang| fault.help_text(lang).unwrap_or_default();
    let (en, zh) = (given(Lang::En), given(Lang::Zh));
    fault.help(Localized::both(
        format!("the log says: {} — {line}; {}; {en}", signature.cause.en, signature.advice.en),
        format!("日志显示：{} — {line}；{}；{zh}", signature.cause.zh, signature.advice.zh),
    ))
}

/// Cause and next step of a server that a signal ended; none for signals that somebody
/// sends to stop it.
fn by_signal(signal: i32, last_line: &str, oom_kills: Option<u64>) -> Option<(Localized, Localized)> {
    match signal {
        // SIGILL
        4 => Some((
            Localized::both(
                "it used an instruction that this processor does not have or may not use (SIGILL)",
                "执行了本机处理器没有或不允许使用的指令（SIGILL）",
            ),
            Localized::both(
                "the build was made for another processor: install one for this machine, or build it without its native options (llama.cpp: -DGGML_NATIVE=OFF)",
                "该构建面向别的处理器：请安装适合本机的版本，或编译时关闭本机优化（llama.cpp：-DGGML_NATIVE=OFF）",
            ),
        )),
        // SIGKILL
        9 => Some(killed(oom_kills)),
        // SIGABRT, SIGBUS, SIGFPE, SIGSEGV
        6 | 7 | 8 | 11 => Some((
            Localized::both(
                format!("the server crashed; its last line: {last_line}"),
                format!("服务崩溃；日志最后一行：{last_line}"),
            ),
            Localized::both(
                "start the same command by hand to see whether it crashes again; then try another version, model file or fewer options, and report it to the server's project",
                "请手动执行同一条命令，看是否再次崩溃；再尝试换版本、换模型文件、减少选项，并向该服务的项目反馈",
            ),
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_blamed_only_where_the_kernel_may_have_killed() {
        let cause = |kills| killed(kills).0.get(Lang::En).to_owned();
        assert!(cause(None).contains("perhaps by the kernel for lack of memory"));
        assert!(cause(Some(0)).starts_with("killed by another process"));
        assert!(cause(Some(2)).contains("the kernel was short of memory"));
    }

    #[test]
    fn a_crash_is_told_from_a_wrong_build_and_from_a_stop() {
        let cause = |signal| by_signal(signal, "loading", None).map(|(cause, _)| cause.get(Lang::En).to_owned());
        assert!(cause(4).unwrap().contains("SIGILL"));
        assert_eq!(cause(11).unwrap(), "the server crashed; its last line: loading");
        assert_eq!(cause(15), None);
    }
}
