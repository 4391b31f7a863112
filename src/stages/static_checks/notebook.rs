//! The notebook around the code: its JSON, format, ids, kernel, outputs, switch.

use super::fault::Fault;
use super::judge::{Judged, judge, null_byte};
use super::lint::{self, Lint};
use super::{Task, Verdict};
use crate::model::{Finding, Localized, Location, RepoPath, Severity};
use crate::notebook::{Cell, CellFaultKind, CellId, CellKind, Notebook, NotebookError, conflict_line};
use crate::python::ipython::{Prepared, prepare};
use crate::python::{Dialect, Lines};
use crate::rules::static_checks as rules;
use ruff_python_ast::{Expr, Stmt};
use std::collections::HashMap;

/// Judges a notebook.
pub(super) fn check(task: &Task<'_>, path: &RepoPath, bytes: &[u8]) -> Verdict {
    let file = Location::file(path.clone());
    let notebook = match Notebook::read(bytes) {
        Ok(notebook) => notebook,
        Err(error) => return Verdict { findings: vec![unreadable(file, &error)], ..Verdict::default() },
    };
    let mut verdict = Verdict { findings: around(&notebook, &file), ..Verdict::default() };
    if notebook.is_python() {
        code(task, &notebook, &file, &mut verdict);
    }
    verdict
}

fn unreadable(file: Location, error: &NotebookError) -> Finding {
    let (line, column) = error.place();
    let at = file.line(line).column(column);
    let format = |en: String, zh: String| {
        Finding::new(&rules::NOTEBOOK_FORMAT, at.clone()).arg("message", Localized::both(en, zh))
    };
    match error {
        NotebookError::Json { message, .. } => {
            Finding::new(&rules::NOTEBOOK_JSON, at).arg("message", Localized::both(message, json_zh(message)))
        }
        NotebookError::Conflict { .. } => Finding::new(&rules::CONFLICT, at),
        NotebookError::Encoding { byte, .. } => Finding::new(&rules::ENCODING, at)
            .arg(
                "message",
                Localized::both(
                    format!("byte 0x{byte:02x} is no UTF-8"),
                    format!("字节 0x{byte:02x} 不是合法的 UTF-8"),
                ),
            )
            .help(Localized::both(
                "a notebook is always UTF-8; save it again with Jupyter",
                "notebook 必须是 UTF-8 编码；请用 Jupyter 重新保存",
            )),
        NotebookError::NoObject => format(
            "the file is JSON and no notebook: it holds no object".to_owned(),
            "文件是 JSON 但不是 notebook：最外层不是对象".to_owned(),
        ),
        NotebookError::OldFormat(major) => format(
            format!("the notebook has format {major}; only format 4 is read"),
            format!("notebook 的格式版本是 {major}；只支持格式 4"),
        ),
        NotebookError::NewFormat(major) => format(
            format!("the notebook has format {major}, which is newer than the format 4 that tools read"),
            format!("notebook 的格式版本是 {major}，比目前工具支持的格式 4 更新"),
        ),
        NotebookError::NoCells => {
            format("the notebook has no list `cells`".to_owned(), "notebook 缺少 `cells` 列表".to_owned())
        }
    }
}

/// The parser's common messages, in Chinese.
fn json_zh(message: &str) -> String {
    match message {
        "EOF while parsing a value" => "文件为空，或在值的中间结束",
        "EOF while parsing a string" => "字符串没写完文件就结束了",
        "EOF while parsing a list" => "列表没写完文件就结束了",
        "EOF while parsing an object" => "对象没写完文件就结束了",
        "expected `,` or `]`" => "此处应为 `,` 或 `]`",
        "expected `,` or `}`" => "此处应为 `,` 或 `}`",
        "expected `:`" => "此处应为 `:`",
        "trailing comma" => "多余的逗号",
        "trailing characters" => "JSON 结束之后还有多余内容",
        "key must be a string" => "键必须是带引号的字符串",
        "expected value" | "expected ident" => "此处应为一个值",
        "invalid escape" => "字符串里的转义不合法",
        other if other.starts_with("control character") => "字符串里有未转义的控制字符（例如换行）",
        other => other,
    }
    .to_owned()
}

/// Findings of the notebook, its code aside.
fn around(notebook: &Notebook, file: &Location) -> Vec<Finding> {
    let mut findings = Vec::new();
    if notebook.byte_order_mark {
        findings.push(Finding::new(&rules::NOTEBOOK_BOM, file.clone()));
    }
    if notebook.format.is_none() {
        let message = Localized::both(
            "the notebook does not say its format (`nbformat`)",
            "notebook 没有写明格式版本（`nbformat`）",
        );
        findings.push(Finding::new(&rules::NOTEBOOK_FORMAT, file.clone()).arg("message", message));
    }
    for fault in &notebook.faults {
        let (en, zh) = match fault.kind {
            CellFaultKind::NoObject => ("the cell is no JSON object", "单元格不是 JSON 对象"),
            CellFaultKind::Type => ("the cell has no known `cell_type`", "单元格缺少可识别的 `cell_type`"),
            CellFaultKind::NoSource => ("the cell has no `source`", "单元格缺少 `source`"),
            CellFaultKind::Source => (
                "the `source` of the cell is neither a text nor a list of texts",
                "单元格的 `source` 既不是字符串也不是字符串列表",
            ),
        };
        let at = file.clone().cell(fault.cell);
        findings.push(Finding::new(&rules::NOTEBOOK_CELL, at).arg("message", Localized::both(en, zh)));
    }
    if let Some(kernel) = notebook.kernel.as_deref().filter(|kernel| notebook.is_python() && *kernel != "python3") {
        findings.push(Finding::new(&rules::KERNELSPEC, file.clone()).arg("kernel", kernel));
    }
    findings.extend(ids(notebook, file));
    for cell in &notebook.cells {
        if let Some(error) = cell.stored_error.as_ref().filter(|_| !shows_an_error(cell)) {
            findings.push(Finding::new(&rules::STORED_ERROR, file.clone().cell(cell.number)).arg("error", error));
        }
        if cell.kind == CellKind::Markdown
            && let Some(line) = conflict_in_markdown(&cell.source)
        {
            findings.push(Finding::new(&rules::CONFLICT, file.clone().cell(cell.number).line(line)));
        }
    }
    findings
}

/// Ids exist from format 4.5 on.
fn ids(notebook: &Notebook, file: &Location) -> Vec<Finding> {
    if notebook.format.is_none_or(|(_, minor)| minor < 5) {
        return Vec::new();
    }
    let mut first: HashMap<&str, u32> = HashMap::new();
    let mut findings = Vec::new();
    for cell in &notebook.cells {
        let message = match &cell.id {
            CellId::Missing => Localized::both("the cell has no id", "单元格没有 id"),
            CellId::Null => Localized::both("the id of the cell is no text", "单元格的 id 不是字符串"),
            CellId::Text(id) => match first.get(id.as_str()) {
                Some(other) => Localized::both(
                    format!("the id `{id}` is that of cell {other} already"),
                    format!("id `{id}` 与单元格 {other} 重复"),
                ),
                None => {
                    first.insert(id, cell.number);
                    let is_valid = (1..=64).contains(&id.len())
                        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
                    if is_valid {
                        continue;
                    }
                    Localized::both(
                        "the id of the cell has to be 1 to 64 letters, digits, `-` or `_`",
                        "单元格的 id 须为 1 到 64 个字母、数字、`-` 或 `_`",
                    )
                }
            },
        };
        findings.push(Finding::new(&rules::CELL_ID, file.clone().cell(cell.number)).arg("message", message));
    }
    findings
}

/// Both ends of a conflict, outside of fenced code (a lesson about Git may show them).
fn conflict_in_markdown(source: &str) -> Option<u32> {
    let mut fenced = false;
    let outside: String = source
        .split_inclusive('\n')
        .map(|line| {
            let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
            fenced ^= is_fence;
            if fenced || is_fence || line.trim_end() == "=======" { "\n" } else { line }
        })
        .collect();
    let has = |marker: &str| outside.lines().any(|line| line.starts_with(marker));
    if has("<<<<<<< ") && has(">>>>>>> ") { conflict_line(&outside) } else { None }
}

/// Judges the code cells and what they are together.
fn code(task: &Task<'_>, notebook: &Notebook, file: &Location, verdict: &mut Verdict) {
    let cells: Vec<&Cell> = notebook.cells.iter().filter(|cell| cell.kind == CellKind::Code).collect();
    let prepared: Vec<Prepared<'_>> = cells.iter().map(|cell| prepare(&cell.source)).collect();
    let judged: Vec<Judged> = prepared.iter().map(|cell| judge_cell(task, cell)).collect();
    verdict.cells = cells.len();
    for ((cell, prepared), judged) in cells.iter().zip(&prepared).zip(&judged) {
        let lines = Lines::new(&prepared.text);
        let at = file.clone().cell(cell.number);
        verdict.findings.extend(judged.faults.iter().map(|fault| {
            let finding = fault.finding(at.clone(), &lines, |line| prepared.removed(line));
            if shows_an_error(cell) { finding.severity(Severity::Note) } else { finding }
        }));
        if let (Some(sources), Some(dialect)) = (&task.sources, prepared.dialect) {
            sources.push(task, at, &prepared.text, dialect, judged);
        }
    }
    let places = Places { file, cells: &cells, prepared: &prepared };
    let bodies: Vec<Option<&[Stmt]>> = prepared
        .iter()
        .zip(&judged)
        .map(|(cell, judged)| match (&judged.module, cell.dialect) {
            (Some(module), Some(Dialect::Cell)) => Some(&module.syntax().body[..]),
            // Another language, or another process: nothing of this notebook is called there.
            (_, None | Some(Dialect::Module)) => Some(&[][..]),
            (None, _) => None,
        })
        .collect();
    for (index, body) in bodies.iter().enumerate() {
        verdict.findings.extend(lint::functions(body.unwrap_or_default()).iter().map(|lint| places.lint(index, lint)));
    }
    verdict.findings.extend(lint::across(&bodies, true).iter().map(|(index, lint)| places.lint(*index, lint)));
    verdict.findings.extend(switched_on(task, &places, &bodies));
    verdict.findings.extend(answer_without_code(task, notebook, file));
}

/// Jupyter's own tag for a cell that fails on purpose.
fn shows_an_error(cell: &Cell) -> bool {
    cell.tags.iter().any(|tag| tag == "raises-exception")
}

fn judge_cell(task: &Task<'_>, cell: &Prepared<'_>) -> Judged {
    match cell.dialect {
        None => Judged { faults: Vec::new(), module: None },
        Some(dialect) => match null_byte(&cell.text) {
            Some(fault) => Judged { faults: vec![fault], module: None },
            None => judge(&cell.text, dialect, task.target, task.stack),
        },
    }
}

/// From a unit and a byte range to a place in the notebook.
struct Places<'a> {
    file: &'a Location,
    cells: &'a [&'a Cell],
    prepared: &'a [Prepared<'a>],
}

impl Places<'_> {
    fn number(&self, index: usize) -> Option<u32> {
        self.cells.get(index).map(|cell| cell.number)
    }

    fn finding(&self, index: usize, fault: &Fault) -> Finding {
        let at = self.file.clone().cell(self.number(index));
        match self.prepared.get(index) {
            Some(cell) => fault.finding(at, &Lines::new(&cell.text), |line| cell.removed(line)),
            None => Finding::new(fault.rule, at),
        }
    }

    fn lint(&self, index: usize, lint: &Lint) -> Finding {
        let elsewhere = |first: &usize| {
            let cell = self.number(*first).filter(|_| *first != index);
            cell.map_or_else(
                || Localized::from(""),
                |cell| Localized::both(format!(" (cell {cell})"), format!("（单元格 {cell}）")),
            )
        };
        lint_finding(lint, elsewhere, |fault| self.finding(index, fault))
    }
}

/// The finding of a lint. `elsewhere` names the unit of an earlier definition.
pub(super) fn lint_finding(
    lint: &Lint,
    elsewhere: impl Fn(&usize) -> Localized,
    place: impl Fn(&Fault) -> Finding,
) -> Finding {
    let (rule, at, test) = match lint {
        Lint::Swallows { at, test } => (&rules::SWALLOWED_ASSERTION, at, test),
        Lint::Returns { at, test } => (&rules::TEST_RETURNS, at, test),
        Lint::NeverCalled { at, test } => (&rules::TEST_NEVER_CALLED, at, test),
        Lint::Duplicate { at, test, first } => {
            return place(&Fault::new(&rules::DUPLICATE_TEST, *at, ""))
                .arg("test", test)
                .arg("where", elsewhere(first));
        }
    };
    place(&Fault::new(rule, *at, "")).arg("test", test)
}

/// The backend switch of the project whose notebook this is, set to `True`.
fn switched_on(task: &Task<'_>, places: &Places<'_>, bodies: &[Option<&[Stmt]>]) -> Vec<Finding> {
    let projects = task.ctx.settings.project.iter();
    let switches: Vec<&str> = projects
        .filter(|project| project.notebook == places.file.path.as_str() && !project.switch.is_empty())
        .map(|project| project.switch.as_str())
        .collect();
    let mut findings = Vec::new();
    for (index, body) in bodies.iter().enumerate() {
        for statement in body.unwrap_or_default() {
            let Some((target, value)) = assignment(statement) else { continue };
            let is_true = value.as_boolean_literal_expr().is_some_and(|value| value.value);
            if let Expr::Name(name) = target
                && is_true
                && let Some(switch) = switches.iter().find(|switch| **switch == name.id.as_str())
            {
                let fault = Fault::new(&rules::BACKEND_SWITCH, name.range, "");
                findings.push(places.finding(index, &fault).arg("switch", *switch));
            }
        }
    }
    findings
}

fn assignment(statement: &Stmt) -> Option<(&Expr, &Expr)> {
    match statement {
        Stmt::Assign(assign) => assign.targets.first().map(|target| (target, assign.value.as_ref())),
        Stmt::AnnAssign(assign) => assign.value.as_deref().map(|value| (assign.target.as_ref(), value)),
        _ => None,
    }
}

/// A heading that opens the answers with no code below it.
fn answer_without_code(task: &Task<'_>, notebook: &Notebook, file: &Location) -> Option<Finding> {
    let markers = &task.ctx.settings.course.answer_markers;
    let heading = |cell: &Cell| {
        let lines = (1_u32..).zip(cell.source.lines());
        let mut fenced = false;
        lines
            .filter(|(_, line)| {
                fenced ^= line.trim_start().starts_with("```");
                !fenced && line.trim_start().starts_with('#')
            })
            .find(|(_, line)| markers.iter().any(|marker| !marker.is_empty() && line.contains(marker.as_str())))
            .map(|(line, _)| line)
    };
    let mut markdown = notebook.cells.iter().rev().filter(|cell| cell.kind == CellKind::Markdown);
    let (cell, line) = markdown.find_map(|cell| Some((cell.number, heading(cell)?)))?;
    let tagged = |cell: &Cell| cell.tags.iter().any(|tag| tag == "tutorial-answer");
    let has_code = notebook.cells.iter().any(|other| {
        other.kind == CellKind::Code && (other.number > cell || tagged(other)) && !other.source.trim().is_empty()
    });
    (!has_code).then(|| Finding::new(&rules::ANSWER_WITHOUT_CODE, file.clone().cell(cell).line(line)))
}
