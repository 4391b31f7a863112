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

/// This program, to be started once more. On Linux the file that runs, also when another
/// was put in its place meanwhile.
///
/// # Errors
/// The system does not tell.
pub fn this_program() -> std::io::Result<std::path::PathBuf> {
    let running = std::path::PathBuf::from("/proc/self/exe");
    if cfg!(target_os = "linux") && running.exists() { Ok(running) } else { std::env::current_exe() }
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
