//! From a profile to a command line.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;

/// Fills `{name}` in a template; an unknown name stays as it is, since JSON arguments
/// hold braces of their own.
pub fn fill(template: &str, values: &BTreeMap<&str, String>) -> String {
    values.iter().fold(template.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

/// A port that is free now.
///
/// # Errors
/// The system has none.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Whether somebody listens on a port of this machine.
pub fn port_in_use(port: u16) -> bool {
    matches!(TcpListener::bind(("127.0.0.1", port)), Err(error) if error.kind() == io::ErrorKind::AddrInUse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_and_json_survives() {
        let values = BTreeMap::from([("port", "80".to_owned()), ("model", "m".to_owned())]);
        let filled = ["--port={port}", "{model}", "{\"method\": \"ngram\"}"].map(|template| fill(template, &values));
        assert_eq!(filled, ["--port=80", "m", "{\"method\": \"ngram\"}"]);
    }

    #[test]
    fn a_listened_port_is_in_use() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert!(port_in_use(port));
        drop(socket);
        assert!(!port_in_use(port));
    }
}
