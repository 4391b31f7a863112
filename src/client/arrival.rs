//! When bytes reached this machine. The kernel of Linux stamps what arrives on a TCP
//! socket (`SO_TIMESTAMPNS`); a client that comes late to read, because two hundred
//! streams became readable at once or a core was busy, then still knows when they came.
//! Elsewhere, and where the kernel says nothing, it is the time of reading.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A read that also tells how long its last bytes had lain in the kernel.
pub(crate) trait TimedRead: AsyncRead {
    /// Reads as [`AsyncRead::poll_read`]; the answer is the wait, zero where none is known.
    fn poll_timed_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<Duration>> {
        self.poll_read(context, buffer).map_ok(|()| Duration::ZERO)
    }
}

#[cfg(unix)]
impl TimedRead for tokio::net::UnixStream {}

#[cfg(target_os = "linux")]
pub(crate) use linux::{Timed, timed};
#[cfg(not(target_os = "linux"))]
pub(crate) use plain::{Timed, timed};

#[cfg(not(target_os = "linux"))]
mod plain {
    use tokio::net::TcpStream;

    /// A TCP socket as this system reads it best.
    pub(crate) type Timed = TcpStream;

    impl super::TimedRead for TcpStream {}

    /// See [`Timed`].
    ///
    /// # Errors
    /// None here.
    pub(crate) fn timed(stream: TcpStream) -> std::io::Result<Timed> {
        Ok(stream)
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use super::*;
    use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
    use std::io::{IoSlice, IoSliceMut, Read, Write};
    use std::net::{Shutdown, TcpStream};
    use std::os::fd::AsRawFd;
    use std::task::ready;
    use std::time::{SystemTime, UNIX_EPOCH};
    use tokio::io::unix::AsyncFd;

    /// A stamp further back than this was made before the clock of the wall was set.
    const LONGEST: Duration = Duration::from_secs(5);

    /// A TCP socket as this system reads it best.
    pub(crate) type Timed = StampedTcp;

    /// A TCP socket whose reads are stamped by the kernel.
    #[derive(Debug)]
    pub(crate) struct StampedTcp {
        socket: AsyncFd<TcpStream>,
        /// Room for the stamp; none when the kernel does not stamp this socket.
        space: Option<Vec<u8>>,
    }

    /// See [`Timed`].
    ///
    /// # Errors
    /// The socket cannot be watched.
    pub(crate) fn timed(stream: tokio::net::TcpStream) -> io::Result<Timed> {
        let socket = stream.into_std()?;
        let stamping = setsockopt(&socket, sockopt::ReceiveTimestampns, &true).is_ok();
        let space = stamping.then(|| nix::cmsg_space!(nix::sys::time::TimeSpec));
        #[expect(unsafe_code, reason = "a TcpStream owns its descriptor and keeps it until it is dropped")]
        // SAFETY: the descriptor is open, and the same one as long as the stream lives.
        let socket = unsafe { AsyncFd::register(socket) }?;
        Ok(StampedTcp { socket, space })
    }

    /// Reads what there is: bytes, and how long the last of them had lain in the kernel.
    /// The stamp is of the wall clock, and so is the time that it is compared with, right
    /// after the read: what comes out is a span, and a clock that is set now and then
    /// disturbs no other figure.
    fn receive(
        mut socket: &TcpStream,
        buffer: &mut [u8],
        space: Option<&mut Vec<u8>>,
    ) -> io::Result<(usize, Duration)> {
        let Some(space) = space else { return Ok((socket.read(buffer)?, Duration::ZERO)) };
        let mut pieces = [IoSliceMut::new(buffer)];
        let message = recvmsg::<()>(socket.as_raw_fd(), &mut pieces, Some(space), MsgFlags::MSG_DONTWAIT)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let stamp = message.cmsgs().ok().and_then(|mut all| {
            all.find_map(|message| match message {
                ControlMessageOwned::ScmTimestampns(at) => Some(Duration::from(at)),
                _ => None,
            })
        });
        let waited = stamp.and_then(|stamp| now.checked_sub(stamp)).filter(|waited| *waited < LONGEST);
        Ok((message.bytes, waited.unwrap_or_default()))
    }

    impl TimedRead for StampedTcp {
        fn poll_timed_read(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<Duration>> {
            let this = self.get_mut();
            loop {
                let mut ready = ready!(this.socket.poll_read_ready(context))?;
                let unfilled = buffer.initialize_unfilled();
                let room = unfilled.len();
                match ready.try_io(|socket| receive(socket.get_ref(), unfilled, this.space.as_mut())) {
                    Ok(read) => {
                        let (count, waited) = read?;
                        // Fewer bytes than there was room for: the socket is empty, and
                        // the next read would only ask to hear the same.
                        if count > 0 && count < room {
                            ready.clear_ready();
                        }
                        buffer.advance(count);
                        return Poll::Ready(Ok(waited));
                    }
                    Err(_would_block) => {}
                }
            }
        }
    }

    impl AsyncRead for StampedTcp {
        fn poll_read(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            self.poll_timed_read(context, buffer).map_ok(drop)
        }
    }

    impl StampedTcp {
        fn poll_with(
            &self,
            context: &mut Context<'_>,
            mut write: impl FnMut(&TcpStream) -> io::Result<usize>,
        ) -> Poll<io::Result<usize>> {
            loop {
                let mut ready = ready!(self.socket.poll_write_ready(context))?;
                if let Ok(written) = ready.try_io(|socket| write(socket.get_ref())) {
                    return Poll::Ready(written);
                }
            }
        }
    }

    impl AsyncWrite for StampedTcp {
        fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.poll_with(context, |mut socket| socket.write(bytes))
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            pieces: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.poll_with(context, |mut socket| socket.write_vectored(pieces))
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(self.socket.get_ref().shutdown(Shutdown::Write))
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use std::time::Instant;
        use tokio::io::{AsyncReadExt, AsyncWriteExt};

        #[tokio::test]
        async fn what_lay_in_the_kernel_is_dated_back_to_its_arrival() {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let client = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (mut server, _) = listener.accept().await.unwrap();
            let mut client = timed(client).unwrap();
            let sent = Instant::now();
            server.write_all(b"token").await.unwrap();
            // Longer than any scheduling of a busy machine would explain away.
            std::thread::sleep(Duration::from_millis(80));
            let mut bytes = [0u8; 64];
            let mut buffer = ReadBuf::new(&mut bytes);
            let waited = std::future::poll_fn(|context| Pin::new(&mut client).poll_timed_read(context, &mut buffer))
                .await
                .unwrap();
            assert_eq!(buffer.filled(), b"token");
            assert!(waited >= Duration::from_millis(80) - Duration::from_millis(20), "{waited:?}");
            assert!(waited <= sent.elapsed(), "{waited:?}");
        }

        #[tokio::test]
        async fn long_answers_and_the_end_come_through() {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let client = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (mut server, _) = listener.accept().await.unwrap();
            let mut client = timed(client).unwrap();
            let long: Vec<u8> = (0..3_000_000u32).map(|i| i as u8).collect();
            let sending = long.clone();
            tokio::spawn(async move {
                server.write_all(&sending).await.unwrap();
                let mut said = Vec::new();
                server.read_to_end(&mut said).await.unwrap();
                server.write_all(&said).await.unwrap();
            });
            let mut read = vec![0; long.len()];
            client.read_exact(&mut read).await.unwrap();
            assert!(read == long);
            client.write_all(&long).await.unwrap();
            client.shutdown().await.unwrap();
            let mut back = Vec::new();
            client.read_to_end(&mut back).await.unwrap();
            assert!(back == long);
        }
    }
}
