//! `verify merge`: joins the reports of a run that was split over machines.

use super::bench::{Measured, show};
use crate::Screen;
use crate::bench::part::{self, Part};
use crate::bench::union;
use crate::cli::{Cli, MergeArgs};
use crate::error::RunError;
use crate::model::{
    Finding, Item, ItemStatus, Lang, Localized, Location, Outcome, Partition, RepoPath, RunReport, Severity, StageId,
    StageRun, Status, Summary,
};
use crate::render::Format;
use crate::rules;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Deserialize)]
#[serde(expecting = "a JSON object with the members of a report")]
struct WireReport {
    schema_version: String,
    exit_code: i32,
    duration_ms: u64,
    partition: Option<Partition>,
    error: Option<WireFault>,
    bench: Option<serde::de::IgnoredAny>,
    stages: Vec<WireStage>,
}

#[derive(Deserialize)]
struct WireFault {
    message: String,
}

#[derive(Deserialize)]
struct WireStage {
    stage: StageId,
    status: Status,
    blocked_by: Option<StageId>,
    reason: Option<String>,
    #[serde(default)]
    duration_ms: u64,
    #[serde(default)]
    summary: BTreeMap<String, u64>,
    #[serde(default)]
    items: Vec<WireItem>,
    #[serde(default)]
    findings: Vec<WireFinding>,
}

#[derive(Deserialize)]
struct WireItem {
    path: String,
    status: ItemStatus,
    mode: Option<String>,
    project: Option<u32>,
    duration_ms: Option<u64>,
    claimed: Option<String>,
    max_decision: Option<String>,
    detail: Option<String>,
    #[serde(default)]
    next_steps: Vec<String>,
}

#[derive(Deserialize)]
struct WireFinding {
    rule: String,
    severity: Severity,
    message: String,
    path: String,
    cell: Option<u32>,
    line: Option<u32>,
    column: Option<u32>,
    target: Option<String>,
    help: Option<String>,
}

/// Joins reports, or parts of a load, and shows the whole.
///
/// # Errors
/// A file is no report of this version or belongs to a run that checked nothing; the
/// parts of a course or of a load are not all there, each once.
pub(crate) fn run(args: &MergeArgs, cli: &Cli, screen: &Screen<'_>) -> Result<u8, RunError> {
    if is_part_of_load(args.reports.first()) {
        return merge_load(args, cli, screen);
    }
    let reports = args.reports.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    check_parts(reports.iter().filter_map(|report| report.partition))?;
    screen.show(&merge(reports)?)
}

/// Whether a file is what a generator of `verify bench` saved. A fault of reading it is
/// said by whoever reads it next.
fn is_part_of_load(path: Option<&PathBuf>) -> bool {
    const FIRST_LINE: u64 = 1 << 20;
    // A pipe gives its first line only once.
    let Some(Ok(file)) = path.filter(|path| path.is_file()).map(File::open) else { return false };
    let mut line = Vec::new();
    let read = BufReader::new(file.take(FIRST_LINE)).read_until(b'\n', &mut line);
    read.is_ok() && part::is_part(&line)
}

/// Joins what the generators of one load saved.
fn merge_load(args: &MergeArgs, cli: &Cli, screen: &Screen<'_>) -> Result<u8, RunError> {
    let began = Instant::now();
    screen.format_of(&[Format::Human, Format::Json])?;
    let ctx = crate::context(cli, screen, &[])?;
    let parts = args.reports.iter().map(|path| read_part(path)).collect::<Result<Vec<Part>, _>>()?;
    let named = |part: &Part| Partition { part: part.header.part, of: part.header.of };
    check_parts(parts.iter().map(named))?;
    union::check(&parts).map_err(|fault| {
        let hint = Localized::both(
            "merge the parts of one load: the same options, --partition K/N, one --meet or --start-at",
            "请合并同一份负载的各部分：选项相同，--partition K/N 各异，--meet 或 --start-at 相同",
        );
        RunError::usage(fault, hint)
    })?;
    let Some(whole) = union::merge(parts, args.clock_error) else { return Ok(0) };
    show(&ctx, cli, screen, Measured::of(whole.report, Vec::new(), whole.findings), began.elapsed())
}

fn read_part(path: &Path) -> Result<Part, RunError> {
    let file = File::open(path).map_err(|error| RunError::file(path, error))?;
    part::read(BufReader::new(file)).map_err(|fault| {
        let shown = path.display();
        RunError::usage(
            Localized::both(format!("{shown}: {}", fault.get(Lang::En)), format!("{shown}：{}", fault.get(Lang::Zh))),
            Localized::both(
                "give what every generator wrote with `verify bench --partition K/N --save-requests FILE`",
                "请提供每个压测进程用 `verify bench --partition K/N --save-requests FILE` 写出的文件",
            ),
        )
    })
}

fn read(path: &Path) -> Result<WireReport, RunError> {
    let bytes = std::fs::read(path).map_err(|error| RunError::file(path, error))?;
    let shown = path.display();
    let report: WireReport = serde_json::from_slice(&bytes).map_err(|error| {
        RunError::usage(
            Localized::both(
                format!("{shown} is no verify-report/v1: {error}"),
                format!("{shown} 不是 verify-report/v1：{error}"),
            ),
            Localized::both(
                "give reports written with `--output json=FILE`",
                "请提供用 `--output json=FILE` 写出的报告",
            ),
        )
    })?;
    if report.schema_version != crate::render::v1::SCHEMA_VERSION {
        let version = &report.schema_version;
        return Err(RunError::usage(
            Localized::both(
                format!("{shown} is a report of version {version}"),
                format!("{shown} 的报告版本是 {version}"),
            ),
            Localized::both("merge it with the program that wrote it", "请用写出该报告的程序合并"),
        ));
    }
    if let Some(fault) = &report.error {
        // A part that checked nothing must not vanish in a whole that looks complete.
        return Err(RunError::usage(
            Localized::both(
                format!("{shown}: this part checked nothing: {}", fault.message),
                format!("{shown}：这一部分什么也没有检查：{}", fault.message),
            ),
            Localized::both("correct and repeat that part", "请修正后重新运行该部分"),
        ));
    }
    if report.bench.is_some() {
        return Err(RunError::usage(
            Localized::both(
                format!("{shown}: figures of several loads cannot be joined, only what happened in their requests"),
                format!("{shown}：多份负载的统计数据无法合并，只能合并各请求的记录"),
            ),
            Localized::both(
                "merge what each `verify bench --partition K/N` wrote with --save-requests",
                "请合并每个 `verify bench --partition K/N` 用 --save-requests 写出的文件",
            ),
        ));
    }
    if report.stages.is_empty() {
        return Err(RunError::usage(
            Localized::both(
                format!("{shown}: there is nothing in this report"),
                format!("{shown}：该报告没有任何内容"),
            ),
            Localized::both("repeat the run that wrote it", "请重新运行写出该报告的检查"),
        ));
    }
    Ok(report)
}

/// An absent part was not checked, so the whole must not look complete without it.
fn check_parts(parts: impl Iterator<Item = Partition>) -> Result<(), RunError> {
    let mut seen: BTreeSet<usize> = BTreeSet::new();
    let mut all: Option<usize> = None;
    for Partition { part, of } in parts {
        let whole = *all.get_or_insert(of);
        if whole != of {
            return Err(parts_fault(
                format!("the reports split the course differently: into {whole} and into {of} parts"),
                format!("这些报告的拆分方式不同：有的分为 {whole} 份，有的分为 {of} 份"),
            ));
        }
        if !(1..=of).contains(&part) {
            return Err(parts_fault(format!("there is no part {part}/{of}"), format!("不存在第 {part}/{of} 份")));
        }
        if !seen.insert(part) {
            return Err(parts_fault(
                format!("part {part}/{of} is there twice"),
                format!("第 {part}/{of} 份出现了两次"),
            ));
        }
    }
    let Some(of) = all.filter(|of| seen.len() < *of) else { return Ok(()) };
    let missing = missing_parts(&seen, of);
    Err(parts_fault(format!("not every part is there; missing: {missing}"), format!("各份报告不齐全，缺少：{missing}")))
}

/// Names parts that are not there; a report can claim any number of them.
fn missing_parts(seen: &BTreeSet<usize>, of: usize) -> String {
    const NAMED: usize = 20;
    let absent = of - seen.len();
    let mut names: Vec<String> =
        (1..=of).filter(|part| !seen.contains(part)).take(NAMED).map(|part| format!("{part}/{of}")).collect();
    if absent > NAMED {
        names.push(format!("… (+{})", absent - NAMED));
    }
    names.join(", ")
}

fn parts_fault(en: String, zh: String) -> RunError {
    RunError::usage(
        Localized::both(en, zh),
        Localized::both(
            "give one report for each part of `--partition K/N`, K from 1 to N",
            "请为 `--partition K/N` 的每一份（K 从 1 到 N）各提供一份报告",
        ),
    )
}

/// Joins what was read. Parts run side by side, so the whole took as long as the longest.
fn merge(reports: Vec<WireReport>) -> Result<RunReport, RunError> {
    let mut whole = RunReport::default();
    let mut stages: BTreeMap<StageId, Vec<WireStage>> = BTreeMap::new();
    for report in reports {
        whole.duration = whole.duration.max(Duration::from_millis(report.duration_ms));
        whole.interrupted = whole.interrupted.or((report.exit_code >= 128).then_some(report.exit_code));
        for stage in report.stages {
            stages.entry(stage.stage).or_default().push(stage);
        }
    }
    for (stage, parts) in stages {
        let duration = Duration::from_millis(parts.iter().map(|part| part.duration_ms).max().unwrap_or(0));
        whole.stages.push(StageRun { stage, outcome: outcome(parts)?, duration });
    }
    Ok(whole)
}

fn outcome(parts: Vec<WireStage>) -> Result<Outcome, RunError> {
    let ran = |part: &WireStage| matches!(part.status, Status::Pass | Status::Fail);
    if !parts.iter().any(ran) {
        let blocked = parts.iter().find_map(|part| part.blocked_by);
        let reason = parts.into_iter().find_map(|part| part.reason).unwrap_or_default();
        return Ok(blocked.map_or_else(|| Outcome::skipped(reason), |by| Outcome::Blocked { by }));
    }
    let (mut counts, mut items, mut findings) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for part in parts {
        for (name, count) in part.summary {
            let known: &mut u64 = counts.entry(name).or_default();
            *known = count.max(*known);
        }
        part.items.into_iter().map(item).for_each(|item| add_item(&mut items, item));
        for wire in part.findings {
            let finding = finding(wire)?;
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }
    let items: Vec<Item> = items.into_values().collect();
    // Only notebooks are split; a stage without items saw the same files in every part.
    let summary = if items.is_empty() { counted(counts) } else { Summary::of_items(&items) };
    Ok(Outcome::ran(1, summary, items, findings))
}

/// One entry per file and mode; where parts disagree the failure stays.
fn add_item(items: &mut BTreeMap<(String, Option<&'static str>), Item>, item: Item) {
    let key = (item.path.as_str().to_owned(), item.mode);
    match items.get_mut(&key) {
        Some(known) if known.status.is_failure() || !item.status.is_failure() => {}
        _ => {
            items.insert(key, item);
        }
    }
}

fn counted(counts: BTreeMap<String, u64>) -> Summary {
    counts.into_iter().fold(Summary::new(), |summary, (name, count)| {
        // A few short names once per process: the summary holds names of the program.
        summary.with(Box::leak(name.into_boxed_str()), count)
    })
}

fn item(wire: WireItem) -> Item {
    Item {
        mode: wire.mode.and_then(|mode| ["answer", "question"].into_iter().find(|known| *known == mode)),
        project: wire.project,
        duration: wire.duration_ms.map(Duration::from_millis),
        claimed: wire.claimed,
        max_decision: wire.max_decision,
        detail: wire.detail.map(Localized::from),
        next_steps: wire.next_steps.into_iter().map(Localized::from).collect(),
        ..Item::new(RepoPath::new(wire.path), wire.status)
    }
}

fn finding(wire: WireFinding) -> Result<Finding, RunError> {
    let Some(rule) = rules::find(&wire.rule) else {
        return Err(RunError::usage(
            Localized::both(format!("there is no rule `{}`", wire.rule), format!("没有规则 `{}`", wire.rule)),
            Localized::both("merge with the version that wrote the reports", "请用写出这些报告的版本合并"),
        ));
    };
    let mut at = Location::file(RepoPath::new(wire.path)).cell(wire.cell).line(wire.line).column(wire.column);
    at.target = wire.target;
    let finding = Finding::new(rule, at).severity(wire.severity).said(wire.message);
    Ok(finding.help(wire.help.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(path: &str, status: &str, exit: i32) -> WireReport {
        let findings = serde_json::json!([{
            "rule": "answers/sandbox", "severity": "note", "message": "walls {held}", "path": "."
        }]);
        serde_json::from_value(serde_json::json!({
            "schema_version": "verify-report/v1", "exit_code": exit, "duration_ms": 5,
            "stages": [
                {"stage": "static", "status": "pass", "summary": {"files": 2}},
                {"stage": "answers", "status": status, "duration_ms": 4,
                 "items": [{"path": path, "status": status, "mode": "answer"}], "findings": findings},
            ],
        }))
        .unwrap()
    }

    #[test]
    fn parts_add_up_and_one_failure_fails_the_whole() {
        let whole = merge(vec![part("b.ipynb", "pass", 0), part("a.ipynb", "fail", 1)]).unwrap();
        assert_eq!((whole.exit_code(), whole.stages.len()), (1, 2));
        let answers = &whole.stages[1].outcome;
        let paths: Vec<&str> = answers.items().iter().map(|item| item.path.as_str()).collect();
        assert_eq!(paths, ["a.ipynb", "b.ipynb"]);
        assert_eq!(answers.findings().len(), 1);
        assert_eq!(answers.findings()[0].message(crate::model::Lang::En), "walls {held}");
        let Outcome::Ran { summary, .. } = &whole.stages[0].outcome else { panic!("static ran") };
        assert_eq!(summary.iter().collect::<Vec<_>>(), [("files", 2)]);
    }

    #[test]
    fn every_part_is_there_once() {
        let check = |parts: &[(usize, usize)]| {
            let parts = parts.iter().map(|(part, of)| Partition { part: *part, of: *of });
            check_parts(parts).map_err(|error| error.to_string())
        };
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&[(2, 2), (1, 2)]), Ok(()));
        assert_eq!(check(&[(1, 2)]).unwrap_err(), "not every part is there; missing: 2/2");
        assert_eq!(check(&[(2, 4), (4, 4)]).unwrap_err(), "not every part is there; missing: 1/4, 3/4");
        assert_eq!(check(&[(1, 2), (1, 2)]).unwrap_err(), "part 1/2 is there twice");
        assert!(check(&[(1, 2), (2, 3)]).unwrap_err().contains("into 2 and into 3"));
        assert!(check(&[(0, 1)]).unwrap_err().contains("0/1"));
        assert!(check(&[(1, usize::MAX)]).unwrap_err().contains("(+"));
    }

    #[test]
    fn an_interrupted_part_interrupts_the_whole() {
        let whole = merge(vec![part("a.ipynb", "pass", 0), part("b.ipynb", "pass", 130)]).unwrap();
        assert_eq!(whole.exit_code(), 130);
    }

    #[test]
    fn a_failure_is_not_outvoted() {
        let whole = merge(vec![part("a.ipynb", "fail", 1), part("a.ipynb", "pass", 0)]).unwrap();
        assert_eq!(whole.stages[1].outcome.items()[0].status, ItemStatus::Fail);
    }
}
