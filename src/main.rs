//! `verify`: parse, dispatch, exit code.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    match verify::parse(&args) {
        Ok(cli) => ExitCode::from(verify::run(&cli)),
        Err(code) => code,
    }
}
