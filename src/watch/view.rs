//! What of a new state is worth showing to somebody who has seen the one before.

use crate::model::{Finding, Item, Lang, Outcome, RepoPath, RunReport, StageRun, Summary};
use std::collections::BTreeSet;

/// The findings and items that a change brought: those of the touched files, and those
/// that were not there before.
pub(super) fn of_change(seen: &RunReport, whole: &RunReport, touched: &[RepoPath]) -> RunReport {
    let mut shown = whole.clone();
    for run in &mut shown.stages {
        let before = seen.stages.iter().find(|known| known.stage == run.stage);
        let known: BTreeSet<Key> = before.iter().flat_map(|run| run.outcome.findings()).map(key).collect();
        let verdicts: Vec<&Item> = before.iter().flat_map(|run| run.outcome.items()).collect();
        if let Outcome::Ran { items, findings, .. } = &mut run.outcome {
            findings.retain(|finding| touched.contains(&finding.at.path) || !known.contains(&key(finding)));
            items.retain(|item| touched.contains(&item.path) || !verdicts.iter().any(|old| is_same(old, item)));
        }
    }
    shown
}

type Key = (&'static str, RepoPath, [Option<u32>; 3], Option<String>, String);

fn key(finding: &Finding) -> Key {
    let at = &finding.at;
    (finding.rule.id, at.path.clone(), [at.cell, at.line, at.column], at.target.clone(), finding.message(Lang::En))
}

fn is_same(old: &Item, new: &Item) -> bool {
    (&old.path, old.mode, old.status) == (&new.path, new.mode, new.status)
}

/// The state after some notebooks ran again: theirs is the fresh verdict, that of the
/// other selected ones stays, and what is no longer selected is gone.
pub(super) fn merge(seen: &RunReport, fresh: RunReport, touched: &[RepoPath], selected: &[RepoPath]) -> RunReport {
    let stays = |path: &RepoPath| selected.contains(path) && !touched.contains(path);
    let mut merged = RunReport { stages: Vec::new(), ..fresh };
    for old in &seen.stages {
        let new = fresh.stages.iter().find(|run| run.stage == old.stage);
        let outcomes = [Some(&old.outcome), new.map(|run| &run.outcome)];
        let [mut items, again] = outcomes.map(|outcome| outcome.map_or(Vec::new(), |outcome| outcome.items().to_vec()));
        let [mut findings, told] =
            outcomes.map(|outcome| outcome.map_or(Vec::new(), |outcome| outcome.findings().to_vec()));
        items.retain(|item| stays(&item.path));
        items.extend(again);
        items.sort_by(|a, b| (&a.path, a.mode).cmp(&(&b.path, b.mode)));
        findings.retain(|finding| stays(&finding.at.path));
        findings.extend(told);
        let outcome = Outcome::ran(items.len(), Summary::of_items(&items), items, findings);
        let duration = new.map_or_else(Default::default, |run| run.duration);
        merged.stages.push(StageRun { stage: old.stage, outcome, duration });
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ItemStatus, Location, StageId, Status};
    use crate::rules;
    use std::time::Duration;

    fn finding(path: &str, line: u32) -> Finding {
        Finding::new(&rules::run::UNREADABLE, Location::file(RepoPath::new(path)).line(line))
    }

    fn report(items: &[(&str, ItemStatus)], findings: Vec<Finding>) -> RunReport {
        let items: Vec<Item> = items.iter().map(|(path, status)| Item::new(RepoPath::new(*path), *status)).collect();
        let outcome = Outcome::ran(items.len(), Summary::of_items(&items), items, findings);
        let run = StageRun { stage: StageId::Answers, outcome, duration: Duration::ZERO };
        RunReport { stages: vec![run], ..RunReport::default() }
    }

    fn paths(report: &RunReport) -> Vec<&str> {
        report.stages[0].outcome.findings().iter().map(|finding| finding.at.path.as_str()).collect()
    }

    #[test]
    fn a_change_shows_the_touched_file_and_what_is_new_elsewhere() {
        let seen = report(&[], vec![finding("old.md", 1), finding("touched.md", 1)]);
        let whole = report(&[], vec![finding("new.md", 1), finding("old.md", 1), finding("touched.md", 1)]);
        let shown = of_change(&seen, &whole, &[RepoPath::new("touched.md")]);
        assert_eq!(paths(&shown), ["new.md", "touched.md"]);
    }

    #[test]
    fn fresh_verdicts_replace_those_of_the_touched_notebooks_and_the_deleted_are_gone() {
        use ItemStatus::{Fail, Pass};
        let seen = report(
            &[("a", Fail), ("b", Fail), ("gone", Fail)],
            vec![finding("a", 1), finding("b", 1), finding("gone", 1)],
        );
        let fresh = report(&[("a", Pass)], Vec::new());
        let names = |list: &[&str]| list.iter().map(|name| RepoPath::new(*name)).collect::<Vec<_>>();
        let merged = merge(&seen, fresh, &names(&["a"]), &names(&["a", "b"]));
        assert_eq!(paths(&merged), ["b"]);
        let items: Vec<_> =
            merged.stages[0].outcome.items().iter().map(|item| (item.path.as_str(), item.status)).collect();
        assert_eq!(items, [("a", Pass), ("b", Fail)]);
        assert_eq!(merged.status(), Status::Fail);
    }
}
