//! `--convert` and `--build`: the commands that the settings name, run before the scan.

use crate::course::Context;
use crate::error::RunError;
use crate::model::{Finding, Localized, Location, RepoPath};
use crate::rules::links as rules;
use crate::{config, term};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

/// How often a running command is looked at.
const TICK: Duration = Duration::from_millis(25);

/// Runs a command of the settings. A command that fails is a finding.
///
/// # Errors
/// The settings name no command for the option.
pub(super) fn run(ctx: &Context, option: &str, command: &[String], folder: &Path) -> Result<Option<Finding>, RunError> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(RunError::usage(
            Localized::both(format!("--{option}: no command is set"), format!("--{option}：没有配置命令")),
            Localized::both(
                format!("name it in verify.toml: [links] {option} = [\"program\", \"argument\"]"),
                format!("请在 verify.toml 中配置：[links] {option} = [\"程序\", \"参数\"]"),
            ),
        ));
    };
    let shown = command.join(" ");
    let phase = ctx.progress.start(option, 1);
    phase.say(&shown);
    let cause = match spawn(program, arguments, folder).and_then(|child| watch(ctx, child)) {
        Ok(status) if status.success() => return Ok(None),
        Ok(status) => said(status),
        Err(error) => Localized::from(error.to_string()),
    };
    let at = Location::file(RepoPath::new(config::FILE_NAME));
    Ok(Some(Finding::new(&rules::COMMAND_FAILED, at).arg("command", shown).arg("cause", cause)))
}

fn said(status: ExitStatus) -> Localized {
    match status.code() {
        Some(code) => Localized::both(format!("exit code {code}"), format!("退出码 {code}")),
        None => Localized::both("it was ended by a signal", "被信号终止"),
    }
}

/// In a group of its own, so that what it starts can be ended with it.
fn spawn(program: &str, arguments: &[String], folder: &Path) -> std::io::Result<Child> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn()
}

/// Waits for the command and passes on what it prints; an interrupt ends its group.
fn watch(ctx: &Context, mut child: Child) -> std::io::Result<ExitStatus> {
    let streams = [child.stdout.take().map(boxed), child.stderr.take().map(boxed)];
    let readers: Vec<_> = streams
        .into_iter()
        .flatten()
        .map(|stream| thread::Builder::new().spawn(move || pass_on(stream)))
        .collect::<std::io::Result<_>>()
        .inspect_err(|_| end(&mut child, true))?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if let Some(state) = ctx.cancel.get() {
            end(&mut child, state.count > 1);
        }
        thread::sleep(TICK);
    };
    for reader in readers {
        let _ = reader.join();
    }
    Ok(status)
}

fn boxed(stream: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    Box::new(stream)
}

/// Standard output belongs to the report, so everything goes to standard error.
fn pass_on(stream: Box<dyn Read + Send>) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        let text = term::neutralize(&String::from_utf8_lossy(&line));
        let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
        line.clear();
    }
}

#[cfg(unix)]
fn end(child: &mut Child, hard: bool) {
    use nix::sys::signal::{Signal, killpg};
    use nix::unistd::Pid;
    if let Ok(id) = i32::try_from(child.id()) {
        let _ = killpg(Pid::from_raw(id), if hard { Signal::SIGKILL } else { Signal::SIGTERM });
    }
}

#[cfg(not(unix))]
fn end(child: &mut Child, _hard: bool) {
    let _ = child.kill();
}
