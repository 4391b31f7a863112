//! Which cells are imports, question, answer and tests: by tags first, else by headings.

use super::code::{Code, Kind};
use crate::notebook::{CellKind, Notebook};

/// A code cell with its place in the notebook.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    /// 1-based among all cells.
    pub(super) cell: u32,
    /// What it holds.
    pub(super) code: Code,
    tag: Tag,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    None,
    Imports,
    Question,
    Test,
    Answer,
}

/// What a notebook lacks to be run in a mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    /// No code cell at all.
    Code,
    /// Neither tags nor a heading open an answer section.
    AnswerSection,
    /// The answer section holds no code; with the cell that opens it.
    AnswerCode(Option<u32>),
    /// No test function and no tagged test cell.
    Test,
}

/// The cells of a notebook by what they are for. Indices into `units`.
#[derive(Debug, Clone, Default)]
pub(super) struct Sections {
    /// Code cells that may run, in order.
    pub(super) units: Vec<Unit>,
    /// The cell whose heading opens the answer section.
    pub(super) heading: Option<u32>,
    /// Ends the question area.
    stop: Option<u32>,
}

/// How a cell takes part in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The import cell: whole.
    Imports,
    /// Question area above the answer: only what is needed.
    Donor,
    /// Whole.
    Code,
    /// Whole, and its tests are watched.
    Test {
        /// Nothing but tests and what belongs to them.
        pure: bool,
    },
}

impl Sections {
    /// Reads the sections of a notebook.
    pub(super) fn of(notebook: &Notebook, answer_markers: &[String], stop_markers: &[String]) -> Sections {
        let stop = marked_cell(notebook, |text| stop_markers.iter().any(|marker| text.contains(marker.as_str())));
        let headings: Vec<u32> = notebook
            .cells
            .iter()
            .filter(|cell| cell.kind == CellKind::Markdown && has_heading(&cell.source, answer_markers))
            .map(|cell| cell.number)
            .collect();
        // A title that mentions the section stands before the question; the section after it.
        let after_stop = stop.and_then(|stop| headings.iter().copied().find(|heading| *heading >= stop));
        let units = notebook
            .cells
            .iter()
            .filter(|cell| notebook.is_python() && cell.kind == CellKind::Code)
            .filter(|cell| !has_tag(&cell.tags, "skip_answer_test"))
            .map(|cell| Unit { cell: cell.number, code: Code::of(&cell.source), tag: tag(&cell.tags) })
            .filter(|unit| unit.code.python && !unit.code.is_empty() || !unit.code.magics.is_empty())
            .collect();
        Sections { units, heading: after_stop.or(headings.first().copied()), stop }
    }

    fn has_tag(&self, tag: Tag) -> bool {
        self.units.iter().any(|unit| unit.tag == tag)
    }

    /// First cell of the answer section.
    fn boundary(&self) -> Option<u32> {
        let tagged = self.units.iter().find(|unit| unit.tag == Tag::Answer).map(|unit| unit.cell);
        self.heading.or(tagged)
    }

    fn is_test(&self, unit: &Unit) -> bool {
        if self.has_tag(Tag::Test) { unit.tag == Tag::Test } else { unit.code.is_test() }
    }

    /// Whether a cell of the answer section is answer or test of it.
    fn in_answer(&self, unit: &Unit) -> bool {
        let below = self.boundary().is_some_and(|boundary| unit.cell >= boundary);
        match unit.tag {
            Tag::Answer => true,
            Tag::Test => below,
            Tag::None => below && (!self.has_tag(Tag::Answer) || self.is_test(unit)),
            Tag::Imports | Tag::Question => false,
        }
    }

    /// The reference answer with its tests, in the order in which the cells run.
    pub(super) fn answer(&self) -> Result<Vec<(usize, Part)>, Gap> {
        let boundary = self.boundary().ok_or(if self.units.is_empty() { Gap::Code } else { Gap::AnswerSection })?;
        let answers = |unit: &Unit| self.in_answer(unit);
        let is_code = |unit: &Unit| {
            unit.code.python && (!self.is_test(unit) || (unit.tag != Tag::Test && unit.code.defines_more_than_tests()))
        };
        if !self.units.iter().any(|unit| answers(unit) && is_code(unit)) {
            return Err(Gap::AnswerCode(self.heading));
        }
        let tests_below = self.units.iter().any(|unit| answers(unit) && self.is_test(unit));
        let imports = self.import_cell(boundary);
        let (mut parts, mut last) = (Vec::new(), Vec::new());
        for (index, unit) in self.units.iter().enumerate() {
            if answers(unit) {
                parts.push((index, if self.is_test(unit) { self.test_part(unit, true) } else { Part::Code }));
            } else if unit.cell < boundary && self.is_test(unit) && !tests_below {
                last.push((index, self.test_part(unit, false)));
            } else if Some(index) == imports || unit.tag == Tag::Imports {
                parts.push((index, Part::Imports));
            } else {
                parts.push((index, Part::Donor));
            }
        }
        if !tests_below && last.is_empty() {
            return Err(Gap::Test);
        }
        parts.extend(last);
        Ok(parts)
    }

    /// The question area with its tests, or with those of the answer section.
    pub(super) fn question(&self) -> Result<Vec<(usize, Part)>, Gap> {
        if self.units.is_empty() {
            return Err(Gap::Code);
        }
        let end = [self.stop, self.boundary()].into_iter().flatten().min().unwrap_or(u32::MAX);
        let inside = |unit: &Unit| unit.cell < end && unit.tag != Tag::Answer;
        let mut parts: Vec<(usize, Part)> = Vec::new();
        for (index, unit) in self.units.iter().enumerate().filter(|(_, unit)| inside(unit)) {
            parts.push((index, if self.is_test(unit) { self.test_part(unit, false) } else { Part::Code }));
        }
        if !parts.iter().any(|(_, part)| matches!(part, Part::Test { .. })) {
            let below = self.units.iter().enumerate().filter(|(_, unit)| !inside(unit) && self.is_test(unit));
            parts.extend(below.map(|(index, unit)| (index, self.test_part(unit, true))));
        }
        if parts.iter().any(|(_, part)| matches!(part, Part::Test { .. })) { Ok(parts) } else { Err(Gap::Test) }
    }

    /// A self-contained notebook: every cell in order.
    pub(super) fn inline(&self) -> Result<Vec<(usize, Part)>, Gap> {
        if self.units.is_empty() {
            return Err(Gap::Code);
        }
        let part = |unit: &Unit| if unit.code.is_test() { Part::Test { pure: false } } else { Part::Code };
        Ok(self.units.iter().enumerate().map(|(index, unit)| (index, part(unit))).collect())
    }

    fn test_part(&self, unit: &Unit, below: bool) -> Part {
        Part::Test { pure: unit.tag == Tag::Test || !(below && unit.code.defines_more_than_tests()) }
    }

    /// The first cell above the answer that imports and holds nothing still to be written.
    fn import_cell(&self, boundary: u32) -> Option<usize> {
        if self.has_tag(Tag::Imports) {
            return None;
        }
        let imports = |unit: &Unit| unit.code.statements.iter().any(|statement| statement.kind == Kind::Import);
        let whole = |unit: &Unit| !unit.code.statements.iter().any(|statement| statement.stub);
        let (index, unit) = self
            .units
            .iter()
            .enumerate()
            .find(|(_, unit)| unit.cell < boundary && !self.is_test(unit) && imports(unit))?;
        whole(unit).then_some(index)
    }
}

impl Unit {
    /// Tagged as a test cell: reaching its end is proof even without a test function.
    pub(super) fn is_tagged_test(&self) -> bool {
        self.tag == Tag::Test
    }
}

fn has_tag(tags: &[String], name: &str) -> bool {
    tags.iter().any(|tag| tag == name)
}

fn tag(tags: &[String]) -> Tag {
    let known = [
        ("tutorial-test", Tag::Test),
        ("tutorial-answer", Tag::Answer),
        ("tutorial-imports", Tag::Imports),
        ("tutorial-question", Tag::Question),
    ];
    known.iter().find(|(name, _)| has_tag(tags, name)).map_or(Tag::None, |(_, tag)| *tag)
}

fn marked_cell(notebook: &Notebook, marked: impl Fn(&str) -> bool) -> Option<u32> {
    notebook.cells.iter().find(|cell| cell.kind == CellKind::Markdown && marked(&cell.source)).map(|cell| cell.number)
}

/// Whether a heading line holds one of the markers: `## …`, an underlined line, `<h2>…`.
/// Fenced code blocks hold no headings.
fn has_heading(source: &str, markers: &[String]) -> bool {
    let marked = |line: &str| markers.iter().any(|marker| line.contains(marker.as_str()));
    let mut fence: Option<&str> = None;
    let mut lines = source.lines().peekable();
    while let Some(line) = lines.next() {
        let trimmed = line.trim_start();
        if let Some(open) = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark)) {
            fence = match fence {
                None => Some(open),
                Some(known) if known == open => None,
                other => other,
            };
        } else if fence.is_none() && marked(line) {
            let next = lines.peek().map(|next| next.trim()).unwrap_or_default();
            if is_atx(line) || is_html_heading(trimmed) || is_underline(next) {
                return true;
            }
        }
    }
    false
}

fn is_atx(line: &str) -> bool {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let rest = line.trim_start_matches(' ').trim_start_matches('#');
    let level = line.trim_start_matches(' ').len() - rest.len();
    indent <= 3 && (1..=6).contains(&level) && rest.starts_with([' ', '\t'])
}

fn is_html_heading(line: &str) -> bool {
    let mut characters = line.chars();
    characters.next() == Some('<')
        && characters.next().is_some_and(|letter| letter.eq_ignore_ascii_case(&'h'))
        && characters.next().is_some_and(|level| ('1'..='6').contains(&level))
}

/// `===` or `---` below a line of text makes it a heading.
fn is_underline(line: &str) -> bool {
    line.len() >= 2 && (line.chars().all(|c| c == '=') || line.chars().all(|c| c == '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(source: &str) -> bool {
        has_heading(source, &["参考代码与解析".to_owned()])
    }

    #[test]
    fn only_a_heading_opens_the_answer_section() {
        assert!(marked("### Step 5\n\n## 参考代码与解析\n"));
        assert!(marked("参考代码与解析\n===\n"));
        assert!(marked("<h2 id=\"a\">参考代码与解析</h2>"));
        assert!(!marked("卡住时可以看“参考代码与解析”。"));
        assert!(!marked("#参考代码与解析"));
        assert!(!marked("- 参考代码与解析\n- 其他\n"));
        assert!(!marked("```\n## 参考代码与解析\n```\n"));
    }
}
