//! Figures as inline SVG, drawn by pure functions. Colours come from classes of the page,
//! and never alone: lines differ in their dashes, bars in their pattern. Every figure has
//! a title and a description for those who hear it.

mod bars;
mod chart;
mod forest;

pub use bars::timeline;
pub use chart::{Axis, Chart, Line};
pub use forest::forest;

use unicode_width::UnicodeWidthChar;

/// Width of every figure in its own units; the page scales it.
pub const WIDTH: f64 = 640.0;
/// Styles of lines that the page knows.
pub const STYLES: usize = 40;

/// Text inside markup: nothing in it is a tag, an attribute's end or a control character.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in crate::term::neutralize(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
    out
}

/// A text cut to a display width, with an ellipsis where something is missing.
pub fn fit(text: &str, columns: usize) -> String {
    let width = |c: char| c.width().unwrap_or(0);
    if text.chars().map(width).sum::<usize>() <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let kept = text.chars().take_while(|c| {
        used += width(*c);
        used <= columns
    });
    kept.chain(['…']).collect()
}

/// Round numbers from `low` to `high`, at most `most` of them.
pub fn ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    if !(high - low).is_normal() || most < 2 {
        return vec![low];
    }
    let raw = (high - low) / (most - 1) as f64;
    let magnitude = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].iter().map(|factor| factor * magnitude).find(|step| *step >= raw * 0.999);
    let step = step.unwrap_or(10.0 * magnitude);
    let first = (low / step - 1e-9).ceil();
    (0..=most).map(|index| (first + index as f64) * step).filter(|tick| *tick <= high + step * 1e-9).collect()
}

/// Round numbers of a logarithmic axis.
pub fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let steps: &[f64] = if last - first <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let all = (first..=last).flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
    all.filter(|tick| *tick >= low * 0.999 && *tick <= high * 1.001).collect()
}

/// From values to a stretch of the figure.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

impl Scale {
    /// `low` at `from`, `high` at `to`.
    pub fn new(low: f64, high: f64, from: f64, to: f64, log: bool) -> Self {
        let log = log && low > 0.0 && high > low;
        let high = if high > low { high } else { low + low.abs().max(1.0) * 0.1 };
        Scale { low, high, from, to, log }
    }

    /// Where a value is.
    pub fn at(self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round values on it.
    pub fn ticks(self, most: usize) -> Vec<f64> {
        if self.log {
            let ticks = log_ticks(self.low, self.high);
            if ticks.len() >= 2 {
                return ticks;
            }
        }
        ticks(self.low, self.high, most)
    }
}

/// The value of a tick as text.
pub fn tick_text(value: f64) -> String {
    // What is left of 0.1 + 0.2 is no figure.
    let rounded = format!("{value:.6}");
    let text = rounded.trim_end_matches('0').trim_end_matches('.');
    match text {
        "" | "-0" => "0".to_owned(),
        text if value.abs() >= 10_000.0 => super::number(text.parse().unwrap_or(value)),
        text => text.replace('-', "−"),
    }
}

/// The opening of a figure with what is read aloud.
fn open(id: &str, height: f64, title: &str, description: &str) -> String {
    format!(
        "<svg id=\"{id}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
         <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>\n",
        escape(title),
        escape(description)
    )
}

/// A text at a place; `anchor` is `start`, `middle` or `end`.
fn label(x: f64, y: f64, anchor: &str, class: &str, text: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{}</text>\n", escape(text))
}

/// A line between two points.
fn rule(class: &str, from: (f64, f64), to: (f64, f64)) -> String {
    format!(
        "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>\n",
        from.0, from.1, to.0, to.1
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(0.0, 237.7, 6), [0.0, 50.0, 100.0, 150.0, 200.0]);
        assert_eq!(ticks(171.0, 194.0, 5), [180.0, 190.0]);
        assert_eq!(ticks(-0.12, 0.5, 6), [0.0, 0.2, 0.4]);
        assert_eq!(ticks(3.0, 3.0, 5), [3.0]);
        assert_eq!(log_ticks(40.0, 5000.0), [100.0, 1000.0]);
        assert_eq!(log_ticks(40.0, 700.0), [50.0, 100.0, 200.0, 500.0]);
        assert_eq!([0.1 + 0.2, -0.25, 12_000.0, 0.0].map(tick_text), ["0.3", "−0.25", "12,000", "0"]);
    }

    #[test]
    fn a_long_name_is_cut_by_its_width() {
        assert_eq!(fit("推理加速基线", 7), "推理加…");
        assert_eq!(fit("short", 7), "short");
    }

    proptest! {
        /// Whatever was measured, an axis has finite places and few ticks.
        #[test]
        fn a_scale_holds_any_domain(low in -1e12f64..1e12, spread in 0f64..1e12, log in any::<bool>(), value in -1e13f64..1e13) {
            let scale = Scale::new(low, low + spread, 10.0, 600.0, log);
            prop_assert!((10.0..=600.0).contains(&scale.at(value)));
            let ticks = scale.ticks(6);
            prop_assert!(ticks.len() <= 30 && ticks.iter().all(|tick| tick.is_finite()));
        }
    }
}
