//! Other people's processes: started by a guardian that outlives us just long enough to
//! stop them. Only this module, the answers stage and the provisioner start programs.

mod ask;
mod guarded;
#[cfg(unix)]
mod guardian;
#[cfg(any(not(unix), test))]
mod guardian_portable;
mod log;
pub mod proc_tree;
mod protocol;
mod sweeper;

pub use ask::{ask, ask_both};
pub use guarded::{Exit, Guarded, State, StopKind, Stopped};
pub use log::{Redactor, clean_log};
pub use protocol::LaunchSpec;
pub use sweeper::{MARK, Sweeper};

use crate::model::Localized;
use std::io;
use std::path::PathBuf;

/// Linux without `/proc`: nothing can be watched, and this program not be found again.
#[derive(Debug, thiserror::Error)]
#[error("/proc is not mounted")]
struct NoProc;

/// This program, to be started once more. On Linux the file that runs, also when another
/// was put in its place meanwhile.
///
/// # Errors
/// The system does not tell.
pub fn this_program() -> io::Result<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    match cfg!(target_os = "linux") {
        true if running.exists() => Ok(running),
        true => std::env::current_exe().map_err(|_| io::Error::new(io::ErrorKind::NotFound, NoProc)),
        false => std::env::current_exe(),
    }
}

/// Why a process of ours could not be started, and what helps where that is not what
/// helps in general.
pub fn explain(error: &io::Error) -> (Localized, Option<Localized>) {
    if !error.get_ref().is_some_and(|inner| inner.is::<NoProc>()) {
        return (error.to_string().into(), None);
    }
    let help = Localized::both(
        "mount it (`mount -t proc proc /proc`): without it nobody could tell which processes a run leaves behind",
        "请先挂载（`mount -t proc proc /proc`）：没有它就无法得知一次运行遗留了哪些进程",
    );
    (Localized::both("/proc is not mounted", "没有挂载 /proc"), Some(help))
}

/// Runs the guardian of one server: reads a launch from standard input, reports on
/// standard output. Returns the exit code of the process.
pub fn guard() -> u8 {
    #[cfg(unix)]
    let ended = guardian::serve();
    #[cfg(not(unix))]
    let ended = guardian_portable::serve(std::io::BufReader::new(std::io::stdin()), std::io::stdout());
    u8::from(ended.is_err())
}

/// Runs the sweeper of a run. Returns the exit code of the process.
pub fn sweep() -> u8 {
    sweeper::serve()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Lang;

    #[test]
    fn a_missing_proc_is_named_in_both_languages_and_has_its_own_help() {
        let (cause, help) = explain(&io::Error::new(io::ErrorKind::NotFound, NoProc));
        assert_eq!((cause.get(Lang::En), cause.get(Lang::Zh)), ("/proc is not mounted", "没有挂载 /proc"));
        assert!(help.is_some_and(|help| help.get(Lang::Zh).contains("mount -t proc")));
        assert_eq!(explain(&io::Error::other("boom")), ("boom".to_owned().into(), None));
    }
}
