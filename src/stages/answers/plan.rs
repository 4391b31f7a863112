//! What runs, in which order, and why: the steps of one notebook in one mode. Pure.

use super::code::{Code, Fault, Import, Kind, Magic, Statement, Test};
use super::sections::{Gap, Part, Sections, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// What of a notebook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    /// The reference answer against the tests.
    Answer,
    /// The question area against the tests.
    Question,
    /// Every code cell in order.
    Inline,
}

impl Mode {
    /// The word in reports; a self-contained notebook counts as answer.
    pub(super) fn name(self) -> &'static str {
        match self {
            Mode::Answer | Mode::Inline => "answer",
            Mode::Question => "question",
        }
    }
}

/// What a step is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    /// Import cell.
    Imports,
    /// Statements from above that answer or test lean on.
    Context,
    /// Code under test.
    Answer,
    /// Tests.
    Test,
}

/// One cell that runs.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// 1-based among all cells.
    pub(super) cell: u32,
    /// What it is for.
    pub(super) role: Role,
    /// Python, line for line as in the cell.
    pub(super) text: String,
    /// Its test functions.
    pub(super) tests: Vec<Test>,
    /// Every assert of the cell belongs to the tests.
    pub(super) pure: bool,
    /// Reaching its end is proof.
    pub(super) tagged_test: bool,
    /// What spawned workers import of it.
    pub(super) worker_text: String,
    /// What it imports.
    pub(super) imports: Vec<Import>,
}

/// Context taken from one cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lean {
    /// The cell.
    pub(super) cell: u32,
    /// Names taken from it.
    pub(super) names: Vec<String>,
}

/// A name whose value would have come from a magic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unbound {
    /// The cell.
    pub(super) cell: u32,
    /// The magic.
    pub(super) magic: Magic,
    /// The name.
    pub(super) name: String,
}

/// Everything about a run that is known before it starts.
#[derive(Debug, Clone, Default)]
pub(super) struct Plan {
    /// The steps.
    pub(super) steps: Vec<Step>,
    /// Syntax faults of cells that would run.
    pub(super) faults: Vec<(u32, Fault)>,
    /// Cells that the answer or the tests lean on.
    pub(super) leans: Vec<Lean>,
    /// Magics that are not run.
    pub(super) magics: Vec<(u32, Magic)>,
    /// Results of magics that are needed.
    pub(super) unbound: Vec<Unbound>,
    /// Sets the environment before an import: must not be forked from a process that
    /// has imported already.
    pub(super) sets_environment: bool,
}

impl Plan {
    /// Plans a mode.
    pub(super) fn of(sections: &Sections, mode: Mode) -> Result<Plan, Gap> {
        let parts = match mode {
            Mode::Answer => sections.answer()?,
            Mode::Question => sections.question()?,
            Mode::Inline => sections.inline()?,
        };
        let parts: Vec<(&Unit, Part)> = parts.into_iter().map(|(index, part)| (&sections.units[index], part)).collect();
        let chosen = choose_context(&parts);
        let mut plan = Plan::default();
        for (unit, part) in &parts {
            plan.add(unit, *part, chosen.get(&unit.cell), &parts);
        }
        plan.find_unbound();
        plan.sets_environment = environment_before_import(&parts);
        Ok(plan)
    }

    fn add(&mut self, unit: &Unit, part: Part, chosen: Option<&BTreeSet<usize>>, parts: &[(&Unit, Part)]) {
        let code = &unit.code;
        if part == Part::Donor {
            if let Some(chosen) = chosen {
                self.add_context(unit, chosen);
            }
            return;
        }
        self.magics.extend(code.magics.iter().map(|magic| (unit.cell, magic.clone())));
        self.faults.extend(code.fault.iter().map(|fault| (unit.cell, fault.clone())));
        if !code.python {
            return;
        }
        let (role, pure) = match part {
            Part::Imports => (Role::Imports, false),
            Part::Test { pure } => (Role::Test, pure),
            Part::Code | Part::Donor => (Role::Answer, false),
        };
        let kept = |statement: &Statement| !overridden_stub(unit, statement, parts);
        let text = if code.statements.iter().all(kept) { code.text.clone() } else { code.keep(kept) };
        self.steps.push(Step {
            cell: unit.cell,
            role,
            text,
            tests: if role == Role::Test { code.tests.clone() } else { Vec::new() },
            pure,
            tagged_test: unit.is_tagged_test(),
            worker_text: worker_text(code, role, &kept),
            imports: code.statements.iter().flat_map(|statement| statement.imports.clone()).collect(),
        });
    }

    fn add_context(&mut self, unit: &Unit, chosen: &BTreeSet<usize>) {
        let ranges: BTreeSet<usize> = chosen.iter().map(|index| unit.code.statements[*index].range.start).collect();
        let text = unit.code.keep(|statement| ranges.contains(&statement.range.start));
        let taken = chosen.iter().map(|index| &unit.code.statements[*index]);
        let names = taken.clone().flat_map(|statement| statement.binds.iter().cloned());
        let names: BTreeSet<String> = names.collect();
        if taken.clone().any(|statement| statement.kind != Kind::Import) {
            self.leans.push(Lean { cell: unit.cell, names: names.into_iter().collect() });
        }
        self.steps.push(Step {
            cell: unit.cell,
            role: Role::Context,
            worker_text: text.clone(),
            text,
            tests: Vec::new(),
            pure: false,
            tagged_test: false,
            imports: taken.flat_map(|statement| statement.imports.clone()).collect(),
        });
    }

    /// Names that a magic would have bound, that a step needs and that nobody binds.
    fn find_unbound(&mut self) {
        let codes: Vec<Code> = self.steps.iter().map(|step| Code::of(&step.text)).collect();
        let needs: BTreeSet<&String> =
            codes.iter().flat_map(|code| &code.statements).flat_map(|statement| &statement.needs).collect();
        let bound: BTreeSet<String> = codes.iter().flat_map(Code::binds).collect();
        let missing = |name: &&String| needs.contains(*name) && !bound.contains(*name);
        self.unbound = self
            .magics
            .iter()
            .flat_map(|(cell, magic)| {
                let names = magic.binds.iter().filter(missing);
                names.map(|name| Unbound { cell: *cell, magic: magic.clone(), name: name.clone() })
            })
            .collect();
    }

    /// Every test function that the steps hold.
    pub(super) fn tests(&self) -> impl Iterator<Item = (u32, &Test)> {
        self.steps.iter().flat_map(|step| step.tests.iter().map(|test| (step.cell, test)))
    }
}

/// A stub beside a test must not replace the answer that ran before it.
fn overridden_stub(unit: &Unit, statement: &Statement, parts: &[(&Unit, Part)]) -> bool {
    let bound_before = |name: &String| {
        parts
            .iter()
            .take_while(|(other, _)| other.cell != unit.cell)
            .filter(|(other, part)| *part == Part::Code && other.cell > unit.cell)
            .any(|(other, _)| other.code.statements.iter().any(|statement| statement.binds.contains(name)))
    };
    statement.stub && statement.kind == Kind::Definition && statement.binds.iter().any(bound_before)
}

/// Statements of donor cells that bind what is needed and nobody else defines.
fn choose_context(parts: &[(&Unit, Part)]) -> BTreeMap<u32, BTreeSet<usize>> {
    let running: Vec<&Unit> = parts.iter().filter(|(_, part)| *part != Part::Donor).map(|(unit, _)| *unit).collect();
    let donors: Vec<&Unit> = parts
        .iter()
        .filter(|(unit, part)| *part == Part::Donor && unit.code.fault.is_none())
        .map(|(u, _)| *u)
        .collect();
    let bound: BTreeSet<String> = running.iter().flat_map(|unit| unit.code.binds()).collect();
    let mut wanted: Vec<String> =
        running.iter().flat_map(|unit| &unit.code.statements).flat_map(|s| s.needs.iter().cloned()).collect();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut chosen: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
    for unit in &donors {
        for (index, statement) in unit.code.statements.iter().enumerate().filter(|(_, s)| s.star) {
            take(unit, index, statement, &mut chosen, &mut wanted);
        }
    }
    while let Some(name) = wanted.pop() {
        if bound.contains(&name) || !seen.insert(name.clone()) {
            continue;
        }
        for unit in &donors {
            for (index, statement) in unit.code.statements.iter().enumerate() {
                if statement.kind != Kind::Other && gives(statement, &name) {
                    take(unit, index, statement, &mut chosen, &mut wanted);
                }
            }
        }
    }
    chosen
}

/// Binds the name, or changes it (`x += 1`, `x[0] = 1`).
fn gives(statement: &Statement, name: &str) -> bool {
    statement.binds.contains(name) || statement.changes.contains(name)
}

fn take(
    unit: &Unit,
    index: usize,
    statement: &Statement,
    chosen: &mut BTreeMap<u32, BTreeSet<usize>>,
    wanted: &mut Vec<String>,
) {
    if chosen.entry(unit.cell).or_default().insert(index) {
        wanted.extend(statement.needs.iter().cloned());
    }
}

/// Spawned workers import definitions; they must not run the tests again.
fn worker_text(code: &Code, role: Role, kept: &dyn Fn(&Statement) -> bool) -> String {
    if code.fault.is_some() {
        return String::new();
    }
    code.keep(|statement| {
        let wanted = match role {
            Role::Test => matches!(statement.kind, Kind::Import | Kind::Definition),
            _ => statement.kind != Kind::Other,
        };
        wanted && kept(statement) && !code.text[statement.range.clone()].contains("await ")
    })
}

/// Whether a running cell sets the environment above an import.
fn environment_before_import(parts: &[(&Unit, Part)]) -> bool {
    let mut set = false;
    for (unit, _) in parts.iter().filter(|(_, part)| *part != Part::Donor) {
        for statement in &unit.code.statements {
            if set && !statement.imports.is_empty() {
                return true;
            }
            set |= statement.sets_environment;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notebook::Notebook;

    /// Cells: `#` opens a markdown cell, anything else is code.
    fn sections(cells: &[&str]) -> Sections {
        let cells: Vec<serde_json::Value> = cells
            .iter()
            .map(|text| {
                let kind = if text.starts_with("# ") || text.starts_with("## ") { "markdown" } else { "code" };
                serde_json::json!({"cell_type": kind, "source": text, "metadata": {}})
            })
            .collect();
        let text = serde_json::json!({"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}).to_string();
        let notebook = Notebook::read(text.as_bytes()).unwrap();
        Sections::of(&notebook, &["ANSWER".to_owned()], &["STOP HERE".to_owned()])
    }

    fn answer(cells: &[&str]) -> Plan {
        Plan::of(&sections(cells), Mode::Answer).unwrap()
    }

    const TEST: &str = "def test_f():\n    assert f(3) == 9\ntest_f()";

    #[test]
    fn only_what_answer_and_test_need_is_taken_along() {
        let plan = answer(&[
            "import math",
            "SCALE = 1; UNUSED = f(2)\nprint(f(1))\ndef helper(x):\n    return x * SCALE",
            TEST,
            "## ANSWER",
            "def f(x):\n    y = x\n    return helper(y) * y",
        ]);
        assert_eq!(plan.steps.iter().map(|step| step.cell).collect::<Vec<_>>(), [1, 2, 5, 3]);
        assert_eq!(plan.leans, [Lean { cell: 2, names: vec!["SCALE".to_owned(), "helper".to_owned()] }]);
        assert_eq!(
            plan.steps[1].text.split_whitespace().collect::<Vec<_>>().join(" "),
            "SCALE = 1 def helper(x): return x * SCALE"
        );
        assert_eq!(plan.steps[1].text.lines().nth(2), Some("def helper(x):"));
    }

    #[test]
    fn statements_that_share_a_line_stay_valid() {
        let code = Code::of("a = 1; b = 2; c = 3\n");
        assert_eq!(code.keep(|s| s.binds.contains("a") || s.binds.contains("b")).trim_end(), "a = 1 ;b = 2");
        assert_eq!(code.keep(|s| s.binds.contains("c")).trim_end(), "0;            c = 3");
        assert_eq!(code.keep(|s| !s.binds.contains("b")).trim_end(), "a = 1        ;c = 3");
    }

    #[test]
    fn a_stub_beside_the_test_does_not_replace_the_answer() {
        let both = format!("def f(x):\n    raise NotImplementedError\n{TEST}");
        let plan = answer(&["import math", &both, "## ANSWER", "def f(x):\n    return x * x"]);
        assert!(!plan.steps[2].text.contains("NotImplementedError"));
        assert_eq!(plan.steps[2].tests, [Test { name: "test_f".to_owned(), line: 3 }]);
    }

    #[test]
    fn tests_of_the_answer_section_run_in_place_and_those_above_do_not() {
        let plan =
            answer(&["import math", TEST, "## ANSWER", "def f(x):\n    return x * x", "def test_g():\n    pass"]);
        assert_eq!(plan.steps.iter().map(|step| step.cell).collect::<Vec<_>>(), [1, 4, 5]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let gap = |cells: &[&str]| Plan::of(&sections(cells), Mode::Answer).unwrap_err();
        assert_eq!(gap(&[]), Gap::Code);
        assert_eq!(gap(&["x = 1", TEST]), Gap::AnswerSection);
        assert_eq!(gap(&[TEST, "## ANSWER", "# only text"]), Gap::AnswerCode(Some(2)));
        assert_eq!(gap(&["x = 1", "## ANSWER", "def f(x): pass"]), Gap::Test);
    }

    #[test]
    fn a_result_of_a_magic_that_is_used_is_told() {
        let plan = answer(&[
            TEST,
            "## ANSWER",
            "files = !ls\n%matplotlib inline\nother = !ls\n%time y = 3\ndef f(x):\n    return len(files) * y",
        ]);
        let names: Vec<&str> = plan.unbound.iter().map(|unbound| unbound.name.as_str()).collect();
        assert_eq!(names, ["files", "y"]);
        assert_eq!(plan.magics.len(), 4);
        assert!(plan.steps[0].text.starts_with("pass       \npass"));
    }

    #[test]
    fn question_mode_borrows_the_tests_of_the_answer_section() {
        let cells =
            ["import math", "def f(x):\n    raise NotImplementedError", "## ANSWER", "def f(x): return 9", TEST];
        let plan = Plan::of(&sections(&cells), Mode::Question).unwrap();
        assert_eq!(plan.steps.iter().map(|step| step.cell).collect::<Vec<_>>(), [1, 2, 5]);
    }
}
