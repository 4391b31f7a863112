//! What makes a finding the same finding after lines above it moved.

use crate::fsx;
use crate::model::{Finding, Lang};
use std::collections::HashMap;

/// One fingerprint per finding, in their order: unique in a report, and the same as long
/// as rule, file, target and message are. Neither line nor cell has a part in it; the
/// second of two equal findings is the second wherever both stand.
pub(super) fn fingerprints(findings: &[&Finding]) -> Vec<String> {
    // Digests of what makes findings equal: the texts of a million would be a second report.
    let mut seen: HashMap<String, usize> = HashMap::new();
    findings
        .iter()
        .map(|finding| {
            let target = finding.at.target.as_deref().unwrap_or_default();
            let parts = [finding.rule.id, finding.at.path.as_str(), target, &finding.message(Lang::En)];
            let text: String = parts.iter().map(|part| format!("{}:{part}\n", part.len())).collect();
            let mut key = fsx::sha256(text.as_bytes());
            key.truncate(32);
            let count = seen.entry(key).and_modify(|count| *count += 1).or_insert(1);
            let mut digest = fsx::sha256(format!("{text}{count}").as_bytes());
            digest.truncate(32);
            digest
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Location, RepoPath};
    use crate::rules::links;

    #[test]
    fn a_moved_line_changes_nothing_and_twins_are_told_apart() {
        let at = |line| Location::file(RepoPath::new("a.md")).line(line).target("b.md");
        let findings: Vec<Finding> = [3, 9, 4, 10].map(|line| Finding::new(&links::MISSING_FILE, at(line))).into();
        let of = |indices: [usize; 2]| fingerprints(&indices.map(|index| &findings[index]));
        let (before, after) = (of([0, 1]), of([2, 3]));
        assert_eq!(before, after);
        assert_ne!(before[0], before[1]);
    }
}
