//! Models that bring Python code of their own. Found by reading, never by running.

use serde_json::Value;
use std::fs;
use std::path::Path;

/// Files whose `auto_map` makes the transformers library look for code.
const CONFIGURATIONS: [&str; 4] =
    ["config.json", "tokenizer_config.json", "generation_config.json", "processor_config.json"];

/// What of a model folder would be run by a server that trusts it: Python files, and
/// configurations that name classes in them (or, worse, in another repository).
pub fn own_code(folder: &Path) -> Vec<String> {
    let mut found: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".py"))
        .collect();
    found.extend(
        CONFIGURATIONS.iter().filter(|name| names_code(&folder.join(name))).map(|name| format!("auto_map in {name}")),
    );
    found.sort();
    found
}

fn names_code(configuration: &Path) -> bool {
    let value: Value =
        fs::read_to_string(configuration).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    value["auto_map"].as_object().is_some_and(|map| !map.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_the_names_of_code_are_found() {
        let scratch = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(scratch.path().join(name), text).unwrap();
        write("config.json", r#"{"auto_map": {}, "model_type": "llama"}"#);
        write("tokenizer_config.json", "{");
        assert_eq!(own_code(scratch.path()), Vec::<String>::new());
        write("config.json", r#"{"auto_map": {"AutoModel": "other/repo--modeling_x.X"}}"#);
        write("modeling_x.py", "");
        assert_eq!(own_code(scratch.path()), ["auto_map in config.json", "modeling_x.py"]);
    }
}
