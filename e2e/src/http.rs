//! One request to a port of this machine, and the whole answer.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::Result;

/// Head and body of the answer. In HTTP/1.0 it ends with the connection.
pub fn get(port: u16, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
