//! Worker threads whose stacks are deep enough for hostile input.

use crate::error::RunError;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Stack of one worker (bytes). Only reserved: memory is used when a text is deep.
const STACK: usize = 512 << 20;
/// Stacks of all workers together (bytes).
const ALL_STACKS: usize = 2 << 30;
/// Below this nothing sensible can be judged (bytes).
const SMALLEST: usize = 8 << 20;

/// A pool of as many workers as there are cores, and the bytes of stack that each may
/// use. Where address space is scarce (`ulimit -v`), stacks and then workers get fewer;
/// what is too deep for the stack is then refused, not crashed on.
///
/// # Errors
/// Not even one small thread can be started.
pub(super) fn build() -> Result<(ThreadPool, usize), RunError> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let room = address_space().map_or(ALL_STACKS, |limit| ALL_STACKS.min(limit / 4));
    let mut workers = cores.min((room / SMALLEST).max(1));
    let mut stack = (room / workers).clamp(SMALLEST, STACK);
    loop {
        let builder = ThreadPoolBuilder::new()
            .num_threads(workers)
            .stack_size(stack)
            .thread_name(|index| format!("static-{index}"));
        match builder.build() {
            // A part of the stack is the caller's: the pool itself, reading, the report.
            Ok(pool) => return Ok((pool, stack - (SMALLEST / 4))),
            Err(_) if stack > SMALLEST => stack = (stack / 2).max(SMALLEST),
            Err(_) if workers > 1 => workers = 1,
            Err(error) => return Err(RunError::file("threads", std::io::Error::other(error.to_string()))),
        }
    }
}

/// The limit on address space of this process, if there is one (bytes).
#[cfg(unix)]
fn address_space() -> Option<usize> {
    use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
    let (soft, _) = getrlimit(Resource::RLIMIT_AS).ok()?;
    (soft != RLIM_INFINITY).then(|| usize::try_from(soft).unwrap_or(usize::MAX))
}

#[cfg(not(unix))]
fn address_space() -> Option<usize> {
    None
}
