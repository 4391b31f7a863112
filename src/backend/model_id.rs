//! Ids of models at the hubs, and which paths below a folder are harmless.

use std::path::{Path, PathBuf};

/// `OWNER/NAME`, with `@REVISION` and `:FILE.gguf` where they were given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelId {
    /// `OWNER/NAME`; a few old models of Hugging Face have no owner.
    pub repo: String,
    /// Branch, tag or commit that was asked for.
    pub revision: Option<String>,
    /// The one file that was asked for, in a repository of several models.
    pub file: Option<String>,
}

impl ModelId {
    /// Reads an id; `None` when the text cannot be one.
    pub fn parse(text: &str) -> Option<Self> {
        let (rest, file) = match text.split_once(':') {
            Some((rest, file)) => (rest, Some(file)),
            None => (text, None),
        };
        let (repo, revision) = match rest.split_once('@') {
            Some((repo, revision)) => (repo, Some(revision)),
            None => (rest, None),
        };
        let file_is_one = file.is_none_or(|file| file.ends_with(".gguf") && below(file).is_some());
        let valid = is_repo(repo) && revision.is_none_or(is_revision) && file_is_one;
        valid.then(|| ModelId {
            repo: repo.to_owned(),
            revision: revision.map(str::to_owned),
            file: file.map(str::to_owned),
        })
    }

    /// The id without revision and file, as folders of caches write it: `OWNER--NAME`.
    pub fn flat(&self) -> String {
        self.repo.replace('/', "--")
    }
}

impl std::fmt::Display for ModelId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.repo)?;
        self.revision.iter().try_for_each(|revision| write!(f, "@{revision}"))?;
        self.file.iter().try_for_each(|file| write!(f, ":{file}"))
    }
}

/// The names that Hugging Face allows: letters, digits, `-`, `_`, `.`, none of them
/// doubled where a cache's folder name would become ambiguous.
fn is_repo(repo: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && part.len() <= 96
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
            && !part.starts_with(['.', '-'])
            && !part.ends_with(['.', '-'])
    };
    repo.split('/').count() <= 2 && repo.split('/').all(part) && !repo.contains("--") && !repo.contains("..")
}

fn is_revision(revision: &str) -> bool {
    revision.len() <= 200
        && !revision.starts_with('-')
        && below(revision).is_some()
        && revision.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
}

/// Whether a revision is a whole commit: nothing that a hub does can change what it names.
pub fn is_commit(revision: &str) -> bool {
    revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A path that a server named, if following it cannot leave the folder it is joined to.
/// Names that other systems read differently (`\`, `:`, control characters) are refused too.
pub fn below(path: &str) -> Option<PathBuf> {
    let part = |part: &str| {
        !matches!(part, "" | "." | "..")
            && part.len() <= 200
            && !part.ends_with([' ', '.'])
            && !part.chars().any(|character| character.is_control() || "\\:*?\"<>|".contains(character))
    };
    path.split('/').all(part).then(|| Path::new(path).to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_id_has_a_revision_and_a_file_where_they_were_given() {
        let id = ModelId::parse("Qwen/Qwen3-0.6B@v1.0:q/a-Q4_K_M.gguf").unwrap();
        assert_eq!(
            (id.repo.as_str(), id.revision.as_deref(), id.file.as_deref()),
            ("Qwen/Qwen3-0.6B", Some("v1.0"), Some("q/a-Q4_K_M.gguf"))
        );
        assert_eq!(
            (id.flat().as_str(), id.to_string().as_str()),
            ("Qwen--Qwen3-0.6B", "Qwen/Qwen3-0.6B@v1.0:q/a-Q4_K_M.gguf")
        );
        assert_eq!(ModelId::parse("gpt2").unwrap().revision, None);
    }

    #[test]
    fn what_could_leave_a_folder_is_no_id() {
        let wrong = [
            "",
            "/",
            "a/b/c",
            "../x",
            "a/..",
            "a/.b",
            "-a/b",
            "a//b",
            "a/b@",
            "a/b@../x",
            "a/b@-x",
            "a/b:",
            "a/b:x.bin",
            "a/b:../x.gguf",
            "a/b:/x.gguf",
            "C:\\m",
            "./m",
            "~/m",
            "a b/c",
            "模型/a",
            "a/b--c",
        ];
        for text in wrong {
            assert_eq!(ModelId::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_commit_is_forty_hexadecimal_digits() {
        assert!(is_commit(&"0a".repeat(20)));
        assert!(!is_commit("main") && !is_commit(&"g".repeat(40)));
    }

    proptest! {
        #[test]
        fn a_harmless_path_stays_in_its_folder(path in "[a./\\\\:~\u{0}-\u{1f}]{0,12}") {
            if let Some(relative) = below(&path) {
                let joined = Path::new("/cache/folder").join(&relative);
                prop_assert!(joined.starts_with("/cache/folder") && joined != Path::new("/cache/folder"));
                prop_assert!(!relative.components().any(|part| part == std::path::Component::ParentDir));
            }
        }
    }
}
