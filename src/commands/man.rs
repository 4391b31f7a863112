//! `verify man`: pages made from the command line itself.

use crate::Screen;
use crate::cli::{Cli, ManArgs};
use crate::config::nearest;
use crate::error::RunError;
use crate::fsx;
use crate::model::Localized;
use std::path::Path;

/// Prints one page, or writes all of them into a folder.
///
/// # Errors
/// There is no such command, or a page cannot be written.
pub(crate) fn run(args: &ManArgs, screen: &Screen<'_>) -> Result<u8, RunError> {
    let mut root = Cli::public();
    root.build();
    match (&args.out_dir, &args.command) {
        (Some(folder), _) => write_all(&root, folder)?,
        (None, None) => screen.print(&page(&root)),
        (None, Some(name)) => {
            let names = root.get_subcommands().map(clap::Command::get_name);
            let command = root.find_subcommand(name).ok_or_else(|| unknown(name, names))?;
            screen.print(&page(command));
        }
    }
    Ok(0)
}

/// One file per command and command of a command, as packagers install them.
fn write_all(command: &clap::Command, folder: &Path) -> Result<(), RunError> {
    let path = folder.join(format!("{}.1", title(command)));
    fsx::write_atomic(&path, page(command).as_bytes()).map_err(|error| RunError::file(&path, error))?;
    command.get_subcommands().try_for_each(|command| write_all(command, folder))
}

/// `verify-backend-list`
fn title(command: &clap::Command) -> String {
    command.get_display_name().unwrap_or(command.get_name()).to_owned()
}

fn page(command: &clap::Command) -> String {
    let mut page = Vec::new();
    // Writing to memory cannot fail.
    let _ = clap_mangen::Man::new(command.clone().name(title(command))).render(&mut page);
    String::from_utf8_lossy(&page).into_owned()
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> RunError {
    let hint = match nearest(name, known) {
        Some(known) => Localized::both(format!("did you mean `{known}`?"), format!("是不是想写 `{known}`？")),
        None => Localized::both("`verify --help` lists every command", "`verify --help` 会列出所有命令"),
    };
    RunError::usage(Localized::both(format!("there is no command `{name}`"), format!("没有命令 `{name}`")), hint)
}
