//! A server in this process that sends at known times: what the client should have seen.
//! It serves on a thread of its own, and keeps for every request when it arrived and when
//! each token was written.

use crate::client::arrival::{Timed, TimedRead, timed};
use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// When tokens are sent, counted from the arrival of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// To the first token.
    pub ttft: Duration,
    /// Between tokens.
    pub itl: Duration,
    /// Tokens of an answer.
    pub tokens: u32,
}

/// What happened to one request, since the epoch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Truth {
    /// The request was in the kernel of this machine.
    pub arrived: Duration,
    /// Just before each token was written.
    pub written: Vec<Duration>,
}

type Log = Arc<Mutex<HashMap<String, Truth>>>;

/// The running server; it ends when this is dropped.
#[derive(Debug)]
pub struct TruthServer {
    port: u16,
    log: Log,
    _stop: oneshot::Sender<()>,
}

/// What a request must carry so that it is found in the log: `{MARK}name `.
pub const MARK: &str = "truth-id ";

impl TruthServer {
    /// Starts serving on a free port of the loopback device.
    ///
    /// # Errors
    /// There is no port, or no thread.
    pub fn start(schedule: Schedule, epoch: Instant) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let log = Log::default();
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let serving = Arc::clone(&log);
        std::thread::Builder::new().name("truth".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    // Either the listener fails, and the client's requests say so, or the run is over.
                    _ = serve(listener, schedule, epoch, &serving) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(TruthServer { port, log, _stop: stop })
    }

    /// Its address.
    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What happened to the request of this name.
    pub fn truth(&self, name: &str) -> Option<Truth> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

async fn serve(listener: std::net::TcpListener, schedule: Schedule, epoch: Instant, log: &Log) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let log = Arc::clone(log);
        connections.spawn(async move { converse(stream, schedule, epoch, &log).await });
    }
}

/// Serves one connection until the client closes it.
async fn converse(stream: TcpStream, schedule: Schedule, epoch: Instant, log: &Log) -> io::Result<()> {
    let mut stream = timed(stream)?;
    let mut buffer = Vec::new();
    loop {
        let Some((arrived, name)) = next_request(&mut stream, &mut buffer, epoch).await? else { return Ok(()) };
        let truth = answer(&mut stream, schedule, epoch, arrived).await?;
        // Before the end goes out: who has seen it may ask for the truth at once.
        log.lock().unwrap_or_else(PoisonError::into_inner).insert(name, truth);
        finish(&mut stream, schedule.tokens).await?;
    }
}

/// Reads one request; `None` at the end of the connection.
async fn next_request(
    stream: &mut Timed,
    buffer: &mut Vec<u8>,
    epoch: Instant,
) -> io::Result<Option<(Duration, String)>> {
    let mut arrived = Duration::ZERO;
    loop {
        if let Some(length) = whole_request(buffer) {
            let name = name_of(&buffer[..length]);
            buffer.drain(..length);
            return Ok(Some((arrived, name)));
        }
        let mut bytes = [0u8; 8192];
        let mut read = ReadBuf::new(&mut bytes);
        let waited = poll_fn(|context| Pin::new(&mut *stream).poll_timed_read(context, &mut read)).await?;
        if read.filled().is_empty() {
            return Ok(None);
        }
        arrived = epoch.elapsed().saturating_sub(waited);
        buffer.extend_from_slice(read.filled());
    }
}

/// Bytes of the first request in the buffer, when it is there to its end.
fn whole_request(buffer: &[u8]) -> Option<usize> {
    let head = memchr::memmem::find(buffer, b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&buffer[..head]).ok()?;
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let whole = head + length.unwrap_or(0);
    (buffer.len() >= whole).then_some(whole)
}

fn name_of(request: &[u8]) -> String {
    let text = String::from_utf8_lossy(request);
    let name = text.split_once(MARK).map_or("", |(_, rest)| rest);
    name.chars().take_while(char::is_ascii_alphanumeric).collect()
}

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
/// As long as what real servers send for a token.
const TOKEN: &str = "data: {\"id\":\"chatcmpl-calibration-0000000000000000\",\"object\":\"chat.completion.chunk\",\
                     \"created\":1700000000,\"model\":\"calibration\",\"choices\":[{\"index\":0,\"delta\":\
                     {\"content\":\" tok\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n";

/// Sends the tokens of an answer at their times.
async fn answer(stream: &mut Timed, schedule: Schedule, epoch: Instant, arrived: Duration) -> io::Result<Truth> {
    stream.write_all(HEAD).await?;
    let event = chunk(TOKEN);
    let mut truth = Truth { arrived, written: Vec::with_capacity(schedule.tokens as usize) };
    for index in 0..schedule.tokens {
        let due = epoch + arrived + schedule.ttft + schedule.itl * index;
        tokio::time::sleep_until(due.into()).await;
        truth.written.push(epoch.elapsed());
        stream.write_all(&event).await?;
    }
    Ok(truth)
}

/// Ends an answer.
async fn finish(stream: &mut Timed, tokens: u32) -> io::Result<()> {
    let end = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\n\
         data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":{tokens}}}}}\n\ndata: [DONE]\n\n"
    );
    let mut last = chunk(&end);
    last.extend_from_slice(b"0\r\n\r\n");
    stream.write_all(&last).await
}

fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_when_it_is_whole() {
        let request = b"POST / HTTP/1.1\r\nContent-Length: 12\r\n\r\ntruth-id a1 GET";
        assert_eq!(whole_request(&request[..40]), None);
        let length = whole_request(request).unwrap();
        assert_eq!((length, name_of(&request[..length]).as_str()), (request.len() - 3, "a1"));
    }
}
