//! A scripted hub: the routes of Hugging Face and ModelScope for one model, every answer
//! of which a test can bend, and a record of everything that was asked.

use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The commit that the model stands at.
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// One request, as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Path with query.
    pub path: String,
    /// Headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// How often this path was asked for before.
    pub before: usize,
}

impl Asked {
    /// First byte of the part that is wanted.
    pub fn from(&self) -> Option<usize> {
        self.headers.get("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }

    /// Whether it is for the content of this file.
    pub fn is_file(&self, name: &str) -> bool {
        self.path.contains("/resolve/") && self.path.ends_with(&format!("/{name}"))
            || self.path.contains("FilePath=") && self.path.ends_with(&format!("={name}"))
    }
}

/// One answer.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The connection ends after so many bytes of the body.
    pub cut: Option<usize>,
    /// No length is stated: the body ends with its last chunk.
    pub chunked: bool,
    /// Wait between pieces of the body.
    pub slow: Option<Duration>,
}

impl Answer {
    pub fn status(status: u16) -> Self {
        Answer { status, ..Answer::default() }
    }

    pub fn header(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }
}

/// Bends the usual answer; `None` leaves it.
type Script = dyn Fn(&Asked, &Answer) -> Option<Answer> + Send + Sync;

/// The server. It lives as long as the test program.
pub struct Hub {
    pub address: String,
    log: Arc<Mutex<Vec<Asked>>>,
}

impl Hub {
    /// A hub with one model, whatever it is called.
    pub fn serve(files: Vec<(&'static str, Vec<u8>)>) -> Self {
        Hub::scripted(files, |_, _| None)
    }

    /// A hub that answers as `script` wants.
    pub fn scripted(
        files: Vec<(&'static str, Vec<u8>)>,
        script: impl Fn(&Asked, &Answer) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let log: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (shared, files, script) = (Arc::clone(&log), Arc::new(files), Arc::new(script));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, files, script) = (Arc::clone(&shared), Arc::clone(&files), Arc::clone(&script));
                // A client that went away is no fault of the hub.
                thread::spawn(move || converse(&stream, &log, &files, script.as_ref()));
            }
        });
        Hub { address, log }
    }

    /// Everything that was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.log.lock().unwrap().clone()
    }

    /// What was asked for the content of one file.
    pub fn asked_for(&self, name: &str) -> Vec<Asked> {
        self.asked().into_iter().filter(|asked| asked.is_file(name)).collect()
    }
}

fn converse(
    stream: &TcpStream,
    log: &Mutex<Vec<Asked>>,
    files: &[(&'static str, Vec<u8>)],
    script: &Script,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.to_owned()),
                None => break,
            };
        }
        let asked = {
            let mut log = log.lock().unwrap();
            let before = log.iter().filter(|earlier| earlier.path == path).count();
            let asked = Asked { path, headers, before };
            log.push(asked.clone());
            asked
        };
        let usual = usual(&asked, files);
        let answer = script(&asked, &usual).unwrap_or(usual);
        if !send(stream, &answer)? {
            stream.shutdown(std::net::Shutdown::Both)?;
            return Ok(());
        }
    }
}

/// Sends an answer; `false`: the connection is to end.
fn send(mut stream: &TcpStream, answer: &Answer) -> std::io::Result<bool> {
    let mut head = format!("HTTP/1.1 {} X\r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if answer.chunked {
        head.push_str("transfer-encoding: chunked\r\n\r\n");
    } else {
        head.push_str(&format!("content-length: {}\r\n\r\n", answer.body.len()));
    }
    stream.write_all(head.as_bytes())?;
    let body = &answer.body[..answer.cut.unwrap_or(answer.body.len()).min(answer.body.len())];
    for piece in body.chunks(if answer.slow.is_some() { 1 << 10 } else { 1 << 16 }) {
        if answer.chunked {
            write!(stream, "{:x}\r\n", piece.len())?;
        }
        stream.write_all(piece)?;
        if answer.chunked {
            stream.write_all(b"\r\n")?;
        }
        answer.slow.into_iter().for_each(thread::sleep);
    }
    if answer.chunked && answer.cut.is_none() {
        stream.write_all(b"0\r\n\r\n")?;
    }
    Ok(answer.cut.is_none())
}

/// What a hub without faults answers.
fn usual(asked: &Asked, files: &[(&'static str, Vec<u8>)]) -> Answer {
    let json = |value: Value| Answer { body: value.to_string().into_bytes(), ..Answer::status(200) };
    if asked.path.starts_with("/api/models/") {
        return json(hugging_face_listing(files));
    }
    if asked.path.contains("/repo/files?") {
        return json(model_scope_listing(files));
    }
    let Some((_, content)) = files.iter().find(|(name, _)| asked.is_file(name)) else { return Answer::status(404) };
    let etag = format!("\"{}\"", sha256(content));
    let whole = Answer { body: content.clone(), ..Answer::status(200) }.header("etag", &etag);
    match asked.from() {
        Some(from) if asked.headers.get("if-range").is_none_or(|wanted| *wanted == etag) && from < content.len() => {
            let range = format!("bytes {from}-{}/{}", content.len() - 1, content.len());
            Answer { status: 206, body: content[from..].to_vec(), ..whole }.header("content-range", range)
        }
        _ => whole,
    }
}

pub fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn git_sha1(content: &[u8]) -> String {
    let mut hasher = Sha1::new();
    hasher.update(format!("blob {}\0", content.len()));
    hasher.update(content);
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Large files are of LFS and have a SHA-256, small ones git's digest.
pub fn is_large(name: &str) -> bool {
    name.ends_with(".safetensors") || name.ends_with(".gguf") || name.ends_with(".bin")
}

fn hugging_face_listing(files: &[(&'static str, Vec<u8>)]) -> Value {
    let siblings: Vec<Value> = files
        .iter()
        .map(|(name, content)| {
            let mut file = json!({"rfilename": name, "size": content.len(), "blobId": git_sha1(content)});
            if is_large(name) {
                file["lfs"] = json!({"sha256": sha256(content), "size": content.len(), "pointerSize": 134});
            }
            file
        })
        .collect();
    json!({"id": "o/n", "sha": COMMIT, "gated": false, "siblings": siblings})
}

fn model_scope_listing(files: &[(&'static str, Vec<u8>)]) -> Value {
    let files: Vec<Value> = files
        .iter()
        .map(|(name, content)| json!({"Path": name, "Type": "blob", "Size": content.len(), "Sha256": sha256(content)}))
        .collect();
    json!({"Code": 200, "Success": true, "Data": {"Files": files, "LatestCommitter": {"Id": COMMIT}}})
}

/// A safetensors file of so many bytes of data.
pub fn safetensors(bytes: usize) -> Vec<u8> {
    let header = format!("{{\"w\":{{\"dtype\":\"U8\",\"shape\":[{bytes}],\"data_offsets\":[0,{bytes}]}}}}");
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.extend((0..bytes).map(|number| (number % 251) as u8));
    file
}

/// A GGUF file of so many bytes, as far as anybody looks here.
pub fn gguf(bytes: usize) -> Vec<u8> {
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.resize(bytes.max(32), 0);
    file
}

/// A model as a server wants it, among other files.
pub fn model() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        (".gitattributes", b"*.safetensors filter=lfs".to_vec()),
        ("README.md", b"# a model".to_vec()),
        ("config.json", br#"{"model_type": "llama", "dtype": "bfloat16"}"#.to_vec()),
        ("tokenizer.json", b"{}".to_vec()),
        ("model.safetensors", safetensors(300_000)),
        ("pytorch_model.bin", vec![0; 64]),
        ("onnx/model.onnx", vec![0; 64]),
    ]
}
