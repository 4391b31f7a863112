//! One Python file.

use super::judge::judge;
use super::lint;
use super::notebook::lint_finding;
use super::{Task, Verdict};
use crate::model::{Finding, Localized, Location, RepoPath};
use crate::python::decode::{DecodeError, Undecodable, decode};
use crate::python::{Dialect, Lines};
use crate::rules::static_checks as rules;
use ruff_python_ast::Stmt;

/// Judges a `.py` file.
pub(super) fn check(task: &Task<'_>, path: &RepoPath, bytes: &[u8]) -> Verdict {
    let file = Location::file(path.clone());
    let text = match decode(bytes) {
        Ok(text) => text,
        Err(error) => return Verdict { findings: vec![undecodable(file, &error)], cells: 0 },
    };
    let judged = judge(&text, Dialect::Module, task.target, task.stack);
    if let Some(sources) = &task.sources {
        sources.push(task, file.clone(), &text, Dialect::Module, &judged);
    }
    let body: &[Stmt] = judged.module.as_ref().map_or(&[], |module| &module.syntax().body);
    let is_clean = judged.faults.is_empty();
    let mut lints = lint::functions(body);
    lints.extend(lint::across(&[Some(body)], false).into_iter().map(|(_, lint)| lint));
    if is_clean && lints.is_empty() {
        return Verdict::default();
    }
    let lines = Lines::new(&text);
    let mut findings: Vec<Finding> =
        judged.faults.iter().map(|fault| fault.finding(file.clone(), &lines, |_| 0)).collect();
    findings.extend(
        lints.iter().map(|lint| {
            lint_finding(lint, |_| Localized::from(""), |fault| fault.finding(file.clone(), &lines, |_| 0))
        }),
    );
    Verdict { findings, cells: 0 }
}

fn undecodable(file: Location, error: &Undecodable) -> Finding {
    let at = file.line(error.line);
    let message = |en: String, zh: String| Localized::both(en, zh);
    match &error.error {
        DecodeError::Null => Finding::new(&rules::NULL_BYTE, at)
            .arg("message", message("the file contains a null byte".to_owned(), "文件中含有空字节（NUL）".to_owned())),
        DecodeError::UnknownEncoding(name) => Finding::new(&rules::ENCODING, at).arg(
            "message",
            message(format!("Python knows no encoding `{name}`"), format!("Python 没有名为 `{name}` 的编码")),
        ),
        DecodeError::MarkAgainstDeclaration(name) => Finding::new(&rules::ENCODING, at)
            .arg(
                "message",
                message(
                    format!("the file begins with a UTF-8 byte-order mark and declares `{name}`"),
                    format!("文件以 UTF-8 的 BOM 开头，却声明编码为 `{name}`"),
                ),
            )
            .help(Localized::both("remove the mark or the declaration", "请去掉 BOM 或编码声明")),
        DecodeError::BadByte { byte, offset, encoding, declared } => {
            let (en, zh) = if *declared { ("declared", "声明的编码") } else { ("default", "默认编码") };
            Finding::new(&rules::ENCODING, at).arg(
                "message",
                message(
                    format!("byte 0x{byte:02x} at offset {offset} is no {encoding} (the {en} encoding)"),
                    format!("偏移 {offset} 处的字节 0x{byte:02x} 不是合法的 {encoding}（{zh}）"),
                ),
            )
        }
    }
}
