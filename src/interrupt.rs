//! One interruption for the whole process: SIGINT, SIGTERM and SIGHUP set it, every
//! stage looks at it. Nothing exits from a signal handler.

use std::sync::Arc;
use tokio::sync::watch;

/// What has been asked of the process so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interruption {
    /// Signal number of the first signal; 0 when none came.
    pub signal: i32,
    /// How many signals came. The second one skips every grace period.
    pub count: u32,
}

impl Interruption {
    /// Name of the signal.
    pub fn name(self) -> &'static str {
        match self.signal {
            1 => "SIGHUP",
            2 => "SIGINT",
            15 => "SIGTERM",
            _ => "a signal",
        }
    }

    /// 128 + signal number, as shells have it.
    pub fn exit_code(self) -> i32 {
        128 + self.signal
    }
}

/// A handle that every stage holds.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<watch::Sender<Interruption>>);

impl Default for Cancel {
    fn default() -> Self {
        Cancel(Arc::new(watch::Sender::new(Interruption::default())))
    }
}

impl Cancel {
    /// The interruption, if there was one.
    pub fn get(&self) -> Option<Interruption> {
        Some(*self.0.borrow()).filter(|state| state.count > 0)
    }

    /// Whether there was one.
    pub fn is_set(&self) -> bool {
        self.0.borrow().count > 0
    }

    /// Waits for the `count`th signal.
    pub async fn wait(&self, count: u32) -> Interruption {
        let mut receiver = self.0.subscribe();
        // The sender lives in `self`, so the channel cannot close while we wait.
        match receiver.wait_for(|state| state.count >= count).await {
            Ok(state) => *state,
            Err(_) => std::future::pending().await,
        }
    }

    /// Records a signal.
    pub fn signal(&self, number: i32) {
        self.0.send_modify(|state| {
            if state.count == 0 {
                state.signal = number;
            }
            state.count += 1;
        });
    }

    /// Listens for signals on a thread of its own until the process ends.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub fn listen(&self) -> std::io::Result<()> {
        let cancel = self.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let guard = runtime.enter();
        let mut signals = Signals::new()?;
        drop(guard);
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            runtime.block_on(async {
                loop {
                    let number = signals.next().await;
                    cancel.signal(number);
                }
            });
        })?;
        Ok(())
    }
}

#[cfg(unix)]
struct Signals([(i32, tokio::signal::unix::Signal); 3]);

/// "File larger than allowed": unhandled it kills the process in the middle of a write;
/// handled, the write itself fails and can be reported. The number of Linux and macOS.
#[cfg(unix)]
const SIGXFSZ: i32 = 25;

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        // The handler stays installed when this is dropped, and that is all that is wanted.
        drop(signal(SignalKind::from_raw(SIGXFSZ))?);
        Ok(Signals([
            (2, signal(SignalKind::interrupt())?),
            (15, signal(SignalKind::terminate())?),
            (1, signal(SignalKind::hangup())?),
        ]))
    }

    async fn next(&mut self) -> i32 {
        let [(a, int), (b, term), (c, hup)] = &mut self.0;
        tokio::select! {
            _ = int.recv() => *a,
            _ = term.recv() => *b,
            _ = hup.recv() => *c,
        }
    }
}

#[cfg(not(unix))]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Signals(tokio::signal::windows::ctrl_c()?))
    }

    async fn next(&mut self) -> i32 {
        self.0.recv().await;
        2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_names_the_exit_code() {
        let cancel = Cancel::default();
        assert!(!cancel.is_set());
        cancel.signal(15);
        cancel.signal(2);
        let state = cancel.get().unwrap();
        assert_eq!((state.exit_code(), state.count, state.name()), (143, 2, "SIGTERM"));
    }
}
