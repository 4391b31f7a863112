//! Lines over two axes.

use super::{Scale, WIDTH, label, open, rule, tick_text};
use std::fmt::Write;

const HEIGHT: f64 = 290.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 46.0;

/// An axis.
#[derive(Debug, Clone, Default)]
pub struct Axis {
    /// What it shows, with the unit.
    pub title: String,
    /// Logarithmic, where every value is above zero.
    pub log: bool,
    /// Begins at zero.
    pub zero: bool,
    /// Ends at this value or beyond.
    pub end: Option<f64>,
    /// Shows these values instead of round ones.
    pub marks: Vec<f64>,
}

/// A line, broken where a stretch ends.
#[derive(Debug, Clone, Default)]
pub struct Line {
    /// Number of the style, as in the legend.
    pub style: usize,
    /// Stretches of points.
    pub stretches: Vec<Vec<(f64, f64)>>,
    /// Goes in steps.
    pub step: bool,
    /// Points are marked, with their smallest and largest value where there is one.
    pub ranges: Vec<(f64, f64, f64)>,
}

/// A figure of lines.
#[derive(Debug, Clone, Default)]
pub struct Chart {
    /// Its id in the page.
    pub id: String,
    /// Its title, read aloud.
    pub title: String,
    /// What it shows, read aloud.
    pub description: String,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// The lines.
    pub lines: Vec<Line>,
    /// Vertical marks with their words.
    pub marks: Vec<(f64, String)>,
}

impl Chart {
    /// Draws it; `None` without any point.
    pub fn draw(&self) -> Option<String> {
        let points = || self.lines.iter().flat_map(|line| line.stretches.iter().flatten());
        let ranges = || self.lines.iter().flat_map(|line| &line.ranges);
        let x = scale(&self.x, points().map(|point| point.0), LEFT, WIDTH - RIGHT)?;
        let ys = points().map(|point| point.1).chain(ranges().flat_map(|range| [range.1, range.2]));
        let y = scale(&self.y, ys, HEIGHT - BOTTOM, TOP)?;
        let mut out = open(&self.id, HEIGHT, &self.title, &self.description);
        self.write_axes(&mut out, x, y);
        for (value, words) in &self.marks {
            let at = x.at(*value);
            out.push_str(&rule("mark", (at, TOP), (at, HEIGHT - BOTTOM)));
            let (anchor, shift) = if at > WIDTH * 0.7 { ("end", -5.0) } else { ("start", 5.0) };
            out.push_str(&label(at + shift, HEIGHT - BOTTOM - 8.0, anchor, "strong", words));
        }
        for line in &self.lines {
            write_line(&mut out, line, x, y);
        }
        out.push_str("</svg>");
        Some(out)
    }

    fn write_axes(&self, out: &mut String, x: Scale, y: Scale) {
        let bottom = HEIGHT - BOTTOM;
        for tick in y.ticks(6) {
            let at = y.at(tick);
            out.push_str(&rule("grid", (LEFT, at), (WIDTH - RIGHT, at)));
            out.push_str(&label(LEFT - 7.0, at + 4.0, "end", "tick", &tick_text(tick)));
        }
        let ticks = if self.x.marks.is_empty() { x.ticks(8) } else { self.x.marks.clone() };
        let mut free = f64::NEG_INFINITY;
        for tick in ticks {
            let (at, text) = (x.at(tick), tick_text(tick));
            out.push_str(&rule("axis", (at, bottom), (at, bottom + 4.0)));
            let half = text.chars().count() as f64 * 3.8;
            // Two labels that would touch are one too many.
            if at - half > free {
                out.push_str(&label(at, bottom + 18.0, "middle", "tick", &text));
                free = at + half + 6.0;
            }
        }
        out.push_str(&rule("axis", (LEFT, bottom), (WIDTH - RIGHT, bottom)));
        out.push_str(&label((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 8.0, "middle", "name", &self.x.title));
        out.push_str(&label(4.0, 16.0, "start", "name", &self.y.title));
    }
}

/// The domain of an axis; `None` without values.
fn scale(axis: &Axis, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<Scale> {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values.filter(|value| value.is_finite()) {
        low = low.min(value);
        high = high.max(value);
    }
    if low > high {
        return None;
    }
    let log = axis.log && low > 0.0;
    if axis.zero && !log {
        low = low.min(0.0);
    } else if !log && axis.marks.is_empty() {
        low = if low < (high - low) * 2.0 { low.min(0.0) } else { low - (high - low) * 0.08 };
    }
    if log && !axis.marks.is_empty() {
        // Points at the very edge would be half outside.
        return Some(Scale::new(low / 1.15, high * 1.15, from, to, true));
    }
    let high = axis.end.map_or(high, |end| end.max(high));
    let room = if log { high * 1.02 } else { high + (high - low) * 0.04 };
    let high = if axis.end.is_some() { high } else { room };
    Some(Scale::new(low, high, from, to, log))
}

fn write_line(out: &mut String, line: &Line, x: Scale, y: Scale) {
    let style = line.style % super::STYLES;
    let mut path = String::new();
    for stretch in &line.stretches {
        let mut before = None;
        for (across, up) in stretch.iter().filter(|point| point.0.is_finite() && point.1.is_finite()) {
            let (px, py) = (x.at(*across), y.at(*up));
            match before {
                None => _ = write!(path, "M{px:.1} {py:.1}"),
                Some(_) if line.step => _ = write!(path, "H{px:.1}V{py:.1}"),
                Some(_) => _ = write!(path, "L{px:.1} {py:.1}"),
            }
            before = Some((px, py));
        }
    }
    let _ = writeln!(out, "<path class=\"line s{style}\" d=\"{path}\"/>");
    for (across, low, high) in &line.ranges {
        let at = x.at(*across);
        out.push_str(&rule(&format!("range s{style}"), (at, y.at(*low)), (at, y.at(*high))));
    }
    if !line.ranges.is_empty() {
        for (across, up) in line.stretches.iter().flatten() {
            let _ = writeln!(
                out,
                "<circle class=\"dot s{style}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\"/>",
                x.at(*across),
                y.at(*up)
            );
        }
    }
}
