//! Counters of a server: Prometheus text, read before and after the measured window.
//! A counter that is not there is "no evidence", never zero.
//!
//! A profile names a counter by a selector: `name` sums every series of that name
//! (engines, models); `name{label=a|b}` only those whose label has one of the values;
//! `name{label}` gives one counter per value of the label, as `meaning.value`. Several
//! selectors with commas between them are names that different servers use.

use super::BackendProfile;
use std::collections::BTreeMap;

/// Values by meaning, as the profile names them.
pub type Counters = BTreeMap<String, f64>;

/// Meanings whose value goes up and down: they have a peak, not a difference.
const GAUGES: [&str; 3] = ["waiting", "running", "kv_cache_usage"];

/// What one look at the page of counters showed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    /// Values by meaning.
    pub counters: Counters,
    /// The series they rest on, as the server wrote them.
    pub raw: BTreeMap<String, f64>,
    /// Labels of the series that states settings (`vllm:cache_config_info`).
    pub settings: BTreeMap<String, String>,
}

/// The profile whose names stand in a page, for a server of unknown kind: the one with
/// the most of them.
pub fn known<'a>(profiles: &'a [BackendProfile], page: &str) -> Option<&'a BackendProfile> {
    let found =
        profiles.iter().map(|profile| (read(profile, page).counters.len(), profile)).filter(|(count, _)| *count > 0);
    // The first of equals: several profiles may stand for one engine.
    found.rev().max_by_key(|(count, _)| *count).map(|(_, profile)| profile)
}

/// The counters of a profile in a page of Prometheus text.
pub fn read(profile: &BackendProfile, page: &str) -> Page {
    let selectors: Vec<(&str, Selector<'_>)> = profile
        .counters
        .iter()
        .flat_map(|(meaning, names)| names.split(',').map(|name| (meaning.as_str(), Selector::of(name.trim()))))
        .collect();
    let mut read = Page::default();
    for sample in page.lines().filter_map(Sample::of) {
        if !profile.settings_metric.is_empty() && sample.name == profile.settings_metric {
            read.settings.extend(sample.labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        }
        for (meaning, selector) in &selectors {
            let Some(key) = selector.key(meaning, &sample) else { continue };
            *read.counters.entry(key).or_insert(0.0) += sample.value;
            read.raw.insert(sample.series.to_owned(), sample.value);
        }
    }
    read
}

/// A series of a page.
#[derive(Debug)]
struct Sample<'a> {
    /// Name and labels, as they stand there.
    series: &'a str,
    name: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

impl<'a> Sample<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let name_end = line.find(|c: char| c == '{' || c.is_ascii_whitespace())?;
        let (name, rest) = line.split_at(name_end);
        let (labels, series_end) = match rest.strip_prefix('{') {
            Some(labels) => {
                let (labels, length) = read_labels(labels)?;
                (labels, name_end + 1 + length)
            }
            None => (Vec::new(), name_end),
        };
        let value = line[series_end..].split_ascii_whitespace().next()?.parse::<f64>().ok()?;
        value.is_finite().then_some(Sample { series: &line[..series_end], name, labels, value })
    }
}

/// Labels up to the closing brace, and the byte after it. Braces, commas and quotes
/// inside values do not count; `\\`, `\"` and `\n` are unescaped.
fn read_labels(text: &str) -> Option<(Vec<(&str, String)>, usize)> {
    let mut labels = Vec::new();
    let mut at = 0;
    loop {
        at += text[at..].len() - text[at..].trim_start_matches([' ', ',']).len();
        if text[at..].starts_with('}') {
            return Some((labels, at + 1));
        }
        let equals = at + text[at..].find("=\"")?;
        let name = text[at..equals].trim();
        let (value, length) = quoted(&text[equals + 2..])?;
        labels.push((name, value));
        at = equals + 2 + length;
    }
}

/// A quoted value without its quotes, and the byte after the closing one.
fn quoted(text: &str) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, at + 1)),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            c => value.push(c),
        }
    }
    None
}

/// Which series of a page a counter is made of.
#[derive(Debug, PartialEq, Eq)]
struct Selector<'a> {
    name: &'a str,
    /// A label, and the values that count; none: one counter per value.
    label: Option<(&'a str, Vec<&'a str>)>,
}

impl<'a> Selector<'a> {
    fn of(text: &'a str) -> Self {
        let Some((name, label)) = text.strip_suffix('}').and_then(|text| text.split_once('{')) else {
            return Selector { name: text, label: None };
        };
        let label = match label.split_once('=') {
            Some((label, values)) => (label, values.split('|').map(|value| value.trim_matches('"')).collect()),
            None => (label, Vec::new()),
        };
        Selector { name, label: Some(label) }
    }

    /// The counter that a series belongs to.
    fn key(&self, meaning: &str, sample: &Sample<'_>) -> Option<String> {
        if sample.name != self.name {
            return None;
        }
        let Some((label, values)) = &self.label else { return Some(meaning.to_owned()) };
        let (_, value) = sample.labels.iter().find(|(name, _)| name == label)?;
        if values.is_empty() {
            return Some(format!("{meaning}.{value}"));
        }
        values.contains(&value.as_str()).then(|| meaning.to_owned())
    }
}

/// What happened between two readings. A counter that fell was reset: the later value
/// is all that is known of the window.
pub fn difference(before: &Counters, after: &Counters) -> Counters {
    after
        .iter()
        .filter(|(meaning, _)| !GAUGES.contains(&meaning.as_str()))
        .filter_map(|(meaning, now)| {
            let then = *before.get(meaning)?;
            Some((meaning.clone(), if *now >= then { now - then } else { *now }))
        })
        .collect()
}

/// Keeps the largest value of every gauge.
pub fn raise_peaks(peaks: &mut Counters, now: &Counters) {
    for (meaning, value) in now.iter().filter(|(meaning, _)| GAUGES.contains(&meaning.as_str())) {
        let peak = peaks.entry(meaning.clone()).or_insert(*value);
        *peak = peak.max(*value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn profile() -> BackendProfile {
        let counters = [
            ("hits", "v:hits_total"),
            ("none", "v:none"),
            ("done", "v:success{reason=stop|length}"),
            ("at", "v:per_pos{position}"),
            ("either", "w:other_total, v:either_total"),
        ];
        BackendProfile {
            counters: counters.map(|(meaning, name)| (meaning.to_owned(), name.to_owned())).into(),
            settings_metric: "v:config_info".to_owned(),
            ..BackendProfile::default()
        }
    }

    fn counters(values: &[(&str, f64)]) -> Counters {
        values.iter().map(|(meaning, value)| ((*meaning).to_owned(), *value)).collect()
    }

    #[test]
    fn series_are_summed_and_a_missing_one_is_absent() {
        let page = "# TYPE v:hits_total counter\nv:hits_total{engine=\"0\",name=\"a}b\\\"\"} 3\nv:hits_total{engine=\"1\"} 4.5 1700000\nv:hits_total_created 9\nv:none NaN\n";
        let read = read(&profile(), page);
        assert_eq!(read.counters, counters(&[("hits", 7.5)]));
        let series: Vec<&str> = read.raw.keys().map(String::as_str).collect();
        assert_eq!(series, ["v:hits_total{engine=\"0\",name=\"a}b\\\"\"}", "v:hits_total{engine=\"1\"}"]);
    }

    #[test]
    fn a_label_chooses_or_splits_the_series() {
        let page = "v:success{engine=\"0\",reason=\"stop\"} 3\nv:success{reason=\"length\"} 2\nv:success{reason=\"abort\"} 9\n\
                    v:per_pos{position=\"0\"} 5\nv:per_pos{position=\"1\"} 4\nv:per_pos 7\n\
                    v:either_total 6\nv:config_info{block_size=\"128\",enable_prefix_caching=\"True\"} 1\n";
        let read = read(&profile(), page);
        assert_eq!(read.counters, counters(&[("done", 5.0), ("at.0", 5.0), ("at.1", 4.0), ("either", 6.0)]));
        assert_eq!(read.settings["block_size"], "128");
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
        let at = |value| counters(&[("hits", value)]);
        assert_eq!(difference(&at(5.0), &at(7.0)), at(2.0));
        assert_eq!(difference(&at(5.0), &at(1.0)), at(1.0));
        assert_eq!(difference(&Counters::new(), &at(1.0)), Counters::new());
    }

    #[test]
    fn a_gauge_has_a_peak_and_no_difference() {
        let mut peaks = Counters::new();
        for value in [1.0, 4.0, 0.0] {
            raise_peaks(&mut peaks, &counters(&[("waiting", value), ("hits", 9.0)]));
        }
        assert_eq!(peaks, counters(&[("waiting", 4.0)]));
        assert_eq!(difference(&peaks, &peaks), Counters::new());
    }

    proptest! {
        #[test]
        fn any_page_is_read_without_a_panic(page in "(v:hits_total|v:per_pos|position=|é|[{}\"\\\\ \n,#0-9a-z])*") {
            read(&profile(), &page);
        }
    }
}
