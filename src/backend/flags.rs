//! Which flags a server's version knows, read from its own help before it is started:
//! a flag that it lacks would end it after seconds, and some servers only in their log.

use super::provision::cache_dir;
use super::{BackendProfile, doctor};
use crate::config::nearest;
use crate::fsx;
use crate::process;
use regex::Regex;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, UNIX_EPOCH};

/// How long a server may take for its help. vLLM loads all of itself first: ten seconds,
/// on a busy machine several times that.
const PATIENCE: Duration = Duration::from_secs(60);
/// A help with fewer flags is none.
const FEWEST_FLAGS: usize = 3;

#[expect(clippy::unwrap_used, reason = "a constant pattern")]
static FLAG: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?:^|[^\w-])(--[A-Za-z][\w-]*)").unwrap());

/// What a server's help says of its flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flags(BTreeSet<String>);

impl Flags {
    /// Reads a help text; `None` when it shows next to no flags.
    pub fn read(help: &str) -> Option<Self> {
        let mut known: BTreeSet<String> = FLAG.captures_iter(help).map(|found| found[1].to_owned()).collect();
        for removed in removed(help) {
            known.remove(removed);
        }
        (known.len() >= FEWEST_FLAGS).then_some(Flags(known))
    }

    /// The long flags among arguments that it does not know.
    pub fn unknown<'a>(&self, arguments: &'a [String]) -> Vec<&'a str> {
        let flags = arguments.iter().filter_map(|argument| {
            let flag = argument.split('=').next().unwrap_or(argument);
            FLAG.find(flag).is_some_and(|found| found.as_str() == flag).then_some(flag)
        });
        flags.filter(|flag| !self.0.contains(*flag)).collect()
    }

    /// The flag that was probably meant.
    pub fn nearest(&self, flag: &str) -> Option<&str> {
        let known = || self.0.iter().map(String::as_str);
        let related = |name: &&str| name.starts_with(flag) || flag.starts_with(name);
        nearest(flag, known()).or_else(|| known().filter(related).min_by_key(|name| name.len().abs_diff(flag.len())))
    }
}

/// Flags that llama.cpp still lists with the words that they are gone.
fn removed(help: &str) -> Vec<&str> {
    let mut current: Vec<&str> = Vec::new();
    let mut removed = Vec::new();
    for line in help.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with('-') {
            let flags = trimmed.split([',', ' ']).map(str::trim).filter(|word| !word.is_empty());
            current = flags.take_while(|word| word.starts_with('-')).collect();
        }
        if line.contains("argument has been removed") {
            removed.append(&mut current);
        }
    }
    removed
}

/// The flags of a server, or `None` where its help cannot be had: then its log will tell.
pub fn probe(profile: &BackendProfile, program: &Path, give_up: &dyn Fn() -> bool) -> Option<Flags> {
    if profile.help_args.is_empty() {
        return None;
    }
    Flags::read(&asked(program, &profile.help_args, give_up)?)
}

/// What a program prints for these arguments: from the cache, as long as the program is
/// the same file, else by asking it once.
fn asked(program: &Path, arguments: &[String], give_up: &dyn Fn() -> bool) -> Option<String> {
    let cache = identity(program, arguments).and_then(|name| Some(cache_dir().ok()?.join("probes").join(name)));
    if let Some(text) = cache.as_ref().and_then(|path| fs::read_to_string(path).ok()) {
        return Some(text);
    }
    let mut command = Command::new(program);
    // Wide and plain: some helps cut long flags to the width of the terminal.
    command.args(arguments).env("COLUMNS", "240").env("NO_COLOR", "1").env("TERM", "dumb");
    let (status, text) = process::ask_both(&mut command, PATIENCE, give_up).ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    if !status.success() || text.trim().is_empty() {
        return None;
    }
    if let Some(path) = cache {
        // Without a cache it is asked again the next time.
        let _ = fsx::write_atomic(&path, text.as_bytes());
    }
    Some(text)
}

/// A name that changes when the program does: its place, time and length; for a program
/// of a Python environment also the time of the folder in which packages are replaced.
fn identity(program: &Path, arguments: &[String]) -> Option<String> {
    let program = doctor::on_path(&program.to_string_lossy())?;
    let facts = fs::metadata(&program).ok()?;
    let time = |facts: &fs::Metadata| {
        facts.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map(|since| since.as_nanos())
    };
    let packages = program.parent().and_then(|bin| {
        let libraries = fs::read_dir(bin.parent()?.join("lib")).ok()?;
        let newest = libraries.flatten().filter_map(|python| fs::metadata(python.path().join("site-packages")).ok());
        newest.filter_map(|facts| time(&facts)).max()
    });
    let text = format!("{}\n{:?}\n{}\n{packages:?}\n{arguments:?}", program.display(), time(&facts), facts.len());
    Some(format!("{}.txt", &fsx::sha256(text.as_bytes())[..24]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LLAMA: &str = "\
-h,    --help, --usage          print usage and exit
-np,   --parallel N             number of server slots
--cache-prompt, --no-cache-prompt   whether to enable prompt caching
--spec-type none,ngram-simple   type of speculative decoding
--draft, --draft-n, --draft-max N
                                the argument has been removed. use --spec-draft-n-max
--spec-draft-n-max N            tokens to draft
";

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_flag_that_the_version_lacks_is_named_with_the_nearest() {
        let flags = Flags::read(LLAMA).unwrap();
        let arguments = words("-np 4 --parallel=4 --no-cache-prompt --spec-typ ngram-simple {\"a\":\"--b\"}");
        assert_eq!(flags.unknown(&arguments), ["--spec-typ"]);
        assert_eq!(flags.nearest("--spec-typ"), Some("--spec-type"));
        assert_eq!(flags.nearest("--parallel-requests-at-once"), Some("--parallel"));
        assert_eq!(flags.nearest("--quite-another-thing"), None);
    }

    #[test]
    fn a_flag_that_is_listed_as_removed_is_unknown() {
        let flags = Flags::read(LLAMA).unwrap();
        assert_eq!(flags.unknown(&words("--draft-max 4 --draft 4 --spec-draft-n-max 4")), ["--draft-max", "--draft"]);
    }

    #[test]
    fn helps_of_argparse_are_read_and_a_summary_is_none() {
        let help = "usage: vllm serve [--enable-prefix-caching | --no-enable-prefix-caching] [--dtype {auto,half}]\n  --speculative-config SPECULATIVE_CONFIG, -sc SPECULATIVE_CONFIG\n  --uds UDS";
        let flags = Flags::read(help).unwrap();
        assert_eq!(
            flags.unknown(&words("--no-enable-prefix-caching --dtype auto --speculative-config {} --uds x")),
            Vec::<&str>::new()
        );
        assert_eq!(Flags::read("usage: vllm serve [options]\n  --help=all shows everything"), None);
    }

    #[cfg(unix)]
    #[test]
    fn another_program_of_the_same_name_is_asked_anew() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = tempfile::tempdir().unwrap();
        let program = scratch.path().join("server");
        let write = |text: &str| {
            fs::write(&program, text).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        };
        let arguments = ["--help".to_owned()];
        write("#!/bin/sh\n");
        let first = identity(&program, &arguments).unwrap();
        assert_eq!(identity(&program, &arguments).unwrap(), first);
        assert_ne!(identity(&program, &["--version".to_owned()]).unwrap(), first);
        write("#!/bin/sh\necho\n");
        assert_ne!(identity(&program, &arguments).unwrap(), first);
        assert_eq!(identity(&scratch.path().join("absent"), &arguments), None);
    }
}
