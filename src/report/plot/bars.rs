//! The requests of a pass over time: waiting, prefill, decode.

use super::{Scale, WIDTH, label, open, rule, tick_text};
use crate::report::{Bar, Timeline};
use std::fmt::Write;

const LEFT: f64 = 44.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 10.0;
const ROW: f64 = 8.0;
const BOTTOM: f64 = 44.0;

/// Draws it; `None` without requests. `axis` names the axis.
pub fn timeline(id: &str, timeline: &Timeline, title: &str, description: &str, axis: &str) -> Option<String> {
    let ends = timeline.bars.iter().map(end).filter(|end| end.is_finite());
    let last = ends.fold(0.0, f64::max);
    if timeline.bars.is_empty() || last <= 0.0 {
        return None;
    }
    let bottom = TOP + ROW * timeline.bars.len() as f64;
    let x = Scale::new(0.0, last / 1000.0, LEFT, WIDTH - RIGHT, false);
    let mut out = open(id, bottom + BOTTOM, title, description);
    // The pattern belongs to this figure: ids are unique in a page.
    let _ = writeln!(
        out,
        "<defs><pattern id=\"{id}-h\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
         <rect class=\"prefill-ground\" width=\"4\" height=\"4\"/><rect class=\"prefill-line\" width=\"1.6\" height=\"4\"/></pattern></defs>"
    );
    for tick in x.ticks(8) {
        let at = x.at(tick);
        out.push_str(&rule("grid", (at, TOP), (at, bottom)));
        out.push_str(&label(at, bottom + 16.0, "middle", "tick", &tick_text(tick)));
    }
    for (index, bar) in timeline.bars.iter().enumerate() {
        write_bar(&mut out, bar, TOP + ROW * index as f64, x, id);
    }
    out.push_str(&rule("axis", (LEFT, bottom), (WIDTH - RIGHT, bottom)));
    out.push_str(&label((LEFT + WIDTH - RIGHT) / 2.0, bottom + 36.0, "middle", "name", axis));
    out.push_str(&label(LEFT - 6.0, TOP + ROW, "end", "tick", "1"));
    if timeline.of > 1 {
        out.push_str(&label(LEFT - 6.0, bottom, "end", "tick", &timeline.of.to_string()));
    }
    out.push_str("</svg>");
    Some(out)
}

fn end(bar: &Bar) -> f64 {
    bar.sent + bar.e2e.or(bar.ttft).unwrap_or(0.0)
}

fn write_bar(out: &mut String, bar: &Bar, top: f64, x: Scale, id: &str) {
    let mut part = |class: &str, from: f64, to: f64, fill: &str| {
        let (left, right) = (x.at(from / 1000.0), x.at(to / 1000.0));
        if right - left >= 0.05 && left.is_finite() && right.is_finite() {
            let (y, height) = (top + 1.0, ROW - 2.0);
            let _ = writeln!(
                out,
                "<rect class=\"{class}\"{fill} x=\"{left:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>",
                right - left
            );
        }
    };
    let first = bar.sent + bar.ttft.unwrap_or(0.0);
    let queued = bar.sent + bar.queue.unwrap_or(0.0).clamp(0.0, bar.ttft.unwrap_or(0.0));
    part("queue", bar.scheduled, queued, "");
    part("prefill", queued, first, &format!(" fill=\"url(#{id}-h)\""));
    part("decode", first, end(bar), "");
    if bar.fault.is_some() {
        let (at, y) = (x.at(end(bar) / 1000.0), top + ROW / 2.0);
        let _ = writeln!(out, "<path class=\"fault\" d=\"M{:.1} {:.1}l6 6m0 -6l-6 6\"/>", at - 3.0, y - 3.0);
    }
}
