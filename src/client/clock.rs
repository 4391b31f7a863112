//! Time stamps where bytes meet the socket. What happens between a socket and the task
//! that waits for its answer (queues of the runtime, decoding of the transport) is time
//! of this program, not of the server: so the stamp is taken in the read and in the
//! write themselves, and a read is dated back to when its bytes arrived.

use super::arrival::TimedRead;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Nothing written since [`SocketClock::expect_write`].
const NONE: u64 = u64::MAX;

/// When bytes were last read and first written, in nanoseconds since an epoch.
#[derive(Debug)]
pub(crate) struct SocketClock {
    epoch: Instant,
    read: AtomicU64,
    written: AtomicU64,
}

impl SocketClock {
    /// A clock that counts from `epoch`.
    pub(crate) fn new(epoch: Instant) -> Self {
        SocketClock { epoch, read: AtomicU64::new(0), written: AtomicU64::new(NONE) }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(NONE - 1)
    }

    /// The next write is the first of a request.
    pub(crate) fn expect_write(&self) {
        self.written.store(NONE, Ordering::Release);
    }

    /// Just before the first byte of the request was written; now, when none was.
    pub(crate) fn first_write(&self) -> Duration {
        match self.written.load(Ordering::Acquire) {
            NONE => self.epoch.elapsed(),
            at => Duration::from_nanos(at),
        }
    }

    /// When the last bytes that were read had arrived.
    pub(crate) fn last_read(&self) -> Duration {
        Duration::from_nanos(self.read.load(Ordering::Acquire))
    }

    fn about_to_write(&self) {
        if self.written.load(Ordering::Relaxed) == NONE {
            self.written.store(self.now(), Ordering::Release);
        }
    }

    /// Bytes were read that had lain in the kernel for so long. They came no earlier than
    /// those before them.
    fn has_read(&self, waited: Duration) {
        let waited = u64::try_from(waited.as_nanos()).unwrap_or(0);
        self.read.fetch_max(self.now().saturating_sub(waited), Ordering::AcqRel);
    }
}

/// A socket with a clock.
#[derive(Debug)]
pub(crate) struct Clocked<S> {
    inner: S,
    clock: Arc<SocketClock>,
}

impl<S> Clocked<S> {
    /// `inner`, stamping into `clock`.
    pub(crate) fn new(inner: S, clock: Arc<SocketClock>) -> Self {
        Clocked { inner, clock }
    }
}

impl<S: TimedRead + Unpin> AsyncRead for Clocked<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let waited = std::task::ready!(Pin::new(&mut self.inner).poll_timed_read(cx, buffer))?;
        if buffer.filled().len() > before {
            self.clock.has_read(waited);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Clocked<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.clock.about_to_write();
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.clock.about_to_write();
        Pin::new(&mut self.inner).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
