//! `verify calibrate`: what this client gets wrong on this machine.

use crate::Screen;
use crate::bench::calibrate::{LONG, calibrate};
use crate::cli::{CalibrateArgs, Cli};
use crate::error::RunError;
use crate::model::Status;
use crate::render::{self, Format, HumanOptions};
use std::time::Instant;

/// Values that a 99th percentile needs.
const ENOUGH: u32 = 100;
/// Answers of one stream at most: a run should take seconds.
const MAX_ROUNDS: u32 = 4;

/// Measures the client's own error and shows it. An error above its limits fails.
///
/// # Errors
/// The server in this process cannot be started, or an output cannot be written.
pub(crate) fn run(args: &CalibrateArgs, cli: &Cli, screen: &Screen<'_>) -> Result<u8, RunError> {
    screen.format_of(&[Format::Human, Format::Json])?;
    let began = Instant::now();
    let ctx = crate::context(cli, screen, &[])?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| RunError::file("runtime", error))?;
    let phase = ctx.progress.start("calibrate", args.concurrency.len() as u64);
    let mut errors = Vec::new();
    for concurrency in &args.concurrency {
        phase.quiet_say(&format!("c={concurrency}"));
        let rounds = ENOUGH.div_ceil(*concurrency).min(MAX_ROUNDS);
        let measuring = async {
            tokio::select! {
                error = calibrate(*concurrency, rounds, LONG) => Some(error),
                _ = ctx.cancel.wait(1) => None,
            }
        };
        let Some(error) = runtime.block_on(measuring) else { break };
        errors.push(error.map_err(|error| RunError::file("127.0.0.1", error))?);
        phase.step(&format!("c={concurrency}"));
    }
    drop(phase);
    let within = errors.iter().all(|error| error.within_limits);
    let code = ctx.cancel.get().map_or(i32::from(!within), |state| state.exit_code());
    let status = if code == 0 { Status::Pass } else { Status::Fail };
    let json = render::render_json_calibration(&errors, status, code, began.elapsed());
    let human = |options: HumanOptions<'_>| render::bench::calibration(&errors, options);
    let text = |format, options: HumanOptions<'_>| match format {
        Format::Json => json.clone(),
        _ => human(options),
    };
    screen.emit(text, &ctx.root)?;
    Ok(u8::try_from(code).unwrap_or(1))
}
