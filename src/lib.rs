//! The gate between an inference result and its readers. See the README for what it
//! does; this page is the map of the house.
//!
//! [`cli`] parses, [`run`] dispatches to [`pipeline`] (the stages) or [`commands`]
//! (everything else). [`stages`] judge, [`rules`] is the table of what can be wrong,
//! [`model`] is what a run says, [`render`] turns that into text. [`course`] and
//! [`config`] know where things are. [`process`], [`backend`], [`client`] and
//! [`mod@bench`] start servers and measure them, [`results`] reads and writes what was
//! measured.

pub mod backend;
pub mod bench;
pub mod cli;
pub mod client;
pub mod commands;
pub mod config;
pub mod course;
pub mod error;
pub mod fsx;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod interrupt;
pub mod model;
pub mod notebook;
mod output;
pub mod pipeline;
pub mod process;
pub mod python;
pub mod quality;
pub mod render;
pub mod report;
pub mod results;
pub mod rules;
pub mod secrets;
pub mod stages;
pub mod term;
mod watch;

use cli::{Cli, Command};
use course::{Context, Excludes};
use error::RunError;
use model::{Lang, Localized, RunReport};
use pipeline::Job;
use render::{Format, HumanOptions};
use std::cell::Cell;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use term::{Progress, TermFacts};

/// Exit code of a usage or configuration fault.
const USAGE: u8 = 2;

/// Reads the command line. Help, version and refusals are printed in the language of the
/// user, and what comes back is the exit code; a closed pipe is no fault.
///
/// # Errors
/// There is no command to run.
pub fn parse(args: &[OsString]) -> Result<Cli, ExitCode> {
    let lang = spoken(args, |name| std::env::var(name).ok());
    cli::parse(args, lang).map_err(|error| {
        tell(&error, lang);
        if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
    })
}

/// Prints what clap has to say.
fn tell(error: &clap::Error, lang: Lang) {
    let is_terminal = if error.use_stderr() { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
    let coloured = TermFacts::of(is_terminal).use_color(term::ColorChoice::Auto);
    let _ = match (cli::in_words(error, lang, coloured), error.use_stderr()) {
        (None, _) => error.print(),
        (Some(text), true) => io::stderr().write_all(text.as_bytes()),
        (Some(text), false) => io::stdout().write_all(text.as_bytes()),
    };
}

/// Runs one command; the result is the exit code of the process.
pub fn run(cli: &Cli) -> u8 {
    let screen = Screen::new(cli);
    let code = match dispatch(cli, &screen) {
        Ok(code) => code,
        Err(error) => screen.fail(&error),
    };
    if code == 0 && screen.lost.get() { 1 } else { code }
}

fn dispatch(cli: &Cli, screen: &Screen<'_>) -> Result<u8, RunError> {
    screen.check_outputs()?;
    match &cli.command {
        Command::All(args) => screen.show(&pipeline::run_chain(&context(cli, screen, &args.projects)?, args)?),
        Command::Static(args) => stage(cli, screen, Job::Static(args.clone())),
        Command::Answers(args) => stage(cli, screen, Job::Answers(args.clone())),
        Command::Links(args) => stage(cli, screen, Job::Links(args.clone())),
        Command::Smoke(args) => stage(cli, screen, Job::Smoke(args.clone())),
        Command::Schema(args) if args.print_schema => Ok(commands::print_schema(screen)),
        Command::Schema(args) => stage(cli, screen, Job::Schema(args.clone())),
        Command::Conclude(args) => stage(cli, screen, Job::Conclude(args.clone())),
        Command::Compare(args) => commands::compare::run(args, cli, screen),
        Command::Report(args) => commands::report::run(args, cli, screen),
        Command::Normalize(args) => commands::normalize::run(args, cli, screen),
        Command::Merge(args) => commands::merge::run(args, cli, screen),
        Command::Bench(args) => commands::bench::run(args, cli, screen),
        Command::Calibrate(args) => commands::calibrate::run(args, cli, screen),
        Command::Backend(args) => commands::backend::run(&args.command, cli, screen),
        Command::Settings => commands::settings::run(cli, screen),
        Command::Init(args) => commands::init::run(args, cli, screen),
        Command::Explain(args) => commands::explain::run(args, screen),
        Command::Completions(args) => Ok(commands::completions(args.shell, screen)),
        Command::Man(args) => commands::man::run(args, screen),
        Command::Guard => Ok(process::guard()),
        Command::Sweep => Ok(process::sweep()),
        Command::Confine(args) => stages::answers::confine(args),
    }
}

/// Runs one stage alone and shows its report; with `--watch` again after every change.
fn stage(cli: &Cli, screen: &Screen<'_>, job: Job) -> Result<u8, RunError> {
    let projects = match &job {
        Job::Smoke(args) => args.projects.clone(),
        _ => Vec::new(),
    };
    if job.is_watching() {
        let cancel = listen()?;
        return watch::run(screen, &|| context_of(cli, screen, &projects, cancel.clone()), &job, &cancel);
    }
    screen.show(&pipeline::run_one(&context(cli, screen, &projects)?, &job)?)
}

/// Installs the signal handlers.
fn listen() -> Result<interrupt::Cancel, RunError> {
    let cancel = interrupt::Cancel::default();
    cancel.listen().map_err(|error| RunError::file("signals", error))?;
    Ok(cancel)
}

/// Resolves root and settings and installs the signal handlers.
fn context(cli: &Cli, screen: &Screen<'_>, projects: &[u32]) -> Result<Context, RunError> {
    context_of(cli, screen, projects, listen()?)
}

/// Resolves root and settings.
fn context_of(
    cli: &Cli,
    screen: &Screen<'_>,
    projects: &[u32],
    cancel: interrupt::Cancel,
) -> Result<Context, RunError> {
    let (cwd, root) = roots(cli)?;
    let settings =
        config::resolve(&root, cli.global.settings.as_deref().map(|path| cwd.join(path)).as_deref())?.settings;
    let ctx = Context {
        excludes: Excludes::new(&settings.course.exclude)?,
        root,
        cwd,
        settings,
        projects: projects.to_vec(),
        lang: screen.lang,
        progress: screen.progress(),
        cancel,
    };
    ctx.check_projects()?;
    Ok(ctx)
}

/// Where the user stands, and the root of the course; both absolute.
fn roots(cli: &Cli) -> Result<(PathBuf, PathBuf), RunError> {
    let cwd = std::env::current_dir().map_err(|error| RunError::file(".", error))?;
    let root = match &cli.global.root {
        Some(given) => {
            let root = cwd.join(given);
            if !root.is_dir() {
                return Err(RunError::usage(
                    Localized::both(
                        format!("{} is no folder", given.display()),
                        format!("{} 不是文件夹", given.display()),
                    ),
                    Localized::both("give the root of the course with -C", "请用 -C 给出课程根目录"),
                ));
            }
            root.canonicalize().unwrap_or(root)
        }
        None => course::find_root(&cwd),
    };
    Ok((cwd, root))
}

/// Where output goes and how it looks, decided once.
#[derive(Debug)]
pub struct Screen<'a> {
    cli: &'a Cli,
    /// Language of human text.
    pub lang: Lang,
    facts: TermFacts,
    /// Something could not be written to standard output.
    lost: Cell<bool>,
}

impl<'a> Screen<'a> {
    fn new(cli: &'a Cli) -> Self {
        Screen {
            cli,
            lang: cli.global.lang.unwrap_or_else(|| locale(|name| std::env::var(name).ok())),
            facts: TermFacts::of(io::stdout().is_terminal()),
            lost: Cell::new(false),
        }
    }

    /// The format that was asked for.
    pub fn format(&self) -> Format {
        self.cli.global.format.unwrap_or_default()
    }

    /// The format of standard output: with `--output` the console keeps the human text.
    pub(crate) fn console(&self) -> Format {
        if self.cli.global.outputs.is_empty() { self.format() } else { Format::Human }
    }

    /// Whether a report goes anywhere in this format.
    fn wants(&self, format: Format) -> bool {
        let files = self.cli.global.outputs.iter().map(|target| target.format.unwrap_or(self.format()));
        files.chain([self.console()]).any(|wanted| wanted == format)
    }

    /// Refuses `--output` targets before anything runs.
    fn check_outputs(&self) -> Result<(), RunError> {
        let targets = &self.cli.global.outputs;
        // There it names the migrated file, by rules of its own.
        if targets.is_empty() || matches!(self.cli.command, Command::Normalize(_)) {
            return Ok(());
        }
        let cwd = std::env::current_dir().map_err(|error| RunError::file(".", error))?;
        output::check(&cwd, targets.iter().map(|target| target.path.as_path()))
    }

    /// The format for a command that has only some of them. One that was asked for on the
    /// command line and is not there is a fault; one of the environment is for others.
    ///
    /// # Errors
    /// The format was named and is none of `known`.
    pub fn format_of(&self, known: &[Format]) -> Result<Format, RunError> {
        let named = self.cli.global.outputs.iter().filter_map(|target| target.format);
        let from_environment = std::env::var("VERIFY_FORMAT").is_ok_and(|name| name == self.format().name());
        let chosen = (!from_environment).then(|| self.format());
        if let Some(format) = named.chain(chosen).find(|format| !known.contains(format)) {
            let (name, names) = (format.name(), known.iter().map(|format| format.name()).collect::<Vec<_>>());
            return Err(RunError::usage(
                Localized::both(format!("this command has no format {name}"), format!("该命令不支持 {name} 格式")),
                Localized::both(format!("it has: {}", names.join(", ")), format!("可用格式：{}", names.join("、"))),
            ));
        }
        Ok(if known.contains(&self.format()) { self.format() } else { Format::Human })
    }

    /// Progress on standard error, as the options and the terminal want it.
    pub fn progress(&self) -> Progress {
        let global = &self.cli.global;
        if global.no_progress || global.quiet {
            Progress::Silent
        } else if io::stderr().is_terminal() && std::env::var_os("CI").is_none() {
            Progress::Bar(self.lang)
        } else {
            Progress::Lines(self.lang)
        }
    }

    /// How human text looks here.
    pub fn human<'b>(&self, root: &'b Path) -> HumanOptions<'b> {
        HumanOptions {
            root,
            lang: self.lang,
            color: self.facts.use_color(self.cli.global.color),
            width: std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).unwrap_or(100),
            quiet: self.cli.global.quiet,
        }
    }

    /// Prints a text to standard output: without secrets, and for people without what
    /// steers a terminal, whoever it came from. A reader that went away is no fault; a report
    /// that is lost on a full disk is one, and the exit code says so.
    pub fn print(&self, text: &str) {
        let text = secrets::clean_text(text);
        let text = if self.console() != Format::Human { text.into_owned() } else { self.harmless(&text, self.facts) };
        let mut out = io::stdout().lock();
        if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush())
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.lost.set(true);
            self.complain(&format!("standard output: {error}\n"));
        }
    }

    /// Whether only failures are wanted.
    pub fn is_quiet(&self) -> bool {
        self.cli.global.quiet
    }

    /// The files of `--output`, as they were typed.
    pub fn output_files(&self) -> impl Iterator<Item = &Path> {
        self.cli.global.outputs.iter().map(|target| target.path.as_path())
    }

    /// Clears a terminal; anything else keeps what was printed.
    pub fn clear(&self) {
        if self.facts.is_terminal && self.console() == Format::Human {
            let _ = io::stdout().write_all(b"\x1b[2J\x1b[H");
        }
    }

    fn harmless(&self, text: &str, facts: TermFacts) -> String {
        let coloured = facts.use_color(self.cli.global.color);
        if coloured { term::neutralize_coloured(text) } else { term::neutralize(text) }
    }

    /// Prints a text to standard error, as harmless as [`Screen::print`].
    pub fn complain(&self, text: &str) {
        let facts = TermFacts::of(io::stderr().is_terminal());
        let text = self.harmless(&secrets::clean_text(text), facts);
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// Shows a report in every format that was asked for.
    ///
    /// # Errors
    /// A file of `--output` cannot be written; the console has the report all the same.
    pub fn show(&self, report: &RunReport) -> Result<u8, RunError> {
        self.deliver(report, None)
    }

    /// Shows what a change brought; machines get the whole state.
    ///
    /// # Errors
    /// A file of `--output` cannot be written.
    pub fn show_change(&self, whole: &RunReport, shown: &RunReport) -> Result<u8, RunError> {
        self.deliver(whole, Some(shown))
    }

    fn judged(&self, report: &RunReport) -> RunReport {
        let mut report = report.clone();
        if self.cli.global.strict {
            report.stages.iter_mut().for_each(|run| run.outcome.make_strict());
        }
        report
    }

    fn deliver(&self, report: &RunReport, shown: Option<&RunReport>) -> Result<u8, RunError> {
        let report = self.judged(report);
        let (_, root) = roots(self.cli)?;
        let whole = |format, options: HumanOptions<'_>| render::render(format, &report, options);
        let written = self.write_outputs(whole, &root);
        self.put(&match shown {
            Some(shown) if self.console() == Format::Human => {
                render::render_change(&report, &self.judged(shown), self.human(&root))
            }
            _ => whole(self.console(), self.human(&root)),
        });
        written?;
        if self.wants(Format::Github) {
            self.summarize(&report);
        }
        Ok(u8::try_from(report.exit_code()).unwrap_or(1))
    }

    /// Writes one text to every file of `--output` and to the console, each in its format.
    ///
    /// # Errors
    /// The first file that cannot be written, after all others and the console had theirs.
    pub fn emit(&self, text: impl Fn(Format, HumanOptions<'_>) -> String, root: &Path) -> Result<(), RunError> {
        let written = self.write_outputs(&text, root);
        self.put(&text(self.console(), self.human(root)));
        written
    }

    fn write_outputs(&self, text: impl Fn(Format, HumanOptions<'_>) -> String, root: &Path) -> Result<(), RunError> {
        let (cwd, _) = roots(self.cli)?;
        let mut lost = Ok(());
        for target in &self.cli.global.outputs {
            let plain = HumanOptions { color: false, ..self.human(root) };
            let written = output::write(&cwd.join(&target.path), &text(target.format.unwrap_or(self.format()), plain));
            lost = lost.and(written.map_err(|error| RunError::file(&target.path, error)));
        }
        lost
    }

    /// Prints a report. On GitHub a text for people gives the runner no orders.
    fn put(&self, console: &str) {
        let on_github = std::env::var_os("GITHUB_ACTIONS").is_some();
        if on_github && self.console() == Format::Human {
            self.print(&render::defuse_workflow_commands(console));
        } else {
            self.print(console);
        }
    }

    /// Adds the report to the summary of the step on GitHub. One that is lost is no
    /// success, as with standard output.
    fn summarize(&self, report: &RunReport) {
        let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else { return };
        let path = Path::new(&path);
        let text = render::step_summary(report, self.lang, output::size(path));
        if let Err(error) = output::append(path, &text) {
            self.lost.set(true);
            self.complain(&format!("GITHUB_STEP_SUMMARY: {}: {error}\n", path.display()));
        }
    }

    /// Shows a usage or configuration fault.
    fn fail(&self, error: &RunError) -> u8 {
        let format = self.console();
        if format != Format::Human {
            self.print(&render::render_error(format, error, self.human(Path::new("."))));
        }
        let facts = TermFacts::of(io::stderr().is_terminal());
        let options = HumanOptions { color: facts.use_color(self.cli.global.color), ..self.human(Path::new(".")) };
        self.complain(&render::render_human_error(error, options));
        USAGE
    }
}

/// The language of help and refusals, which are printed before the options are read:
/// `--lang`, then VERIFY_LANG, then the locale.
fn spoken(args: &[OsString], variable: impl Fn(&str) -> Option<String>) -> Lang {
    let named = |text: &str| <Lang as clap::ValueEnum>::from_str(text, true).ok();
    let mut words = args.iter().map(|word| word.to_string_lossy()).take_while(|word| word != "--");
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--lang") {
            Some("") => words.next().map(|value| value.into_owned()),
            Some(rest) => rest.strip_prefix('=').map(str::to_owned),
            None => None,
        };
        if let Some(lang) = value.as_deref().and_then(named) {
            return lang;
        }
    }
    variable("VERIFY_LANG").as_deref().and_then(named).unwrap_or_else(|| locale(variable))
}

/// The language of the locale: LC_ALL, then LC_MESSAGES, then LANG.
fn locale(variable: impl Fn(&str) -> Option<String>) -> Lang {
    let name =
        ["LC_ALL", "LC_MESSAGES", "LANG"].iter().find_map(|name| variable(name).filter(|value| !value.is_empty()));
    if name.is_some_and(|name| name.to_ascii_lowercase().starts_with("zh")) { Lang::Zh } else { Lang::En }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_known_before_the_options_are_read() {
        let with = |args: &[&str], set: &[(&str, &str)]| {
            let args: Vec<OsString> = args.iter().map(OsString::from).collect();
            let set = set.to_vec();
            spoken(&args, move |name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(with(&["verify", "links"], &[]), Lang::En);
        assert_eq!(with(&["verify", "--lang", "zh", "links"], &[("VERIFY_LANG", "en")]), Lang::Zh);
        assert_eq!(with(&["verify", "links", "--lang=zh"], &[]), Lang::Zh);
        assert_eq!(with(&["verify", "links"], &[("VERIFY_LANG", "zh"), ("LANG", "C")]), Lang::Zh);
        assert_eq!(with(&["verify", "--lang", "xx"], &[("LC_ALL", "zh_CN.UTF-8")]), Lang::Zh);
        assert_eq!(with(&["verify", "--", "--lang", "zh"], &[("LANG", "de_DE")]), Lang::En);
    }
}
