//! The table of rules: one file per stage, one row per rule, both languages side by side.

/// Rules of `verify answers`.
pub mod answers;
/// Rules of `verify bench`.
pub mod bench;
/// Rules of `verify conclude`.
pub mod evidence;
/// The bad and the good example of a rule.
pub mod example;
/// Rules of `verify bench EXPERIMENT.toml`.
pub mod experiment;
/// Rules about links.
pub mod links;
/// Rules that any stage can emit.
pub mod run;
/// Rules of `verify schema`.
pub mod schema;
/// Rules of `verify smoke`.
pub mod smoke;
/// Rules of `verify static`.
pub mod static_checks;

use crate::model::{Severity, Text};

/// One kind of fault.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Stable id, `stage/what-is-wrong`.
    pub id: &'static str,
    /// What a finding of it does to its stage, unless the place says otherwise.
    pub severity: Severity,
    /// What is wrong; `{name}` is an argument of the finding.
    pub message: Text,
    /// What to do about it; may be empty.
    pub help: Text,
    /// Why the rule exists, for `verify explain`.
    pub why: Text,
    /// A bad and a good example, for `verify explain`; see [`example`].
    pub example: &'static str,
}

/// Every rule, table after table.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    [
        run::ALL,
        static_checks::ALL,
        answers::ALL,
        links::ALL,
        smoke::ALL,
        schema::ALL,
        evidence::ALL,
        bench::ALL,
        experiment::ALL,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// The rule with this id.
pub fn find(id: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.id == id)
}

/// A template of a rule as a person reads it: `{target}` stands for something, hence `<target>`.
pub fn readable(template: &str) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        let tail = &rest[open + 1..];
        let name = tail.split_once('}').map(|(name, _)| name).filter(|name| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        });
        match name {
            Some(name) => {
                out.push_str(&format!("<{name}>"));
                rest = &tail[name.len() + 1..];
            }
            None => {
                out.push('{');
                rest = tail;
            }
        }
    }
    out + rest
}

/// Declares the rules of one stage: a `static` each, and `ALL` with every one of them.
/// The example of each lies in `fixtures/explain/ID.txt`; without one nothing compiles.
///
/// ```text
/// rules! {
///     MISSING_FILE = "links/missing-file" Error {
///         message: "{target} does not exist" / "{target} 不存在";
///         help: "…" / "…";
///         why: "…" / "…";
///     }
/// }
/// ```
macro_rules! rules {
    ($($name:ident = $id:literal $severity:ident {
        message: $men:literal / $mzh:literal;
        help: $hen:literal / $hzh:literal;
        why: $wen:literal / $wzh:literal;
    })*) => {
        $(
            #[doc = concat!("`", $id, "`: ", $men)]
            pub static $name: $crate::rules::Rule = $crate::rules::Rule {
                id: $id,
                severity: $crate::model::Severity::$severity,
                message: $crate::model::Text { en: $men, zh: $mzh },
                help: $crate::model::Text { en: $hen, zh: $hzh },
                why: $crate::model::Text { en: $wen, zh: $wzh },
                example: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/explain/", $id, ".txt")),
            };
        )*
        /// Every rule of this table.
        pub static ALL: &[&$crate::rules::Rule] = &[$(&$name),*];
    };
}
pub(crate) use rules;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn placeholders(text: &str) -> BTreeSet<&str> {
        text.split('{').skip(1).filter_map(|tail| tail.split_once('}').map(|(name, _)| name)).collect()
    }

    #[test]
    fn ids_are_unique_and_name_their_table() {
        let ids: Vec<&str> = all().map(|rule| rule.id).collect();
        let unique: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), unique.len(), "a rule id occurs twice");
        assert!(
            ids.iter().all(|id| id.split_once('/').is_some_and(|(stage, rest)| !stage.is_empty() && !rest.is_empty()))
        );
    }

    #[test]
    fn both_languages_say_the_same_things() {
        for rule in all() {
            for (what, text) in [("message", rule.message), ("help", rule.help), ("why", rule.why)] {
                assert_eq!(placeholders(text.en), placeholders(text.zh), "{}: {what}", rule.id);
                assert_eq!(text.en.is_empty(), text.zh.is_empty(), "{}: {what}", rule.id);
            }
            assert!(!rule.message.en.is_empty(), "{}: message", rule.id);
            assert!(!rule.why.en.is_empty(), "{}: why", rule.id);
        }
    }
}
