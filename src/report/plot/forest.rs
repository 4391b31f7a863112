//! Differences with their intervals, one row each.

use super::{Scale, WIDTH, fit, label, open, rule, tick_text};
use crate::model::Lang;
use crate::report::text::verdict;
use crate::report::{Difference, metric_title};
use std::fmt::Write;

const LEFT: f64 = 190.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 12.0;
const ROW: f64 = 26.0;
const BOTTOM: f64 = 46.0;

/// Draws them; `None` without any that is known.
pub fn forest(id: &str, known: &[Difference], title: &str, description: &str, lang: Lang) -> Option<String> {
    let shown: Vec<&Difference> = known.iter().filter(|difference| difference.relative.is_some()).collect();
    let values = shown.iter().flat_map(|difference| {
        let interval = difference.interval.unwrap_or_default();
        let threshold = difference.threshold.unwrap_or(0.0);
        [difference.relative.unwrap_or(0.0), interval[0], interval[1], threshold, -threshold]
    });
    let (low, high) = values.fold((0.0, 0.0), |(low, high): (f64, f64), value| (low.min(value), high.max(value)));
    if shown.is_empty() || !(high - low).is_finite() {
        return None;
    }
    let room = (high - low).max(0.02) * 0.05;
    let bottom = TOP + ROW * shown.len() as f64;
    let x = Scale::new((low - room) * 100.0, (high + room) * 100.0, LEFT, WIDTH - RIGHT, false);
    let mut out = open(id, bottom + BOTTOM, title, description);
    for tick in x.ticks(6) {
        let at = x.at(tick);
        out.push_str(&rule("grid", (at, TOP), (at, bottom)));
        out.push_str(&label(at, bottom + 18.0, "middle", "tick", &tick_text(tick)));
    }
    out.push_str(&rule("zero", (x.at(0.0), TOP), (x.at(0.0), bottom)));
    for (index, difference) in shown.iter().enumerate() {
        write_row(&mut out, difference, TOP + ROW * index as f64, x, lang);
    }
    let axis = if lang == Lang::En { "candidate minus baseline, %" } else { "候选减基线，%" };
    out.push_str(&label((LEFT + WIDTH - RIGHT) / 2.0, bottom + 38.0, "middle", "name", axis));
    out.push_str("</svg>");
    Some(out)
}

fn write_row(out: &mut String, known: &Difference, top: f64, x: Scale, lang: Lang) {
    let middle = top + ROW / 2.0;
    let name = format!("{} · {}", fit(&known.candidate, 14), metric_title(&known.metric));
    out.push_str(&label(LEFT - 10.0, middle + 4.0, "end", "tick", &name));
    if let Some(threshold) = known.threshold {
        let (left, right) = (x.at(-threshold * 100.0), x.at(threshold * 100.0));
        let (y, height, width) = (top + 4.0, ROW - 8.0, right - left);
        let _ = writeln!(
            out,
            "<rect class=\"band\" x=\"{left:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
    }
    let class = known.verdict;
    if let Some([low, high]) = known.interval {
        let (left, right) = (x.at(low * 100.0), x.at(high * 100.0));
        out.push_str(&rule(&format!("interval {class}"), (left, middle), (right, middle)));
        for end in [left, right] {
            out.push_str(&rule(&format!("interval {class}"), (end, middle - 5.0), (end, middle + 5.0)));
        }
    }
    let at = x.at(known.relative.unwrap_or(0.0) * 100.0);
    let _ = writeln!(out, "<circle class=\"dot {class}\" cx=\"{at:.1}\" cy=\"{middle:.1}\" r=\"4\"/>");
    out.push_str(&label(WIDTH - RIGHT + 10.0, middle + 4.0, "start", "tick", verdict(known.verdict, lang)));
}
