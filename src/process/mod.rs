//! Other people's processes: started by a guardian that outlives us just long enough to
//! stop them. Only this module, the answers stage and the provisioner start programs.

mod guarded;
#[cfg(unix)]
pub mod guardian;
mod log;
pub mod proc_tree;
mod protocol;

pub use guarded::{Exit, Guarded, State, StopKind, Stopped};
pub use log::{Redactor, clean_log};
pub use protocol::LaunchSpec;
