//! Commands that are not stages, one file each.

pub(crate) mod backend;
pub(crate) mod bench;
pub(crate) mod calibrate;
pub(crate) mod compare;
pub(crate) mod experiment;
pub(crate) mod explain;
pub(crate) mod init;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod normalize;
pub(crate) mod report;
pub(crate) mod settings;

use crate::Screen;
use crate::cli::Cli;
use crate::results::v1;

/// `verify completions`.
pub(crate) fn completions(shell: clap_complete::Shell, screen: &Screen<'_>) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::public(), "verify", &mut script);
    screen.print(&String::from_utf8_lossy(&script));
    0
}

/// `verify schema --print-schema`.
pub(crate) fn print_schema(screen: &Screen<'_>) -> u8 {
    screen.print(&v1::to_text(&v1::json_schema().to_value()));
    0
}
