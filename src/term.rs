//! Colour, width and progress: functions of what is passed in, never of the
//! environment behind the caller's back.

use crate::model::Lang;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

/// `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum ColorChoice {
    /// Colour on a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Facts about the terminal that decide how output looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct TermFacts {
    /// NO_COLOR is set and not empty.
    pub no_color: bool,
    /// FORCE_COLOR or CLICOLOR_FORCE is set and neither empty nor 0.
    pub force_color: bool,
    /// The stream is a terminal.
    pub is_terminal: bool,
}

impl TermFacts {
    /// Reads the environment once, for one stream.
    pub fn of(is_terminal: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let forced = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
        TermFacts {
            no_color: set("NO_COLOR"),
            force_color: forced("FORCE_COLOR") || forced("CLICOLOR_FORCE"),
            is_terminal,
        }
    }

    /// `--color`, then NO_COLOR, then FORCE_COLOR, then whether it is a terminal.
    pub fn use_color(self, choice: ColorChoice) -> bool {
        match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto if self.no_color => false,
            ColorChoice::Auto => self.force_color || self.is_terminal,
        }
    }
}

/// Pads to a display width: a Chinese character takes two columns.
pub fn pad(text: &str, width: usize) -> String {
    let used = UnicodeWidthStr::width(text);
    format!("{text}{}", " ".repeat(width.saturating_sub(used)))
}

/// A duration in at most four significant characters: `41 ms`, `7.9 s`, `2 min 05 s`.
pub fn human_duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 0.0995 {
        format!("{:.0} ms", seconds * 1000.0)
    } else if seconds < 9.95 {
        format!("{seconds:.1} s")
    } else if seconds < 119.5 {
        format!("{seconds:.0} s")
    } else {
        format!("{} min {:02} s", duration.as_secs() / 60, duration.as_secs() % 60)
    }
}

/// Characters that steer a terminal, made visible: what notebooks and servers print
/// must not repaint the screen of whoever reads the report.
pub fn neutralize(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}'),
            '\u{7f}' => '\u{2421}',
            '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            _ => c,
        })
        .collect()
}

/// [`neutralize`] for a text that was coloured here: sequences that only colour stay.
pub fn neutralize_coloured(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        out.push_str(&neutralize(&rest[..at]));
        let length = colour_sequence(&rest[at..]);
        out.push_str(if length == 0 { "\u{241b}" } else { &rest[at..at + length] });
        rest = &rest[at + length.max(1)..];
    }
    out + &neutralize(rest)
}

/// Length of the colour sequence at the start of a text, 0 where there is none.
fn colour_sequence(text: &str) -> usize {
    let Some(body) = text.strip_prefix("\u{1b}[") else { return 0 };
    let end = body.find(|c: char| !c.is_ascii_digit() && c != ';');
    end.filter(|end| body[*end..].starts_with('m')).map_or(0, |end| end + 3)
}

/// [`neutralize`] for what stands inside a line: a name with a line break in it must not
/// break the frame around it.
pub fn one_line(text: &str) -> String {
    neutralize(text).replace('\n', "␊").replace('\t', "␉")
}

/// Progress on standard error: a bar on a terminal, a line per step elsewhere.
#[derive(Debug, Clone, Copy, Default)]
pub enum Progress {
    /// Nothing.
    #[default]
    Silent,
    /// One line per step, for logs.
    Lines(Lang),
    /// A bar that is drawn over.
    Bar(Lang),
}

impl Progress {
    /// Begins a phase of `total` steps.
    pub fn start(self, name: &str, total: u64) -> Phase {
        let bar = match self {
            Progress::Bar(_) => {
                let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
                if let Ok(style) = ProgressStyle::with_template("{prefix:8} {bar:24} {pos}/{len} {elapsed} {wide_msg}")
                {
                    bar.set_style(style);
                }
                bar.set_prefix(name.to_owned());
                bar.enable_steady_tick(Duration::from_millis(120));
                Some(bar)
            }
            _ => None,
        };
        Phase { mode: self, name: name.to_owned(), total, done: AtomicU64::new(0), bar }
    }
}

/// What progress may say.
fn clean(text: &str) -> String {
    neutralize(&crate::secrets::clean_text(text))
}

/// A phase of progress; disappears from a terminal when dropped.
#[derive(Debug)]
pub struct Phase {
    mode: Progress,
    name: String,
    total: u64,
    done: AtomicU64,
    bar: Option<ProgressBar>,
}

impl Phase {
    /// Says what is going on now, without counting.
    pub fn say(&self, what: &str) {
        let what = &self.in_words(what);
        match (&self.bar, self.mode) {
            (Some(bar), _) => bar.set_message(clean(what)),
            (None, Progress::Lines(_)) => self.line(&format!("{}: {what}", self.name)),
            _ => {}
        }
    }

    /// Says what is going on where a line is drawn over; in a log it would only be noise.
    pub fn quiet_say(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(clean(&self.in_words(what)));
        }
    }

    /// Where it is now and what is going on, where a line is drawn over.
    pub fn at(&self, done: u64, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_position(done);
            bar.set_message(neutralize(&self.in_words(what)));
        }
    }

    /// Counts one step and says which.
    pub fn step(&self, what: &str) {
        let what = &self.in_words(what);
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        match (&self.bar, self.mode) {
            (Some(bar), _) => {
                bar.set_position(done);
                bar.set_message(clean(what));
            }
            (None, Progress::Lines(_)) => self.line(&format!("[{done}/{}] {}: {what}", self.total, self.name)),
            _ => {}
        }
    }

    fn in_words(&self, what: &str) -> String {
        match self.mode {
            Progress::Bar(lang) | Progress::Lines(lang) => crate::model::progress(what, lang),
            Progress::Silent => what.to_owned(),
        }
    }

    /// A line that nobody can take is no fault of the run.
    fn line(&self, text: &str) {
        let _ = writeln!(std::io::stderr(), "{}", clean(text));
    }
}

impl Drop for Phase {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_follows_flag_then_environment_then_terminal() {
        let plain = TermFacts { is_terminal: true, ..TermFacts::default() };
        assert!(plain.use_color(ColorChoice::Auto));
        assert!(!plain.use_color(ColorChoice::Never));
        assert!(!TermFacts { no_color: true, force_color: true, is_terminal: true }.use_color(ColorChoice::Auto));
        assert!(TermFacts { force_color: true, ..TermFacts::default() }.use_color(ColorChoice::Auto));
        assert!(TermFacts { no_color: true, ..TermFacts::default() }.use_color(ColorChoice::Always));
    }

    #[test]
    fn durations_read_well() {
        let text = |ms| human_duration(Duration::from_millis(ms));
        assert_eq!(
            [text(0), text(41), text(311), text(7900), text(41_000), text(125_000)],
            ["0 ms", "41 ms", "0.3 s", "7.9 s", "41 s", "2 min 05 s"]
        );
    }

    #[test]
    fn escape_sequences_become_visible() {
        assert_eq!(neutralize("\u{1b}[31m红\u{7}\n"), "␛[31m红␇\n");
        assert_eq!(pad("推理", 6), "推理  ");
        let colours = "\u{1b}[1;31m红\u{1b}[0m";
        assert_eq!(neutralize_coloured(colours), colours);
        assert_eq!(neutralize_coloured("\u{1b}[2J\u{1b}]0;x\u{7}\u{1b}"), "␛[2J␛]0;x␇␛");
    }
}
