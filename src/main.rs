//! `verify`: parse, dispatch, exit code.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match verify::cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return verify::usage_exit(&error),
    };
    ExitCode::from(verify::run(&cli))
}
