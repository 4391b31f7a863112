//! `verify init`.

use crate::cli::{Cli, InitArgs};
use crate::config::FILE_NAME;
use crate::error::RunError;
use crate::model::Localized;
use crate::{Screen, fsx, roots};

/// A file with every key that users change, each commented out with its default.
const TEMPLATE: &str = include_str!("init.toml");

/// Writes or prints a commented `verify.toml`.
///
/// # Errors
/// The file exists, or cannot be written.
pub(crate) fn run(args: &InitArgs, cli: &Cli, screen: &Screen<'_>) -> Result<u8, RunError> {
    if args.print {
        screen.print(TEMPLATE);
        return Ok(0);
    }
    let (cwd, _) = roots(cli)?;
    let path = cli.global.root.as_ref().map_or(cwd.clone(), |root| cwd.join(root)).join(FILE_NAME);
    if path.exists() && !args.force {
        return Err(RunError::usage(
            Localized::both(format!("{} exists", path.display()), format!("{} 已存在", path.display())),
            Localized::both(
                "give --force to replace it, or --print to look at the template",
                "用 --force 覆盖，或用 --print 查看模板",
            ),
        ));
    }
    fsx::write_atomic(&path, TEMPLATE.as_bytes()).map_err(|error| RunError::file(&path, error))?;
    screen.print(&format!("{} {}\n", Localized::both("wrote", "已写入").get(screen.lang), path.display()));
    Ok(0)
}
