//! Digests by which hubs name contents: SHA-256, and for small files the SHA-1 over
//! git's blob header and the content.

use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// What a content must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Digest {
    /// SHA-256 of the content, hexadecimal.
    Sha256(String),
    /// Git's object name of the content, hexadecimal.
    GitSha1(String),
}

impl Digest {
    /// A digest as a server wrote it, by its length; `None` for anything else.
    pub(super) fn read(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let hexadecimal = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match (hexadecimal, text.len()) {
            (true, 64) => Some(Digest::Sha256(text)),
            (true, 40) => Some(Digest::GitSha1(text)),
            _ => None,
        }
    }

    /// The hexadecimal text.
    pub(super) fn text(&self) -> &str {
        match self {
            Digest::Sha256(text) | Digest::GitSha1(text) => text,
        }
    }
}

/// A digest that is being computed.
#[derive(Debug, Clone)]
pub(super) enum Hasher {
    /// SHA-256.
    Sha256(Sha256),
    /// SHA-1, the header already in it.
    GitSha1(Sha1),
}

impl Hasher {
    /// The hasher for a digest; git's needs to know the length beforehand.
    pub(super) fn new(kind: &Digest, length: u64) -> Self {
        match kind {
            Digest::Sha256(_) => Hasher::Sha256(Sha256::new()),
            Digest::GitSha1(_) => {
                let mut hasher = Sha1::new();
                hasher.update(format!("blob {length}\0"));
                Hasher::GitSha1(hasher)
            }
        }
    }

    /// More of the content.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Hasher::Sha256(hasher) => hasher.update(bytes),
            Hasher::GitSha1(hasher) => hasher.update(bytes),
        }
    }

    /// The digest, hexadecimal.
    pub(super) fn finish(self) -> String {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match self {
            Hasher::Sha256(hasher) => hex(&hasher.finalize()),
            Hasher::GitSha1(hasher) => hex(&hasher.finalize()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_have_the_names_that_git_gives_them() {
        // `printf hello | git hash-object --stdin`, and git's name of nothing.
        for (content, name) in
            [("hello", "b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0"), ("", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")]
        {
            let digest = Digest::read(name).unwrap();
            let mut hasher = Hasher::new(&digest, content.len() as u64);
            hasher.update(content.as_bytes());
            assert_eq!(hasher.finish(), digest.text());
        }
    }

    #[test]
    fn a_digest_is_known_by_its_length_and_nothing_else_is_one() {
        assert!(matches!(Digest::read(&"AB".repeat(32)), Some(Digest::Sha256(text)) if text == "ab".repeat(32)));
        for wrong in ["", "../../x", "abc", &"zz".repeat(20), &"a".repeat(41)] {
            assert_eq!(Digest::read(wrong), None);
        }
    }
}
