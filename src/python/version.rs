//! The Python version that a course is judged for.

use crate::model::Localized;
use ruff_python_ast::PythonVersion;
use std::path::Path;

/// Where a target version was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// `--target-version`.
    Flag,
    /// `static.target_version` in the settings.
    Settings,
    /// `requires-python` in `pyproject.toml`.
    Project,
    /// Nobody said anything.
    Default,
}

impl Origin {
    /// Where to change it.
    pub fn hint(self) -> Localized {
        match self {
            Origin::Flag => {
                Localized::both("the version was given with --target-version", "该版本由 --target-version 指定")
            }
            Origin::Settings => Localized::both(
                "the version comes from `static.target_version` in verify.toml",
                "该版本来自 verify.toml 的 `static.target_version`",
            ),
            Origin::Project => Localized::both(
                "the version is the lowest that `requires-python` in pyproject.toml allows",
                "该版本是 pyproject.toml 中 `requires-python` 允许的最低版本",
            ),
            Origin::Default => Localized::both(
                "3.10 is the default; set `static.target_version` in verify.toml if the course needs a newer Python",
                "默认按 3.10 检查；如果课程要求更新的 Python，请在 verify.toml 中设置 `static.target_version`",
            ),
        }
    }
}

/// A target version and where it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// The version.
    pub version: PythonVersion,
    /// Where it was found.
    pub origin: Origin,
}

impl Target {
    /// The flag, else the setting, else `requires-python` under `root`, else 3.10.
    ///
    /// # Errors
    /// The text of the flag or the setting, when it names no version.
    pub fn resolve(flag: Option<&str>, setting: &str, root: &Path) -> Result<Self, String> {
        let given =
            flag.map(|text| (text, Origin::Flag)).or((!setting.is_empty()).then_some((setting, Origin::Settings)));
        if let Some((text, origin)) = given {
            let version = parse(text).ok_or_else(|| text.to_owned())?;
            return Ok(Target { version, origin });
        }
        Ok(match required(root) {
            Some(version) => Target { version, origin: Origin::Project },
            None => Target { version: PythonVersion::PY310, origin: Origin::Default },
        })
    }
}

/// The versions that can be judged for.
pub fn known() -> String {
    PythonVersion::iter().map(|version| version.to_string()).collect::<Vec<_>>().join(", ")
}

/// Reads `3.10`, `3.10.4` or `py310`; only versions that the parser knows.
pub fn parse(text: &str) -> Option<PythonVersion> {
    let text = text.trim();
    let minor = match text.strip_prefix("py3") {
        Some(minor) => minor,
        None => text.strip_prefix("3.")?.split('.').next()?,
    };
    let version = PythonVersion { major: 3, minor: minor.parse().ok()? };
    PythonVersion::iter().find(|known| *known == version)
}

/// The lowest version that `pyproject.toml` under `root` allows.
fn required(root: &Path) -> Option<PythonVersion> {
    let text = std::fs::read_to_string(root.join("pyproject.toml")).ok()?;
    let table: toml::Table = toml::from_str(&text).ok()?;
    let value = |path: &[&str]| {
        let mut value = table.get(path[0])?;
        for key in &path[1..] {
            value = value.get(key)?;
        }
        value.as_str()
    };
    let range =
        value(&["project", "requires-python"]).or_else(|| value(&["tool", "poetry", "dependencies", "python"]))?;
    lower_bound(range)
}

/// The lowest version of a range such as `>=3.9,<4`, `~=3.10` or `^3.11`; versions
/// older than the parser knows become the oldest it knows.
fn lower_bound(range: &str) -> Option<PythonVersion> {
    let bound = range.split([',', ' ']).filter_map(|part| {
        let part = part.trim();
        let digits = part.trim_start_matches(['>', '=', '~', '^', ' ']);
        let is_lower = !part.starts_with(['<', '!']) && !digits.is_empty();
        let mut numbers = digits.split('.');
        let major: u8 = numbers.next()?.parse().ok()?;
        let minor: u8 = numbers.next().and_then(|text| text.trim_end_matches('*').parse().ok()).unwrap_or(0);
        is_lower.then_some(PythonVersion { major, minor })
    });
    let lowest = bound.max()?;
    let newest = PythonVersion::iter().last()?;
    (lowest.major == 3).then(|| lowest.clamp(PythonVersion::lowest(), newest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_in_the_usual_spellings() {
        assert_eq!(parse("3.12"), Some(PythonVersion::PY312));
        assert_eq!(parse("py38"), Some(PythonVersion::PY38));
        assert_eq!(parse("3.11.7"), Some(PythonVersion::PY311));
        for wrong in ["", "3", "2.7", "3.99", "3.x", "latest"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_lower_bound_of_a_range_is_taken() {
        for (range, minor) in
            [(">=3.9", 9), (">=3.9,<4", 9), ("~=3.10", 10), ("==3.11.*", 11), ("^3.12", 12), (">=3.6", 7), (">=3", 7)]
        {
            assert_eq!(lower_bound(range), Some(PythonVersion { major: 3, minor }), "{range}");
        }
        assert_eq!(lower_bound("<4"), None);
        assert_eq!(lower_bound("*"), None);
    }
}
