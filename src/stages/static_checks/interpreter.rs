//! `--python PATH`: a second opinion from a real interpreter, in one process for all
//! units. Where it disagrees, a note says so; it never decides.

use super::Task;
use super::judge::Judged;
use crate::course::Context;
use crate::error::RunError;
use crate::model::{Finding, Localized, Location, Severity};
use crate::python::{Dialect, Target, version};
use crate::rules::{self, Rule};
use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// What the interpreter runs.
const SCRIPT: &str = include_str!("compile_units.py");
/// A unit on which the interpreter works longer than this is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// A longer line is no answer, in bytes.
const MAX_LINE: u64 = 1 << 20;
/// Lines that wait to be looked at.
const MAX_LINES: usize = 16;
/// Characters of a strange answer that are shown.
const MAX_SHOWN: usize = 60;
/// An interpreter that died this often is not started again.
const MAX_DEATHS: usize = 20;

/// Units kept for the interpreter.
#[derive(Debug, Default)]
pub(super) struct Sources(Mutex<Vec<Unit>>);

/// One text with our own verdict.
#[derive(Debug)]
struct Unit {
    at: Location,
    text: String,
    dialect: Dialect,
    /// 1-based line and rule of our first error.
    fault: Option<(u32, &'static Rule)>,
}

impl Sources {
    /// Keeps a unit. Magics become `None`, because only IPython knows them.
    pub(super) fn push(&self, task: &Task<'_>, at: Location, text: &str, dialect: Dialect, judged: &Judged) {
        debug_assert!(task.sources.is_some());
        let lines = crate::python::Lines::new(text);
        let is_error = |severity: Option<Severity>, rule: &Rule| severity.unwrap_or(rule.severity) == Severity::Error;
        let fault = judged
            .faults
            .iter()
            .find(|fault| is_error(fault.severity, fault.rule))
            .map(|fault| (lines.place(fault.range.start).0, fault.rule));
        let text = match &judged.module {
            Some(module) if dialect == Dialect::Cell => without_magics(text, &module.syntax().body),
            _ => text.to_owned(),
        };
        // A worker that panicked while it held the lock is reported as such; its list is whole.
        let mut units = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        units.push(Unit { at, text, dialect, fault });
    }
}

/// The text with `None` in place of magics, line by line the same.
fn without_magics(text: &str, body: &[Stmt]) -> String {
    #[derive(Default)]
    struct Magics(Vec<TextRange>);
    impl<'a> Visitor<'a> for Magics {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            match statement {
                Stmt::IpyEscapeCommand(command) => self.0.push(command.range()),
                _ => walk_stmt(self, statement),
            }
        }
        fn visit_expr(&mut self, expression: &'a Expr) {
            match expression {
                Expr::IpyEscapeCommand(command) => self.0.push(command.range()),
                _ => walk_expr(self, expression),
            }
        }
    }
    let mut magics = Magics::default();
    magics.visit_body(body);
    let mut out = text.to_owned();
    for range in magics.0.into_iter().rev() {
        let newlines = "\n".repeat(text[range].matches('\n').count());
        out.replace_range(range.start().to_usize()..range.end().to_usize(), &format!("None{newlines}"));
    }
    out
}

/// What the interpreter says about one unit: `None` is fine.
type Opinion = Option<(Option<u32>, String)>;

/// Asks the interpreter about every unit.
///
/// # Errors
/// The interpreter cannot be started.
pub(super) fn compare(
    ctx: &Context,
    python: &Path,
    target: Target,
    sources: Sources,
) -> Result<Vec<Finding>, RunError> {
    let mut units = sources.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    units.sort_by(|a, b| (a.at.path.as_str(), a.at.cell).cmp(&(b.at.path.as_str(), b.at.cell)));
    let mut findings = Vec::new();
    let mut next = 0;
    let mut deaths = 0;
    let mut found = String::new();
    while next < units.len() && !ctx.cancel.is_set() && deaths < MAX_DEATHS {
        let asked = ask(ctx, python, &units[next..])?;
        found = asked.version;
        for (unit, opinion) in units[next..].iter().zip(&asked.opinions) {
            findings.extend(disagreement(unit, opinion, &found, target));
        }
        next += asked.opinions.len();
        if let Some(unit) = units.get(next) {
            // The one it was working on.
            deaths += 1;
            let said =
                Localized::both(format!("died on this ({})", asked.end), format!("处理此处时崩溃（{}）", asked.end));
            findings.push(note(unit.at.clone(), &found, target, said));
            next += 1;
        }
    }
    if deaths == MAX_DEATHS && next < units.len() {
        let said = Localized::both("died too often; the rest was not compared", "崩溃次数过多，其余内容未复核");
        findings.push(note(Location::file(units[next].at.path.clone()), &found, target, said));
    }
    Ok(findings)
}

fn disagreement(unit: &Unit, opinion: &Opinion, found: &str, target: Target) -> Option<Finding> {
    match (unit.fault, opinion) {
        (None, Some((line, message))) => {
            let said = Localized::both(format!("refuses this: {message}"), format!("不接受此处：{message}"));
            Some(note(unit.at.clone().line(*line), found, target, said))
        }
        (Some((line, rule)), None) => {
            let is_newer = version::parse(found).is_some_and(|version| version > target.version);
            if is_newer && std::ptr::eq(rule, &rules::static_checks::NEWER_SYNTAX) {
                return None;
            }
            let said = Localized::both("accepts this", "接受此处的代码");
            Some(note(unit.at.clone().line(line), found, target, said))
        }
        _ => None,
    }
}

fn note(at: Location, found: &str, target: Target, said: Localized) -> Finding {
    Finding::new(&rules::static_checks::DISAGREEMENT, at)
        .arg("version", found)
        .arg("message", said)
        .arg("target", target.version.to_string())
}

/// What one process said before it ended.
struct Asked {
    version: String,
    opinions: Vec<Opinion>,
    /// How it ended.
    end: String,
}

/// Kills its process when it goes out of scope.
struct Interpreter(Child);

impl Drop for Interpreter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ask(ctx: &Context, python: &Path, units: &[Unit]) -> Result<Asked, RunError> {
    let mut child = start(ctx, python)?;
    let (Some(mut input), Some(output)) = (child.0.stdin.take(), child.0.stdout.take()) else {
        return Err(RunError::file(python, std::io::Error::other("no pipe")));
    };
    // Bounded: an interpreter that prints without end waits for us, not for memory.
    let (sender, lines) = sync_channel(MAX_LINES);
    std::thread::scope(move |scope| {
        let reading = std::thread::Builder::new().spawn_scoped(scope, move || {
            let mut output = BufReader::new(output);
            while let Some(line) = short_line(&mut output) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let writing = std::thread::Builder::new().spawn_scoped(scope, move || {
            for unit in units {
                let kind = if unit.dialect == Dialect::Cell { 'c' } else { 'm' };
                let sent = write!(input, "{kind} {}\n{}", unit.text.len(), unit.text);
                // It died; the reader will notice.
                if sent.is_err() {
                    return;
                }
            }
        });
        if let Err(error) = reading.and(writing) {
            let _ = child.0.kill();
            return Err(RunError::file(python, error));
        }
        let mut asked = listen(ctx, &lines, units.len());
        // Nobody hears more, and it is killed here, so that the two threads above come to their end.
        drop(lines);
        let _ = child.0.kill();
        let status = child.0.wait();
        if asked.end.is_empty() {
            asked.end = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        }
        if asked.version.is_empty() {
            return Err(RunError::usage(
                Localized::both(
                    format!("{} is no Python interpreter ({})", python.display(), asked.end),
                    format!("{} 不是可用的 Python 解释器（{}）", python.display(), asked.end),
                ),
                Localized::both(
                    "give the path of a python program with --python",
                    "请用 --python 给出 python 程序的路径",
                ),
            ));
        }
        Ok(asked)
    })
}

/// Of any age: newer ones than we know are asked too.
fn is_version(line: &str) -> bool {
    let parts: Vec<&str> = line.split('.').collect();
    parts.len() > 1 && parts.iter().all(|part| part.parse::<u32>().is_ok())
}

/// The next line; none where the output ends or a line is longer than any answer.
fn short_line(output: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    output.take(MAX_LINE).read_until(b'\n', &mut line).ok()?;
    line.ends_with(b"\n").then(|| String::from_utf8_lossy(&line).trim_end().to_owned())
}

/// Starts an interpreter that neither reads nor writes anything but its pipes.
fn start(ctx: &Context, python: &Path) -> Result<Interpreter, RunError> {
    // A bare name is looked up on PATH; a path is relative to where the user stands.
    let program = if python.components().count() > 1 { ctx.at_cwd(python) } else { python.to_path_buf() };
    Command::new(&program)
        .args(["-I", "-S", "-B", "-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map(Interpreter)
        .map_err(|error| RunError::file(python, error))
}

fn listen(ctx: &Context, lines: &Receiver<String>, count: usize) -> Asked {
    let mut asked = Asked { version: String::new(), opinions: Vec::new(), end: String::new() };
    let mut heard = Instant::now();
    while asked.opinions.len() < count && !ctx.cancel.is_set() {
        match lines.recv_timeout(Duration::from_millis(100)) {
            Ok(line) if asked.version.is_empty() && is_version(&line) => asked.version = line,
            Ok(line) if asked.version.is_empty() => {
                asked.end = format!("it says `{}`", line.chars().take(MAX_SHOWN).collect::<String>());
                break;
            }
            Ok(line) => match serde_json::from_str(&line) {
                Ok(opinion) => asked.opinions.push(opinion),
                Err(error) => {
                    asked.end = error.to_string();
                    break;
                }
            },
            Err(RecvTimeoutError::Timeout) if heard.elapsed() < PATIENCE => continue,
            Err(RecvTimeoutError::Timeout) => {
                asked.end = format!("no answer in {} s", PATIENCE.as_secs());
                break;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
        heard = Instant::now();
    }
    asked
}
