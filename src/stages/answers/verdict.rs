//! From what a run told to a verdict with its findings. Pure.

use super::events::{Event, Mark, Raised, Recorded};
use super::plan::{Mode, Plan};
use crate::model::{Finding, ItemStatus, Localized, Location, RepoPath};
use crate::rules::answers as rules;
use std::collections::BTreeSet;

/// How a run ended, as seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The driver told its end.
    Told,
    /// The process was gone before that, with this status.
    Exited(i32),
    /// A signal ended it.
    Signal(i32),
    /// The deadline passed; where it was, if that could be found out.
    Timeout(Option<(u32, u32)>),
    /// The user interrupted the run.
    Interrupted,
    /// The fork server is gone, and with it the answer: run it again.
    Lost,
}

/// Everything a run left.
#[derive(Debug, Clone)]
pub(super) struct Run {
    /// What it told.
    pub(super) events: Vec<Event>,
    /// How it ended.
    pub(super) end: End,
    /// The last lines it printed.
    pub(super) tail: Vec<String>,
}

/// Verdict, findings, and modules that were missing.
#[derive(Debug, Clone)]
pub(super) struct Verdict {
    /// Of the item.
    pub(super) status: ItemStatus,
    /// Why.
    pub(super) findings: Vec<Finding>,
    /// Modules that are not installed; told once for the whole run.
    pub(super) missing: Vec<(String, Option<u32>, Option<u32>)>,
}

impl Verdict {
    fn new(status: ItemStatus) -> Self {
        Verdict { status, findings: Vec::new(), missing: Vec::new() }
    }

    fn with(status: ItemStatus, finding: Finding) -> Self {
        Verdict { status, findings: vec![finding], missing: Vec::new() }
    }
}

/// At most so many failures of one notebook are told.
const MAX_FAILURES: usize = 20;

/// What to judge by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case<'a> {
    /// The notebook.
    pub(super) path: &'a RepoPath,
    /// What ran.
    pub(super) mode: Mode,
    /// The steps.
    pub(super) plan: &'a Plan,
    /// Seconds it had.
    pub(super) timeout: f64,
    /// Writing elsewhere and the network were forbidden.
    pub(super) walled: bool,
    /// Bytes it had, where they were limited.
    pub(super) memory: Option<u64>,
}

impl Case<'_> {
    fn at(&self, cell: Option<u32>, line: Option<u32>) -> Location {
        Location::file(self.path.clone()).cell(cell).line(line)
    }

    fn at_error(&self, error: &Raised) -> Location {
        self.at(error.cell, error.line).column(error.column).length(error.length)
    }

    /// Judges a run.
    pub(super) fn judge(&self, run: &Run) -> Verdict {
        if let Some(verdict) = self.cut_short(run) {
            return verdict;
        }
        if let Some(verdict) = self.missing_module(run) {
            return verdict;
        }
        let failures = self.failures(run);
        if self.mode == Mode::Question && self.is_expected_fail(run, &failures) {
            return Verdict::new(ItemStatus::ExpectedFail);
        }
        if !failures.is_empty() {
            let findings = failures.into_iter().map(|failure| failure.finding).take(MAX_FAILURES).collect();
            return Verdict { status: ItemStatus::Fail, findings, missing: Vec::new() };
        }
        self.without_failure(run)
    }

    fn without_failure(&self, run: &Run) -> Verdict {
        if let Some(reason) = skip_reason(&run.events) {
            let finding = Finding::new(&rules::SKIPPED, self.at(None, None)).arg("reason", reason);
            return Verdict::with(ItemStatus::Skip, finding);
        }
        let entered = names(&run.events, |event| match event {
            Event::Leave { test, .. } => Some(test),
            _ => None,
        });
        let tagged = self.plan.steps.iter().any(|step| step.tagged_test && step.tests.is_empty());
        let uncalled: Vec<_> = self.plan.tests().filter(|(_, test)| !entered.contains(&test.name)).collect();
        let mut verdict = Verdict::new(ItemStatus::Pass);
        if self.mode != Mode::Inline && entered.is_empty() && !tagged {
            let Some((cell, test)) = uncalled.first() else { return verdict };
            let at = self.at(Some(*cell), Some(test.line)).target(&test.name);
            return Verdict::with(ItemStatus::Fail, Finding::new(&rules::TESTS_NOT_CALLED, at));
        }
        verdict.findings.extend(uncalled.iter().map(|(cell, test)| {
            Finding::new(&rules::TEST_NOT_CALLED, self.at(Some(*cell), Some(test.line)).target(&test.name))
        }));
        if self.mode == Mode::Question {
            verdict.findings.push(Finding::new(&rules::QUESTION_ALREADY_SOLVED, self.at(None, None)));
        }
        verdict
    }

    /// Timeouts, interrupts, and interpreters that never began.
    fn cut_short(&self, run: &Run) -> Option<Verdict> {
        match run.end {
            End::Timeout(place) => {
                let (cell, line) =
                    place.map_or((last_cell(&run.events), None), |(cell, line)| (Some(cell), Some(line)));
                let finding = Finding::new(&rules::TIMEOUT, self.at(cell, line)).arg("seconds", self.timeout);
                Some(Verdict::with(ItemStatus::Timeout, with_tail(finding, run)))
            }
            End::Interrupted | End::Lost => Some(Verdict::new(ItemStatus::Error)),
            End::Exited(_) | End::Signal(_) if !run.events.contains(&Event::Start) => {
                let finding = Finding::new(&rules::INTERPRETER_FAILED, self.at(None, None)).arg("how", how(run.end));
                Some(Verdict::with(ItemStatus::Error, with_tail(finding, run)))
            }
            _ => None,
        }
    }

    fn missing_module(&self, run: &Run) -> Option<Verdict> {
        let errors = run.events.iter().filter_map(|event| match event {
            Event::Error { error, .. } | Event::Raise { error, expected: false, .. } => Some(error),
            _ => None,
        });
        let error = errors.into_iter().find(|error| error.missing.is_some())?;
        let module = error.missing.as_deref()?.split('.').next()?.to_owned();
        Some(Verdict { missing: vec![(module, error.cell, error.line)], ..Verdict::new(ItemStatus::Error) })
    }

    /// The state the question area should be in: what came out is NotImplementedError.
    fn is_expected_fail(&self, run: &Run, failures: &[Failure]) -> bool {
        if let Some(Event::Error { error, .. }) = run.events.last() {
            return error.not_implemented;
        }
        !failures.is_empty() && failures.iter().all(|failure| failure.not_implemented)
    }

    fn failures(&self, run: &Run) -> Vec<Failure> {
        let mut list = Failures { case: self, run, found: Vec::new(), seen: BTreeSet::new() };
        list.ends();
        list.events();
        list.found
    }
}

/// One reason to fail.
struct Failure {
    finding: Finding,
    not_implemented: bool,
}

struct Failures<'a> {
    case: &'a Case<'a>,
    run: &'a Run,
    found: Vec<Failure>,
    seen: BTreeSet<(Option<u32>, Option<u32>)>,
}

impl Failures<'_> {
    fn push(&mut self, place: (Option<u32>, Option<u32>), finding: Finding, not_implemented: bool) {
        if self.seen.insert(place) {
            let finding = if self.found.is_empty() { with_tail(finding, self.run) } else { finding };
            self.found.push(Failure { finding, not_implemented });
        }
    }

    fn error(&mut self, rule: &'static crate::rules::Rule, error: &Raised, test: Option<&str>) {
        let mut at = self.case.at_error(error);
        if let Some(test) = test.or(error.function.as_deref()) {
            at = at.target(test);
        }
        let finding = Finding::new(rule, at).arg("message", error.text());
        let finding = match &error.outer {
            Some(outer) => finding.help(raised_again(outer, error.outer_message.as_deref())),
            None if error.r#type == "MemoryError" && self.case.memory.is_some() => {
                finding.help(out_of_memory(self.case.memory.unwrap_or_default()))
            }
            None if self.case.walled && may_be_a_wall(error) => finding.help(wall()),
            None => finding,
        };
        self.push(error.place(), finding, error.not_implemented);
    }

    /// What ended the notebook.
    fn ends(&mut self) {
        let last = last_cell(&self.run.events);
        match (self.run.end, self.run.events.last()) {
            (End::Told, Some(Event::Error { error, code })) if error.exit => {
                let code = code.clone().unwrap_or_default();
                let finding = Finding::new(&rules::EARLY_EXIT, self.case.at_error(error))
                    .arg("how", format!("SystemExit({code})"));
                self.push(error.place(), finding, false);
            }
            (End::Told, Some(Event::Error { error, .. })) if !error.skip => self.uncaught(error),
            (End::Exited(_) | End::Signal(_), _) => {
                let rule = if matches!(self.run.end, End::Signal(_)) { &rules::KILLED } else { &rules::EARLY_EXIT };
                let finding = Finding::new(rule, self.case.at(last, None)).arg("how", how(self.run.end));
                self.push((last, None), finding, false);
            }
            _ => {}
        }
    }

    fn uncaught(&mut self, error: &Raised) {
        let rule = if error.r#type == "SyntaxError" || error.r#type == "IndentationError" {
            &rules::SYNTAX
        } else {
            &rules::TEST_FAILED
        };
        self.error(rule, error, None);
    }

    fn events(&mut self) {
        let (mut caught, mut false_assert): (Option<&Raised>, Option<(u32, u32)>) = (None, None);
        let mut asserts: Vec<((u32, u32), Option<&str>)> = Vec::new();
        for event in &self.run.events {
            match event {
                Event::Raise { test, expected: false, error } if !error.skip => {
                    self.error(&rules::TEST_FAILED, error, Some(test));
                }
                Event::Unittest { kind: Recorded::Failure, test, error, .. } => self.unittest(test, error.as_ref()),
                Event::Assert { cell, line } => {
                    false_assert = Some((*cell, *line));
                    asserts.push(((*cell, *line), None));
                }
                Event::Message { text } if false_assert.is_some() => {
                    if let Some((_, message)) = asserts.last_mut() {
                        *message = Some(text);
                    }
                }
                Event::Enter { .. } => caught = None,
                Event::Caught { broad, expected: false, error, quiet, .. } => {
                    self.caught_stub(error, *quiet);
                    if *broad && !error.skip {
                        caught = Some(error);
                    }
                }
                Event::Mark { mark: Mark::Cross, .. } => {
                    if let Some(error) = caught.take() {
                        self.error(&rules::ERROR_SWALLOWED, error, None);
                    }
                }
                Event::Leave { test, returned_false: true } => self.returned_false(test),
                _ => {}
            }
        }
        asserts.into_iter().for_each(|(place, message)| self.swallowed(place, message));
    }

    /// A test that catches NotImplementedError and only says so has tested a stub.
    fn caught_stub(&mut self, error: &Raised, quiet: bool) {
        if error.not_implemented && !quiet && error.role.as_deref() != Some("test") {
            self.error(&rules::ERROR_SWALLOWED, error, None);
        }
    }

    fn unittest(&mut self, test: &str, error: Option<&Raised>) {
        match error {
            Some(error) => self.error(&rules::TEST_FAILED, error, Some(test)),
            None => {
                let at = self.case.at(last_cell(&self.run.events), None).target(test);
                let finding =
                    Finding::new(&rules::TEST_FAILED, at).arg("message", format!("{test}: unexpected success"));
                self.push((None, None), finding, false);
            }
        }
    }

    fn swallowed(&mut self, (cell, line): (u32, u32), message: Option<&str>) {
        let text = message.map_or_else(|| "AssertionError".to_owned(), |text| format!("AssertionError: {text}"));
        let finding =
            Finding::new(&rules::ASSERTION_SWALLOWED, self.case.at(Some(cell), Some(line))).arg("message", text);
        self.push((Some(cell), Some(line)), finding, false);
    }

    fn returned_false(&mut self, test: &str) {
        let place = self.case.plan.tests().find(|(_, known)| known.name == test);
        let (cell, line) = place.map_or((None, None), |(cell, known)| (Some(cell), Some(known.line)));
        let finding = Finding::new(&rules::RETURNED_FALSE, self.case.at(cell, line).target(test));
        self.push((cell, line), finding, false);
    }
}

/// Errors that the walls of the sandbox cause.
fn may_be_a_wall(error: &Raised) -> bool {
    let network = ["Errno 101", "Errno -3", "Errno -2"];
    error.r#type == "PermissionError" || network.iter().any(|number| error.message.contains(number))
}

fn wall() -> Localized {
    Localized::both(
        "notebooks run without network and may write to their scratch folder only; `--sandbox off` lifts that for code you trust",
        "笔记本运行时没有网络，且只能写入临时目录；对可信代码可用 `--sandbox off` 解除",
    )
}

fn out_of_memory(limit: u64) -> Localized {
    let limit = limit >> 20;
    Localized::both(
        format!("a notebook may use {limit} MiB; raise that with --memory or `answers.memory_mb`"),
        format!("每个笔记本最多使用 {limit} MiB 内存；可用 --memory 或 `answers.memory_mb` 调大"),
    )
}

fn raised_again(outer: &str, message: Option<&str>) -> Localized {
    let message = message.filter(|text| !text.is_empty()).map(|text| format!(": {text}")).unwrap_or_default();
    Localized::both(format!("raised again as {outer}{message}"), format!("随后被重新抛出为 {outer}{message}"))
}

/// Adds the last lines of output to the help.
fn with_tail(finding: Finding, run: &Run) -> Finding {
    if run.tail.is_empty() {
        return finding;
    }
    let tail = run.tail.join("\n");
    let before = |lang| finding.help_text(lang).map(|text| format!("{text}\n")).unwrap_or_default();
    let (en, zh) = (before(crate::model::Lang::En), before(crate::model::Lang::Zh));
    finding.help(Localized::both(format!("{en}last output:\n{tail}"), format!("{zh}最后的输出：\n{tail}")))
}

fn last_cell(events: &[Event]) -> Option<u32> {
    events.iter().rev().find_map(|event| match event {
        Event::Cell { cell } => Some(*cell),
        _ => None,
    })
}

fn names<'e>(events: &'e [Event], name: impl Fn(&'e Event) -> Option<&'e String>) -> BTreeSet<String> {
    events.iter().filter_map(|event| name(event).cloned()).collect()
}

/// Why a notebook declined to be tested. A sign at cell level counts when no test ran.
fn skip_reason(events: &[Event]) -> Option<String> {
    let mut depth = 0_u32;
    let entered = events.iter().any(|event| matches!(event, Event::Enter { .. }));
    for event in events {
        match event {
            Event::Enter { .. } => depth += 1,
            Event::Leave { .. } => depth = depth.saturating_sub(1),
            Event::Raise { error, .. } if error.skip => return Some(error.text()),
            Event::Raise { .. } => depth = depth.saturating_sub(1),
            Event::Error { error, .. } if error.skip => return Some(error.text()),
            Event::Unittest { kind: Recorded::Skip, test, reason, .. } => {
                return Some(format!("{test}: {}", reason.clone().unwrap_or_default()));
            }
            Event::Mark { mark: Mark::Skip, text } if depth > 0 || !entered => return Some(text.clone()),
            _ => {}
        }
    }
    None
}

/// How a process ended, in words that users look for.
fn how(end: End) -> Localized {
    match end {
        End::Signal(number) => {
            let name = signal_name(number);
            let hint = if number == 9 { " (often: out of memory)" } else { "" };
            let hint_zh = if number == 9 { "（常见原因：内存不足）" } else { "" };
            Localized::both(format!("signal {number}, {name}{hint}"), format!("信号 {number}，{name}{hint_zh}"))
        }
        End::Exited(code) => Localized::both(format!("exit code {code}"), format!("退出码 {code}")),
        _ => Localized::from(""),
    }
}

fn signal_name(number: i32) -> String {
    #[cfg(unix)]
    if let Ok(signal) = nix::sys::signal::Signal::try_from(number) {
        return signal.as_str().to_owned();
    }
    format!("signal {number}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Lang;
    use crate::stages::answers::code::Test;
    use crate::stages::answers::plan::{Role, Step};

    fn plan() -> Plan {
        let step = Step {
            cell: 4,
            role: Role::Test,
            text: String::new(),
            tests: vec![Test { name: "test_f".to_owned(), line: 1 }],
            pure: true,
            tagged_test: false,
            worker_text: String::new(),
            imports: Vec::new(),
        };
        Plan { steps: vec![step], ..Plan::default() }
    }

    fn judge(mode: Mode, end: End, events: &[&str]) -> Verdict {
        let mut all: Vec<Event> = vec![Event::Start, Event::Cell { cell: 4 }];
        all.extend(events.iter().map(|event| serde_json::from_str::<Event>(event).unwrap()));
        let (path, plan) = (RepoPath::new("nb.ipynb"), plan());
        let case = Case { path: &path, mode, plan: &plan, timeout: 30.0, walled: false, memory: None };
        case.judge(&Run { events: all, end, tail: vec!["last words".to_owned()] })
    }

    fn told(mode: Mode, events: &[&str]) -> (ItemStatus, Vec<&'static str>) {
        let verdict = judge(mode, End::Told, events);
        (verdict.status, verdict.findings.iter().map(|finding| finding.rule.id).collect())
    }

    const ENTER: &str = r#"{"event":"enter","test":"test_f"}"#;
    const LEAVE: &str = r#"{"event":"leave","test":"test_f","returned_false":false}"#;
    const END: &str = r#"{"event":"end"}"#;
    const SKIP: &str = r#"{"event":"mark","mark":"skip","text":"⏭"}"#;
    const CROSS: &str = r#"{"event":"mark","mark":"cross","text":"❌"}"#;

    fn error(event: &str, kind: &str, more: &str) -> String {
        let raised = format!(r#"{{"type":"{kind}","message":"m","cell":7,"line":3,"role":"answer"{more}}}"#);
        format!(
            r#"{{"event":"{event}","test":"test_f","expected":false,"line":5,"broad":true,"quiet":false,"error":{raised}}}"#
        )
    }

    #[test]
    fn a_test_that_was_entered_and_left_is_the_proof() {
        assert_eq!(told(Mode::Answer, &[ENTER, LEAVE, END]), (ItemStatus::Pass, vec![]));
        assert_eq!(told(Mode::Answer, &[END]), (ItemStatus::Fail, vec!["answers/tests-not-called"]));
        assert_eq!(told(Mode::Inline, &[END]), (ItemStatus::Pass, vec!["answers/test-not-called"]));
        let solved = (ItemStatus::Pass, vec!["answers/question-already-solved"]);
        assert_eq!(told(Mode::Question, &[ENTER, LEAVE, END]), solved);
    }

    #[test]
    fn a_failure_outranks_a_skip() {
        assert_eq!(told(Mode::Answer, &[ENTER, SKIP, LEAVE, END]).0, ItemStatus::Skip);
        let raised = error("raise", "AssertionError", "");
        let found = told(Mode::Answer, &[ENTER, SKIP, &raised, END]);
        assert_eq!(found, (ItemStatus::Fail, vec!["answers/test-failed"]));
        // A sign after the tests ran says nothing about them.
        assert_eq!(told(Mode::Answer, &[ENTER, LEAVE, SKIP, END]).0, ItemStatus::Pass);
    }

    #[test]
    fn what_a_handler_swallows_is_seen() {
        let assert = r#"{"event":"assert","cell":4,"line":3}"#;
        let message = r#"{"event":"message","text":"nine"}"#;
        let verdict = judge(Mode::Answer, End::Told, &[ENTER, assert, message, LEAVE, END]);
        assert_eq!(verdict.status, ItemStatus::Fail);
        let finding = &verdict.findings[0];
        assert_eq!(
            (finding.rule.id, finding.at.cell, finding.at.line),
            ("answers/assertion-swallowed", Some(4), Some(3))
        );
        assert!(finding.message(Lang::En).ends_with("AssertionError: nine"));
        assert!(finding.help_text(Lang::En).unwrap().ends_with("last output:\nlast words"));
        let caught = error("caught", "KeyError", "");
        assert_eq!(told(Mode::Answer, &[ENTER, &caught, LEAVE, END]).0, ItemStatus::Pass);
        let found = told(Mode::Answer, &[ENTER, &caught, CROSS, LEAVE, END]);
        assert_eq!(found, (ItemStatus::Fail, vec!["answers/error-swallowed"]));
    }

    #[test]
    fn a_question_is_expected_to_raise_not_implemented_and_nothing_else() {
        let stub = error("error", "NotImplementedError", r#","not_implemented":true"#);
        assert_eq!(told(Mode::Question, &[ENTER, &stub]).0, ItemStatus::ExpectedFail);
        assert_eq!(told(Mode::Answer, &[ENTER, &stub]).0, ItemStatus::Fail);
        assert_eq!(told(Mode::Question, &[ENTER, &error("error", "NameError", "")]).0, ItemStatus::Fail);
    }

    #[test]
    fn an_end_that_was_not_told_is_no_pass() {
        let verdict = |end| {
            let verdict = judge(Mode::Answer, end, &[ENTER, LEAVE]);
            (verdict.status, verdict.findings[0].rule.id, verdict.findings[0].message(Lang::En))
        };
        assert_eq!(verdict(End::Exited(0)).1, "answers/early-exit");
        let (status, rule, message) = verdict(End::Signal(11));
        assert_eq!((status, rule), (ItemStatus::Fail, "answers/killed"));
        assert!(message.contains("SIGSEGV"), "{message}");
        assert_eq!(verdict(End::Timeout(Some((7, 2)))).0, ItemStatus::Timeout);
    }

    #[test]
    fn a_missing_module_is_an_error_of_the_machine() {
        let missing = error("error", "ModuleNotFoundError", r#","missing":"torch.nn""#);
        let verdict = judge(Mode::Answer, End::Told, &[&missing]);
        assert_eq!(
            (verdict.status, verdict.missing),
            (ItemStatus::Error, vec![("torch".to_owned(), Some(7), Some(3))])
        );
    }
}
