//! From faults to findings: place, message, help.

use super::document::{LinkKind, Place, ReadFault};
use super::external::Answer;
use super::resolve::{Sought, World};
use super::suggest::{self, Suggestion};
use super::{Faulty, WebLink};
use crate::model::{Finding, Localized, Location, RepoPath};
use crate::rules::links as rules;
use std::collections::HashMap;

/// The location of a place in a file.
pub(super) fn location(path: &str, place: Place) -> Location {
    Location::file(RepoPath::new(path))
        .cell((place.cell > 0).then_some(place.cell))
        .line(place.line)
        .column(place.column)
        .length(place.length)
}

/// Suggestions by source, target and kind: a page that repeats a
/// broken link a thousand times is thought about once.
pub(super) type Suggestions<'f> = HashMap<(&'f str, &'f str, LinkKind), Option<Suggestion>>;

/// The finding for a faulty link, with what to write instead.
pub(super) fn finding<'f>(world: &World, faulty: &'f Faulty, known: &mut Suggestions<'f>) -> Finding {
    let at = location(&faulty.path, faulty.link.place).target(&*faulty.link.target);
    let fault = &faulty.fault;
    let mut finding = Finding::new(fault.rule, at);
    if let Some(severity) = fault.severity {
        finding.severity = severity;
    }
    let key = (faulty.path.as_str(), &*faulty.link.target, faulty.link.kind);
    let suggestion = known.entry(key).or_insert_with(|| suggestion(world, faulty)).clone();
    match &fault.sought {
        Sought::Actual(path) => finding = finding.arg("actual", path),
        Sought::Fragment(_) if fault.rule == &rules::ANCHOR_CASE => {
            let actual = suggestion.as_ref().map_or_else(|| faulty.link.target.to_lowercase(), |s| s.target.clone());
            return finding.arg("actual", actual);
        }
        Sought::Lines => {
            return finding.help(Localized::both(
                "lines of a rendered page are reached with `?plain=1#L10`",
                "要指向渲染页面的某一行，请写 `?plain=1#L10`",
            ));
        }
        _ => {}
    }
    match (suggestion, &fault.sought) {
        (Some(suggestion), _) => finding.help(help(&suggestion)),
        (None, Sought::Actual(path)) if fault.rule == &rules::NOT_ON_SITE => match world.own.blob(path) {
            Some(address) => finding.help(on_github(&address)),
            None => finding,
        },
        (None, _) => finding,
    }
}

fn on_github(address: &str) -> Localized {
    Localized::both(
        format!("link to it on GitHub: `{address}`; or put it into `public/`"),
        format!("请改为 GitHub 上的链接 `{address}`，或把文件放进 `public/`"),
    )
}

fn help(suggestion: &Suggestion) -> Localized {
    let target = &suggestion.target;
    if suggestion.unique {
        Localized::both(format!("write `{target}`"), format!("请写成 `{target}`"))
    } else {
        Localized::both(format!("did you mean `{target}`?"), format!("是不是想写 `{target}`？"))
    }
}

/// What to write instead of the target of a faulty link.
pub(super) fn suggestion(world: &World, faulty: &Faulty) -> Option<Suggestion> {
    let reader = match faulty.source {
        Some(source) => world.reader(source),
        None => {
            let site =
                world.sites.iter().find(|site| site.config_links.iter().any(|(path, _)| *path == faulty.path))?;
            world.config_reader(site, &faulty.path)
        }
    };
    suggest::suggest(world, reader, &faulty.link, &faulty.fault)
}

/// The finding for a source that could not be read.
pub(super) fn unreadable(path: &str, fault: &ReadFault) -> Finding {
    let at = Location::file(RepoPath::new(path));
    let (at, cause, advice) = match fault {
        ReadFault::Io(message) => {
            (at, Localized::from(message), Localized::both("check that you may read it", "请检查读取权限"))
        }
        ReadFault::Encoding(offset) => (
            at,
            Localized::both(
                format!("it is not UTF-8 (byte {offset})"),
                format!("不是 UTF-8 编码（第 {offset} 字节处）"),
            ),
            Localized::both("save it as UTF-8", "请另存为 UTF-8"),
        ),
        ReadFault::Notebook { message, line, column } => (
            at.line(*line).column(*column),
            Localized::both(format!("it is no notebook: {message}"), format!("不是合法的 Notebook：{message}")),
            Localized::both(
                "open and save it in Jupyter, or restore it from git",
                "请在 Jupyter 中重新保存，或从 git 恢复",
            ),
        ),
    };
    Finding::new(&rules::UNREADABLE, at).arg("cause", cause).arg("advice", advice)
}

/// The finding for a link to another server; `None` when it is alive.
pub(super) fn web(link: &WebLink, answer: &Answer) -> Option<Finding> {
    let (rule, cause) = match answer {
        Answer::Alive => return None,
        Answer::Dead { status } => (&rules::DEAD_URL, format!("HTTP {status}")),
        Answer::Unknown { cause } => (&rules::UNCHECKED_URL, cause.clone()),
    };
    let at = location(&link.path, link.link.place).target(&*link.link.target);
    Some(Finding::new(rule, at).arg("cause", cause))
}
