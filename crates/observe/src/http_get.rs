//! Asks a running server for its status over HTTP, as `--http` shows it. One request, one answer; it follows nothing.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use engine::failure::{Failure, FailureKind};
use serve::status::Snapshot;

use super::http::place::{connect_to_socket, socket_path};

const PATIENCE: Duration = Duration::from_secs(30);
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// Of `http://HOST:PORT` or `unix:PATH`.
pub fn status(url: &str) -> Result<Snapshot, Failure> {
    let refused = |why: String| {
        Failure::new(FailureKind::Refused, format!("{url}: {why}"))
            .remedy("give the --http of a running heddle serve: http://127.0.0.1:PORT")
    };
    let answer = match socket_path(url) {
        Some(path) => connect_to_socket(&path.map_err(refused)?, PATIENCE).and_then(|stream| ask(stream, "localhost")),
        None => {
            let address = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/');
            if address.contains('/') || !address.contains(':') {
                return Err(refused("expected http://HOST:PORT or unix:PATH".to_owned()));
            }
            ask_address(address)
        }
    };
    let answer = answer.map_err(|error| {
        Failure::new(FailureKind::ConnectionLost, format!("{url}: {error}"))
            .remedy("see whether heddle serve runs there with --http, and that the port can be reached")
    })?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| refused("this is no answer".to_owned()))?;
    let status = head.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        return Err(refused(format!("it answers {status:?}: a channel is not asked here, but with --to")));
    }
    serde_json::from_str(body).map_err(|error| refused(format!("it says something else: {error}")))
}

fn ask_address(address: &str) -> io::Result<String> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    ask(stream, address)
}

fn ask(stream: impl Read + Write, host: &str) -> io::Result<String> {
    get(stream, host, "/status.json", ANSWER_BYTES_MAX)
}

/// Head and body of the answer, or as much of it as may be.
pub(crate) fn get(
    mut stream: impl Read + Write,
    host: &str,
    resource: &str,
    answer_bytes_max: u64,
) -> io::Result<String> {
    // Of HTTP/1.0, so that the answer comes in one piece and ends with the connection.
    write!(stream, "GET {resource} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(answer_bytes_max).read_to_string(&mut answer)?;
    Ok(answer)
}
