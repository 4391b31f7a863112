//! `verify conclude`: gather results and baselines, let the evidence rules judge, say
//! what is claimed, what is allowed, why, and what would raise the ceiling.

use super::Chain;
use super::schema::read;
use crate::cli::ConcludeArgs;
use crate::config::{ConcludeSettings, Project};
use crate::course::{Context, may_be_file};
use crate::error::RunError;
use crate::model::{Finding, Item, ItemStatus, Lang, Localized, Location, Outcome, Severity, Summary};
use crate::results::evidence::{self, Case, Conclusion, Facts, Reason};
use crate::results::files;
use crate::results::gate::{self, Form, Mark};
use crate::results::json::{self, Node};
use crate::results::v1::Verdict;
use crate::rules::run as run_rules;
use std::path::{Path, PathBuf};

/// Runs the stage.
///
/// # Errors
/// A fault of usage: nothing was checked.
pub fn run(ctx: &Context, args: &ConcludeArgs, chain: &Chain) -> Result<Outcome, RunError> {
    if let Some(given) = &args.baseline {
        files::no_device(given, &ctx.at_cwd(given))?;
    }
    let measured = if chain.in_chain { super::enlarged::run(ctx, chain)? } else { Vec::new() };
    let pairs = match args.files.as_slice() {
        [] => of_projects(ctx, args),
        named => files::named(ctx, named)?
            .into_iter()
            .map(|file| Pair { baseline: baseline_of(ctx, args, &file.path), path: file.path, named: file.named })
            .collect(),
    };
    if measured.is_empty() && !pairs.iter().any(|pair| pair.named || pair.path.exists()) {
        return Ok(Outcome::skipped(Localized::both(
            "there is no result to conclude from: nothing was measured",
            "没有可供下结论的结果：尚未测量",
        )));
    }
    let mut items = Vec::new();
    let mut findings = measured;
    for pair in &pairs {
        if ctx.cancel.is_set() {
            break;
        }
        let judged = judge(ctx, pair);
        items.extend(judged.item);
        findings.extend(judged.findings);
    }
    Ok(Outcome::ran(items.len(), Summary::of_items(&items), items, findings))
}

/// A result and what it is compared with.
struct Pair {
    path: PathBuf,
    baseline: Option<PathBuf>,
    /// Named by the user, or the result of a project: another contract is a fault.
    named: bool,
}

/// The enlarged workload of each project where there is one, else its result.
fn of_projects(ctx: &Context, args: &ConcludeArgs) -> Vec<Pair> {
    let pair = |project: &Project| {
        let known = files::project_files(ctx, project);
        let path = if known.bench.exists() { known.bench } else { known.result };
        let baseline = baseline_of(ctx, args, &path);
        let named = may_be_file(&path);
        Pair { path, baseline, named }
    };
    ctx.chosen_projects().filter(|project| !project.result.is_empty()).map(pair).collect()
}

/// The baseline that was given, else the one that stands beside the result.
fn baseline_of(ctx: &Context, args: &ConcludeArgs, path: &Path) -> Option<PathBuf> {
    if let Some(given) = &args.baseline {
        return Some(files::lexical(&ctx.at_cwd(given)));
    }
    let name = path.file_name()?.to_string_lossy().into_owned();
    let bench = name.strip_suffix(".bench.json").map(|stem| {
        ["bench.baseline", "baseline.bench", "baseline"].map(|kind| format!("{stem}.{kind}.json")).to_vec()
    });
    let names = bench.or_else(|| Some(vec![format!("{}.baseline.json", name.strip_suffix(".json")?)]))?;
    names.into_iter().map(|name| path.with_file_name(name)).find(|path| path.is_file())
}

/// What became of one result.
#[derive(Default)]
struct Judged {
    item: Option<Item>,
    findings: Vec<Finding>,
}

fn judge(ctx: &Context, pair: &Pair) -> Judged {
    let path = ctx.repo_path(&pair.path);
    if ctx.excludes.matches(&path) {
        return Judged { item: None, findings: vec![Finding::new(&run_rules::EXCLUDED, Location::file(path))] };
    }
    let mut item = Item::new(path, ItemStatus::Skipped);
    item.project = files::project_of(ctx, &pair.path);
    item.max_decision = Some(Verdict::NotEvaluated.name().to_owned());
    if let Some(reason) = by_name(pair) {
        item.detail = Some(reason);
        return Judged { item: Some(item), findings: Vec::new() };
    }
    let candidate = load(ctx, &pair.path);
    if !pair.named && matches!(candidate.form, Some(Form::OtherContract(_))) {
        item.detail = Some(Localized::both("another contract", "另一种契约"));
        return Judged { item: Some(item), findings: Vec::new() };
    }
    let findings = evaluate(ctx, pair, &candidate, &mut item);
    let failed = findings.iter().any(|finding| finding.severity == Severity::Error);
    item.status = if failed { ItemStatus::Failed } else { ItemStatus::Ok };
    item.thresholds = thresholds(&ctx.settings.conclude);
    Judged { item: Some(item), findings }
}

/// Why a file that nobody named is not judged on its own.
fn by_name(pair: &Pair) -> Option<Localized> {
    if pair.named {
        return None;
    }
    if !pair.path.exists() {
        return Some(Localized::both("there is no result: not evaluated", "没有结果：not_evaluated"));
    }
    if files::is_failure_record(&pair.path) {
        return Some(Localized::both("the record of a run that failed", "失败运行的记录"));
    }
    let name = pair.path.file_name()?.to_string_lossy();
    let baseline = name.ends_with(".baseline.json") || name.ends_with(".baseline.bench.json");
    baseline.then(|| Localized::both("a baseline: others are compared with it", "基线：供其他结果比较"))
}

/// Holds one result against the rules; what keeps it or its baseline from being read
/// is a finding as well.
fn evaluate(ctx: &Context, pair: &Pair, candidate: &Loaded, item: &mut Item) -> Vec<Finding> {
    let baseline = pair.baseline.as_deref().map(|path| load(ctx, path));
    let mut findings = baseline.as_ref().map(Loaded::findings).unwrap_or_default();
    findings.extend(candidate.findings());
    let document = json::read(&candidate.text);
    let baseline_document = baseline.as_ref().map(|loaded| json::read(&loaded.text));
    let Some((pointer, normalized)) = document.root.as_ref().and_then(normalized) else { return findings };
    let other = baseline_document.as_ref().and_then(|document| normalized_of(document.root.as_ref()));
    let case = Case {
        candidate: Facts(normalized),
        baseline: other.map(Facts),
        limits: &ctx.settings.conclude,
        strategy_metrics: own_metrics(ctx, Facts(normalized).project()),
    };
    let conclusion = evidence::conclude(&case);
    findings.extend(reasons(&item.path, &candidate.text, pointer, normalized, &conclusion));
    describe(item, &case, &conclusion);
    findings
}

/// What the profile asks of a section that has no rules of its own.
fn own_metrics(ctx: &Context, project: Option<u32>) -> &[String] {
    project
        .and_then(|id| ctx.settings.project(id))
        .map(|project| project.strategy_metrics.as_slice())
        .unwrap_or_default()
}

/// A file and what keeps it from being judged.
pub(crate) struct Loaded {
    path: crate::model::RepoPath,
    pub(crate) text: String,
    marks: Vec<Mark>,
    form: Option<Form>,
}

impl Loaded {
    pub(crate) fn findings(&self) -> Vec<Finding> {
        gate::findings(&self.path, &self.text, self.marks.clone())
    }
}

/// Reads a file. Faults of the contract are the gate's business; faults that leave
/// nothing to judge are named here.
pub(crate) fn load(ctx: &Context, file: &Path) -> Loaded {
    let path = ctx.repo_path(file);
    let unreadable =
        |mark: Mark, text: &str| Loaded { path: path.clone(), text: text.to_owned(), marks: vec![mark], form: None };
    let bytes = match read(file, ctx.settings.schema.max_bytes) {
        Ok(bytes) => bytes,
        Err(mark) => return unreadable(*mark, ""),
    };
    let text = match gate::decode(&bytes) {
        Ok(decoded) => decoded.text,
        Err((readable, mark)) => return unreadable(*mark, readable),
    };
    let document = json::read(text);
    let mut marks: Vec<Mark> = document.faults.iter().map(|fault| gate::mark_of(fault, text)).collect();
    let form = document.root.as_ref().map(gate::form);
    if normalized_of(document.root.as_ref()).is_none() && document.root.is_some() {
        marks = gate::judge(&document, path.as_str()).marks;
    }
    Loaded { path, text: text.to_owned(), marks, form }
}

/// The public block and its pointer, enveloped or bare.
fn normalized<'n, 'a>(root: &'n Node<'a>) -> Option<(&'static str, &'n Node<'a>)> {
    match gate::form(root) {
        Form::Enveloped => {
            root.get("normalized_result").filter(|inner| inner.is_object()).map(|inner| ("/normalized_result", inner))
        }
        Form::Bare => Some(("", root)),
        _ => None,
    }
}

/// The public block, enveloped or bare.
pub(crate) fn normalized_of<'n, 'a>(root: Option<&'n Node<'a>>) -> Option<&'n Node<'a>> {
    root.and_then(normalized).map(|(_, inner)| inner)
}

fn reasons(
    path: &crate::model::RepoPath,
    text: &str,
    pointer: &str,
    normalized: &Node<'_>,
    conclusion: &Conclusion,
) -> Vec<Finding> {
    let mut marks: Vec<Mark> = conclusion
        .reasons
        .iter()
        .map(|reason| Mark { args: reason.args.clone(), ..mark(reason, pointer, normalized, conclusion.claim()) })
        .collect();
    marks.sort_by_key(|mark| mark.span.as_ref().map_or(0, |span| span.start));
    gate::findings(path, text, marks)
}

/// A reason at the value it is about, or at the nearest parent that is there.
fn mark(reason: &Reason, pointer: &str, normalized: &Node<'_>, claim: Verdict) -> Mark {
    let mut node = normalized;
    for step in &reason.path {
        match node.get(step) {
            Some(below) => node = below,
            None => break,
        }
    }
    let end = if node.is_object() { node.span.start + 1 } else { node.span.end };
    let target = reason.path.iter().fold(pointer.to_owned(), |pointer, step| json::push(pointer, step));
    Mark::new(reason.rule, node.span.start..end, target).severity(reason.severity(claim))
}

/// Claim, ceiling and reasons by weight in one line; the next step below it.
fn describe(item: &mut Item, case: &Case<'_>, conclusion: &Conclusion) {
    let claimed = case.candidate.text(&["decision", "decision"]).unwrap_or("—");
    let allowed = conclusion.allowed;
    item.claimed = case.candidate.text(&["decision", "decision"]).map(str::to_owned);
    item.max_decision = Some(allowed.name().to_owned());
    let names: Vec<&str> = conclusion
        .reasons
        .iter()
        .filter(|reason| reason.ceiling.is_some())
        .map(|reason| reason.rule.id.trim_start_matches("evidence/"))
        .collect();
    let because = |lang: Lang| match (names.is_empty(), lang) {
        (true, _) => String::new(),
        (false, Lang::En) => format!(" — {}", names.join(", ")),
        (false, Lang::Zh) => format!("——{}", names.join("、")),
    };
    item.detail = Some(Localized::both(
        format!("claimed {claimed}, allowed {allowed}{}", because(Lang::En)),
        format!("声称 {claimed}，允许 {allowed}{}", because(Lang::Zh)),
    ));
    item.next_steps = conclusion.next_step().into_iter().collect();
}

/// The limits that held, as they are stored beside the verdict.
fn thresholds(limits: &ConcludeSettings) -> Vec<(&'static str, f64)> {
    vec![
        ("min_repeats", f64::from(limits.min_repeats)),
        ("min_samples", f64::from(limits.min_samples)),
        ("max_cv", limits.max_cv),
        ("max_others_cpu", limits.max_others_cpu),
        ("min_probes", f64::from(limits.min_probes)),
        ("p99_min_samples", f64::from(limits.p99_min_samples)),
        ("p99_warn_samples", f64::from(limits.p99_warn_samples)),
        ("output_length_tolerance", limits.output_length_tolerance),
        ("min_scheduler_concurrency", f64::from(limits.min_scheduler_concurrency)),
    ]
}
