//! What IPython does to a cell before Python sees it: indentation and pasted prompts
//! are taken off, a cell magic on the first line decides what the rest is.

use super::Dialect;
use std::borrow::Cow;

/// Cell magics whose body is run as this notebook's Python.
const PYTHON_BODY: &[&str] = &["time", "timeit", "capture", "prun"];
/// Cell magics whose body is run by another Python process: plain Python, no magics.
const PLAIN_PYTHON_BODY: &[&str] = &["python", "python3", "pypy"];

/// Line magics that IPython understands without their `%`, if the cell has one line only.
const AUTOMAGIC: &[&str] = &[
    "alias",
    "autoawait",
    "autocall",
    "automagic",
    "autosave",
    "bookmark",
    "cat",
    "cd",
    "clear",
    "colors",
    "conda",
    "cp",
    "debug",
    "dhist",
    "dirs",
    "edit",
    "env",
    "gui",
    "history",
    "less",
    "ll",
    "load",
    "load_ext",
    "ls",
    "lsmagic",
    "magic",
    "mamba",
    "man",
    "matplotlib",
    "micromamba",
    "mkdir",
    "more",
    "mv",
    "notebook",
    "pdb",
    "pip",
    "popd",
    "prun",
    "pushd",
    "pwd",
    "pylab",
    "quickref",
    "reload_ext",
    "reset",
    "rm",
    "rmdir",
    "run",
    "save",
    "store",
    "system",
    "tb",
    "time",
    "timeit",
    "unalias",
    "unload_ext",
    "uv",
    "who",
    "whos",
    "writefile",
];

/// A cell as Python sees it.
#[derive(Debug)]
pub struct Prepared<'a> {
    /// The text; lines stand where they stood.
    pub text: Cow<'a, str>,
    /// What kind of Python it is; `None`: another language, named by its cell magic.
    pub dialect: Option<Dialect>,
    /// Characters taken off the front of each line; empty: none.
    removed: Vec<u32>,
}

impl Prepared<'_> {
    /// Characters that were taken off the front of a 1-based line.
    pub fn removed(&self, line: u32) -> u32 {
        self.removed.get((line as usize).saturating_sub(1)).copied().unwrap_or(0)
    }
}

/// Prepares the source of a code cell.
pub fn prepare(source: &str) -> Prepared<'_> {
    let (mut text, removed) = match front(source) {
        Front::Nothing => (Cow::Borrowed(source), Vec::new()),
        front => strip(source, &front),
    };
    let mut dialect = Dialect::Cell;
    while let Some((start, end, name)) = cell_magic(&text) {
        if PLAIN_PYTHON_BODY.contains(&name.as_str()) {
            dialect = Dialect::Module;
        } else if !PYTHON_BODY.contains(&name.as_str()) {
            return Prepared { text, dialect: None, removed };
        }
        // Blanks, so that every offset stays what it was.
        text.to_mut().replace_range(start..end, &" ".repeat(end - start));
        if dialect == Dialect::Module {
            break;
        }
    }
    Prepared { text, dialect: Some(dialect), removed }
}

/// The magic that a line would be if its `%` were there: `pip install x`.
pub fn automagic(line: &str) -> Option<&'static str> {
    let (word, rest) = line.trim().split_once([' ', '\t'])?;
    let rest = rest.trim_start();
    // `time = 3` and `ls (x)` are Python, or want to be.
    let is_python = rest.starts_with(['=', '(', '[', ',', '+', '*', ':']) || rest.is_empty();
    AUTOMAGIC.iter().find(|magic| **magic == word && !is_python).copied()
}

/// What stands in front of the lines of a cell and is not Python.
enum Front<'a> {
    Nothing,
    Indent(&'a str),
    Doctest,
    Session,
}

fn front(source: &str) -> Front<'_> {
    let first = source.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let indent = &first[..first.len() - first.trim_start_matches([' ', '\t']).len()];
    if !indent.is_empty() {
        Front::Indent(indent)
    } else if first.starts_with(">>> ") || first == ">>>" {
        Front::Doctest
    } else if session_prompt(first).is_some() {
        Front::Session
    } else {
        Front::Nothing
    }
}

/// Bytes of `In [3]: ` in front of a line.
fn session_prompt(line: &str) -> Option<usize> {
    let rest = line.strip_prefix("In [")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0 && rest[digits..].starts_with("]: ")).then_some("In [".len() + digits + "]: ".len())
}

/// Bytes of `   ...: ` in front of a line.
fn continuation_prompt(line: &str) -> Option<usize> {
    let indent = line.len() - line.trim_start().len();
    let dots = line[indent..].bytes().take_while(|byte| *byte == b'.').count();
    let rest = line[indent + dots..].strip_prefix(':')?;
    (dots >= 3).then(|| indent + dots + 1 + usize::from(rest.starts_with(' ')))
}

fn strip<'a>(source: &str, front: &Front<'_>) -> (Cow<'a, str>, Vec<u32>) {
    let mut text = String::with_capacity(source.len());
    let mut removed = Vec::new();
    for line in source.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        let length = match front {
            Front::Nothing => 0,
            Front::Indent(indent) => {
                if content.starts_with(indent) {
                    indent.len()
                } else {
                    0
                }
            }
            Front::Doctest => match content {
                ">>>" | "..." => 3,
                _ if content.starts_with(">>> ") || content.starts_with("... ") => 4,
                _ => 0,
            },
            Front::Session => session_prompt(content).or_else(|| continuation_prompt(content)).unwrap_or(0),
        };
        removed.push(u32::try_from(length).unwrap_or(0));
        text.push_str(&line[length..]);
    }
    (Cow::Owned(text), removed)
}

/// Byte range of the first non-blank line and the name of its cell magic, if it is one.
fn cell_magic(text: &str) -> Option<(usize, usize, String)> {
    let start = text.len() - text.trim_start().len();
    let end = text[start..].find(['\n', '\r']).map_or(text.len(), |at| start + at);
    let rest = text[start..end].strip_prefix("%%")?;
    let name: String = rest.chars().take_while(|c| !c.is_whitespace() && *c != '?').collect();
    (!name.is_empty()).then_some((start, end, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_magics_decide_what_the_body_is() {
        assert_eq!(prepare("%%time\nx = 1").text, "      \nx = 1");
        assert_eq!(prepare("\n%%capture out\n%%time\nx = 1").dialect, Some(Dialect::Cell));
        assert_eq!(prepare("%%python\nx = 1").dialect, Some(Dialect::Module));
        for foreign in ["%%bash\nif [", "%%html", "%%writefile a.py\n(", "%%Bash\n("] {
            assert_eq!(prepare(foreign).dialect, None, "{foreign}");
        }
        assert_eq!(prepare("x = 1\n%%bash\n").dialect, Some(Dialect::Cell));
    }

    #[test]
    fn indentation_and_prompts_are_taken_off_and_counted() {
        let cell = prepare("  %matplotlib inline\n  x = 1\ny\n");
        assert_eq!((cell.text.as_ref(), cell.removed(2), cell.removed(3)), ("%matplotlib inline\nx = 1\ny\n", 2, 0));
        assert_eq!(prepare(">>> for x in y:\n...     z\n").text, "for x in y:\n    z\n");
        assert_eq!(prepare("In [12]: a\n    ...: b\n").text, "a\nb\n");
    }

    #[test]
    fn automagic_is_told_from_python() {
        assert_eq!(automagic("pip install torch"), Some("pip"));
        assert_eq!(automagic("cd .."), Some("cd"));
        for python in ["time = 3", "ls", "run (x)", "pipe x", "env.x = 1", "load : int"] {
            assert_eq!(automagic(python), None, "{python}");
        }
    }
}
