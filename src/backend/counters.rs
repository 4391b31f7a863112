//! Counters of a server: Prometheus text, read before and after the measured window.
//! A counter that is not there is "no evidence", never zero.

use super::BackendProfile;
use std::collections::BTreeMap;

/// Values by meaning, as the profile names them.
pub type Counters = BTreeMap<String, f64>;

/// The counters of a profile in a page of Prometheus text; several series of one name
/// (engines, models) are summed.
pub fn read(profile: &BackendProfile, page: &str) -> Counters {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, value) in page.lines().filter_map(sample) {
        *sums.entry(name).or_insert(0.0) += value;
    }
    profile.counters.iter().filter_map(|(meaning, name)| Some((meaning.clone(), *sums.get(name.as_str())?))).collect()
}

/// The profile whose names stand in a page, for a server of unknown kind: the one with
/// the most of them.
pub fn known<'a>(profiles: &'a [BackendProfile], page: &str) -> Option<&'a BackendProfile> {
    let found = profiles.iter().map(|profile| (read(profile, page).len(), profile)).filter(|(count, _)| *count > 0);
    // The first of equals: several profiles may stand for one engine.
    found.rev().max_by_key(|(count, _)| *count).map(|(_, profile)| profile)
}

/// Name and value of a sample line; labels are passed over.
fn sample(line: &str) -> Option<(&str, f64)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let name_end = line.find(|c: char| c == '{' || c.is_ascii_whitespace())?;
    let (name, rest) = line.split_at(name_end);
    let rest = match rest.strip_prefix('{') {
        Some(labels) => &labels[end_of_labels(labels)?..],
        None => rest,
    };
    let value = rest.split_ascii_whitespace().next()?.parse::<f64>().ok()?;
    value.is_finite().then_some((name, value))
}

/// Byte after the closing brace; braces and quotes inside label values do not count.
fn end_of_labels(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '}' if !quoted => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// What happened between two readings. A counter that fell was reset: the later value
/// is all that is known of the window.
pub fn difference(before: &Counters, after: &Counters) -> Counters {
    after
        .iter()
        .filter(|(meaning, _)| meaning.as_str() != "waiting")
        .filter_map(|(meaning, now)| {
            let then = *before.get(meaning)?;
            Some((meaning.clone(), if *now >= then { now - then } else { *now }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn profile() -> BackendProfile {
        BackendProfile {
            counters: BTreeMap::from([
                ("hits".to_owned(), "v:hits_total".to_owned()),
                ("none".to_owned(), "v:none".to_owned()),
            ]),
            ..BackendProfile::default()
        }
    }

    #[test]
    fn series_are_summed_and_a_missing_one_is_absent() {
        let page = "# TYPE v:hits_total counter\nv:hits_total{engine=\"0\",name=\"a}b\\\"\"} 3\nv:hits_total{engine=\"1\"} 4.5 1700000\nv:hits_total_created 9\nv:none NaN\n";
        assert_eq!(read(&profile(), page), Counters::from([("hits".to_owned(), 7.5)]));
    }

    #[test]
    fn a_server_is_known_by_its_names() {
        let other = BackendProfile {
            name: "other".to_owned(),
            counters: BTreeMap::from([("hits".to_owned(), "o:hits".to_owned())]),
            ..BackendProfile::default()
        };
        let profiles = [profile(), other];
        assert_eq!(known(&profiles, "o:hits 1\n").map(|found| found.name.as_str()), Some("other"));
        assert!(known(&profiles, "x:hits 1\n").is_none());
    }

    #[test]
    fn a_reset_counter_counts_from_zero() {
        let at = |value| Counters::from([("hits".to_owned(), value)]);
        assert_eq!(difference(&at(5.0), &at(7.0)), at(2.0));
        assert_eq!(difference(&at(5.0), &at(1.0)), at(1.0));
        assert_eq!(difference(&Counters::new(), &at(1.0)), Counters::new());
    }

    proptest! {
        #[test]
        fn any_page_is_read_without_a_panic(page in "(v:hits_total|[{}\"\\\\ \n#0-9a-z])*") {
            read(&profile(), &page);
        }
    }
}
