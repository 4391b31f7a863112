//! Probe sets: fixed prompts and what is looked at in their answers, as data.

use super::Tier;
use crate::client::ChatRequest;
use crate::fsx;
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// Sets that come with the program: name and text.
const BUILTIN: [(&str, &str); 2] =
    [("builtin-en", include_str!("sets/en.toml")), ("builtin-zh", include_str!("sets/zh.toml"))];

/// A file of probes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeFile {
    /// Name of the set.
    pub name: String,
    /// The probes.
    pub probe: Vec<ProbeSpec>,
}

/// One prompt and what is looked at in its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    /// Unique name.
    pub id: String,
    /// What is asked.
    pub prompt: String,
    /// Tokens at most.
    #[serde(default = "default_tokens")]
    pub max_tokens: u32,
    /// Structure that the whole answer must have.
    #[serde(default)]
    pub structure: StructureSpec,
    /// Key fields of the answer.
    #[serde(default)]
    pub field: Vec<FieldSpec>,
}

fn default_tokens() -> u32 {
    32
}

/// Structure of an answer: nothing may stand before or behind it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StructureSpec {
    /// The answer is one JSON document.
    pub json: bool,
    /// JSON schema, as text, that the document satisfies; implies `json`.
    pub schema: String,
    /// Regular expression that the whole answer matches.
    pub regex: String,
}

/// A key field. Give `pointer` for a JSON answer, else `pattern`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldSpec {
    /// Its name.
    pub name: String,
    /// How much a change of it matters.
    pub tier: Tier,
    /// JSON pointer into the answer.
    #[serde(default)]
    pub pointer: String,
    /// Regular expression; its first group, or all of it, is the field.
    #[serde(default)]
    pub pattern: String,
    /// The right value, where there is one.
    #[serde(default)]
    pub expected: Option<String>,
}

/// A set that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is no probe set.
    #[error("{path}: {message}")]
    Format {
        /// The file.
        path: String,
        /// What is wrong.
        message: String,
    },
}

/// A set that is ready to be asked and judged.
#[derive(Debug, Clone)]
pub struct ProbeSet {
    /// Its name.
    pub name: String,
    /// SHA-256 of its file, or of the files of several sets one after the other.
    pub sha256: String,
    /// The probes.
    pub probes: Vec<Probe>,
}

/// A probe whose expressions are compiled.
#[derive(Debug, Clone)]
pub struct Probe {
    /// What the file says.
    pub spec: ProbeSpec,
    pub(super) structure: Option<Structure>,
    pub(super) fields: Vec<(FieldSpec, Place)>,
}

/// What the whole answer must be.
#[derive(Debug, Clone)]
pub(super) struct Structure {
    pub(super) json: bool,
    pub(super) schema: Option<Value>,
    pub(super) regex: Option<Regex>,
}

/// Where a field stands in an answer.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Pointer(String),
    Pattern(Regex),
}

impl Probe {
    /// The request of this probe.
    pub fn request(&self) -> ChatRequest {
        ChatRequest::prompt(&self.spec.id, &self.spec.prompt, self.spec.max_tokens)
    }
}

impl ProbeSet {
    /// The sets that come with the program, English and Chinese together.
    ///
    /// # Errors
    /// Never for the sets of this program; a test holds them.
    pub fn builtin() -> Result<Self, SetError> {
        let mut all: Option<ProbeSet> = None;
        for (name, text) in BUILTIN {
            let set = ProbeSet::parse(text.as_bytes(), name)?;
            all = Some(match all {
                None => set,
                Some(before) => before.with(set),
            });
        }
        all.ok_or_else(|| SetError::Format { path: "builtin".to_owned(), message: "there is no set".to_owned() })
    }

    /// One of the sets that come with the program (`builtin`, `builtin-en`,
    /// `builtin-zh`), or a file below `root`.
    ///
    /// # Errors
    /// The file cannot be read or is no probe set.
    pub fn named(name: &str, root: &Path) -> Result<Self, SetError> {
        if name == "builtin" {
            return ProbeSet::builtin();
        }
        if let Some((_, text)) = BUILTIN.iter().find(|(known, _)| *known == name) {
            return ProbeSet::parse(text.as_bytes(), name);
        }
        let bytes =
            std::fs::read(root.join(name)).map_err(|source| SetError::Read { path: name.to_owned(), source })?;
        ProbeSet::parse(&bytes, name)
    }

    /// Reads a probe file.
    ///
    /// # Errors
    /// It is no probe set: no TOML, an unknown key, an expression or schema that is none.
    pub fn parse(bytes: &[u8], path: &str) -> Result<Self, SetError> {
        let fault = |message: String| SetError::Format { path: path.to_owned(), message };
        let text = std::str::from_utf8(bytes).map_err(|error| fault(error.to_string()))?;
        let file: ProbeFile = toml::from_str(text).map_err(|error| fault(error.to_string().trim().to_owned()))?;
        let mut probes: Vec<Probe> = Vec::new();
        for spec in file.probe {
            if probes.iter().any(|probe| probe.spec.id == spec.id) {
                return Err(fault(format!("probe `{}` stands there twice", spec.id)));
            }
            let id = spec.id.clone();
            probes.push(compile(spec).map_err(|message| fault(format!("probe `{id}`: {message}")))?);
        }
        if probes.is_empty() {
            return Err(fault("it holds no probe".to_owned()));
        }
        Ok(ProbeSet { name: file.name, sha256: fsx::sha256(bytes), probes })
    }

    /// Both sets as one.
    fn with(mut self, other: ProbeSet) -> Self {
        self.name = "builtin".to_owned();
        self.sha256 = fsx::sha256(format!("{}{}", self.sha256, other.sha256).as_bytes());
        self.probes.extend(other.probes);
        self
    }

    /// The first `count` probes of it, taken from all languages in turn; 0: all of them.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        if count == 0 || count >= self.probes.len() {
            return self.clone();
        }
        let step = self.probes.len() as f64 / count as f64;
        let probes: Vec<Probe> = (0..count).map(|index| self.probes[(index as f64 * step) as usize].clone()).collect();
        let ids: Vec<&str> = probes.iter().map(|probe| probe.spec.id.as_str()).collect();
        let sha256 = fsx::sha256(format!("{} {}", self.sha256, ids.join(" ")).as_bytes());
        ProbeSet { name: format!("{} ({count} of {})", self.name, self.probes.len()), sha256, probes }
    }
}

fn compile(spec: ProbeSpec) -> Result<Probe, String> {
    let structure = structure(&spec.structure)?;
    let fields = spec.field.iter().map(|field| Ok((field.clone(), place(field)?))).collect::<Result<_, String>>()?;
    if spec.prompt.trim().is_empty() || spec.max_tokens == 0 {
        return Err("it needs a prompt and room for an answer".to_owned());
    }
    Ok(Probe { spec, structure, fields })
}

fn structure(spec: &StructureSpec) -> Result<Option<Structure>, String> {
    if *spec == StructureSpec::default() {
        return Ok(None);
    }
    let schema = match spec.schema.as_str() {
        "" => None,
        text => {
            let schema: Value =
                serde_json::from_str(text).map_err(|error| format!("its schema is no JSON: {error}"))?;
            jsonschema::validator_for(&schema).map_err(|error| format!("its schema is none: {error}"))?;
            Some(schema)
        }
    };
    let regex = match spec.regex.as_str() {
        "" => None,
        text => Some(Regex::new(&format!("^(?:{text})$")).map_err(|error| error.to_string())?),
    };
    Ok(Some(Structure { json: spec.json || schema.is_some(), schema, regex }))
}

fn place(field: &FieldSpec) -> Result<Place, String> {
    match (field.pointer.as_str(), field.pattern.as_str()) {
        ("", "") => Err(format!("field `{}` needs `pointer` or `pattern`", field.name)),
        (pointer, "") => Ok(Place::Pointer(pointer.to_owned())),
        ("", pattern) => Regex::new(pattern).map(Place::Pattern).map_err(|error| error.to_string()),
        _ => Err(format!("field `{}` has both `pointer` and `pattern`", field.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sets_of_the_program_are_sets_and_mirror_each_other() {
        let set = |name| ProbeSet::named(name, Path::new(".")).unwrap();
        let (en, zh) = (set("builtin-en"), set("builtin-zh"));
        assert!((5..=20).contains(&en.probes.len()));
        let kinds = |set: &ProbeSet| -> Vec<String> {
            set.probes.iter().map(|probe| probe.spec.id.split_once('-').unwrap().1.to_owned()).collect()
        };
        assert_eq!(kinds(&en), kinds(&zh));
        assert_eq!(set("builtin").probes.len(), 20);
        let six = set("builtin").first(6);
        let languages: Vec<&str> = six.probes.iter().map(|probe| &probe.spec.id[..2]).collect();
        assert_eq!(languages, ["en", "en", "en", "zh", "zh", "zh"]);
        assert_ne!(six.sha256, set("builtin").sha256);
    }

    #[test]
    fn a_fault_of_a_set_names_file_and_probe() {
        let fault = |text: &str| ProbeSet::parse(text.as_bytes(), "p.toml").unwrap_err().to_string();
        assert!(fault("name = 'x'\nprobe = []").contains("p.toml: it holds no probe"));
        let probe = "name = 'x'\n[[probe]]\nid = 'a'\nprompt = 'hi'\n";
        assert!(
            fault(&format!("{probe}[[probe.field]]\nname = 'n'\ntier = 'critical'\n")).contains("probe `a`: field `n`")
        );
        assert!(fault(&format!("{probe}[probe.structure]\nregex = '('\n")).contains("probe `a`"));
        assert!(
            fault(&format!("{probe}[probe.structure]\nschema = '{{\"type\": 7}}'\n")).contains("its schema is none")
        );
        assert!(fault(&format!("{probe}promt = 1\n")).contains("promt"));
        assert!(fault(&format!("{probe}[[probe]]\nid = 'a'\nprompt = 'hi'\n")).contains("twice"));
    }
}
