//! Asks one channel, or a `heddle run` for all of its channels, for the last frame, over HTTP with or without TLS, or through a socket of this machine. One request a connection; it waits for nobody longer than some seconds.

use std::fmt;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde::Deserialize;

use crate::http::place::{connect_to_socket, socket_path};
use crate::view::frame::Frame;

/// Of `--http` where a URL says none.
pub const PORT: u16 = 9104;
const PATIENCE: Duration = Duration::from_secs(3);
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// Authorities of certificates, where the system has them.
const SYSTEM_CA: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// `http://HOST[:PORT]`, `https://…` or `unix:PATH`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Network { is_tls: bool, host: String, port: u16 },
    Socket(PathBuf),
}

impl Address {
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = socket_path(text) {
            return path.map(Self::Socket);
        }
        let (is_tls, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return Err(format!("{text:?}: expected http://HOST:PORT, https://HOST:PORT or unix:PATH")),
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(
                "a token does not belong into a URL: others can see it. Use HEDDLE_HTTP_TOKEN or --http-token-file"
                    .to_owned(),
            );
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && !port.ends_with(']') => {
                (host, port.parse().map_err(|_| format!("{port:?} is no port"))?)
            }
            _ => (authority, PORT),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() { Err(format!("{text:?} names no host")) } else { Ok(Self::Network { is_tls, host, port }) }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network { host, port, .. } => write!(f, "{host}:{port}"),
            Self::Socket(path) => path.display().fmt(f),
        }
    }
}

/// Who is asked, and how.
#[derive(Clone)]
pub struct Client {
    pub address: Address,
    token: Option<String>,
    tls: Arc<ClientConfig>,
}

impl Client {
    pub fn new(address: Address, token: Option<String>, tls: Arc<ClientConfig>) -> Self {
        Self { address, token, tls }
    }

    /// The last frame of a channel, or those of all channels of a `heddle run` that run.
    pub fn frames(&self) -> Result<Vec<Frame>> {
        match self.get("/frame")? {
            Some(text) => Ok(vec![serde_json::from_str(&text).context("not a heddle's frame")?]),
            None => {
                let text = self.get("/frames")?.context("answers, and shows no channel")?;
                let members: Vec<Member> = serde_json::from_str(&text).context("not a heddle's frames")?;
                Ok(members.into_iter().filter_map(Member::frame).collect())
            }
        }
    }

    /// `None`: there is nothing of this name.
    fn get(&self, resource: &str) -> Result<Option<String>> {
        let (is_tls, host, port) = match &self.address {
            Address::Network { is_tls, host, port } => (*is_tls, host, *port),
            Address::Socket(path) => {
                let stream = connect_to_socket(path, PATIENCE)
                    .with_context(|| format!("{}: does not answer", path.display()))?;
                return self.ask(stream, "localhost", resource);
            }
        };
        let found = (host.as_str(), port).to_socket_addrs().with_context(|| host.clone())?;
        let mut last = None;
        let mut stream = None;
        for address in found {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(connected) => {
                    stream = Some(connected);
                    break;
                }
                Err(error) => last = Some(error),
            }
        }
        let Some(stream) = stream else {
            bail!("does not answer: {}", last.map_or_else(|| "no address".to_owned(), |error| error.to_string()));
        };
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let authority = format!("{host}:{port}");
        if is_tls {
            let name = ServerName::try_from(host.clone()).context("the host's name")?;
            let connection = ClientConnection::new(Arc::clone(&self.tls), name)?;
            self.ask(StreamOwned::new(connection, stream), &authority, resource)
        } else {
            self.ask(stream, &authority, resource)
        }
    }

    fn ask(&self, mut stream: impl Read + Write, authority: &str, resource: &str) -> Result<Option<String>> {
        let token = self.token.as_ref().map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
        // HTTP/1.0: the answer is one piece and ends with the connection.
        write!(stream, "GET {resource} HTTP/1.0\r\nHost: {authority}\r\n{token}\r\n")?;
        stream.flush()?;
        let mut answer = Vec::new();
        match stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer) {
            // An end of TLS without its farewell: JSON that is not whole is found out below.
            Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => return Err(error.into()),
            _ => {}
        }
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP answer")?;
        let status = head.split(' ').nth(1).unwrap_or_default();
        ensure!(status != "401", "the token is missing or wrong (HEDDLE_HTTP_TOKEN, --http-token-file)");
        if status == "404" {
            return Ok(None);
        }
        ensure!(status == "200", "answers {}", head.lines().next().unwrap_or_default());
        Ok(Some(body.to_owned()))
    }
}

/// Of a `heddle run`.
#[derive(Deserialize)]
struct Member {
    name: String,
    frame: Option<Frame>,
}

impl Member {
    /// Under the name that it has there: two channels may have one name.
    fn frame(self) -> Option<Frame> {
        let mut frame = self.frame?;
        frame.head.channel = self.name;
        Some(frame)
    }
}

/// Who vouches for https: a file, or the system's authorities.
pub fn tls(ca: Option<&Path>) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    let system = SYSTEM_CA.iter().map(Path::new).find(|path| path.exists());
    if let Some(path) = ca.or(system) {
        let file = std::fs::read(path).with_context(|| path.display().to_string())?;
        for certificate in rustls_pemfile::certs(&mut file.as_slice()) {
            // Of the system's some may be too old to be read.
            let added =
                certificate.map_err(anyhow::Error::new).and_then(|one| roots.add(one).map_err(anyhow::Error::new));
            if ca.is_some() {
                added.with_context(|| path.display().to_string())?;
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let check = |text: &str, is_tls, host: &str, port| {
            assert_eq!(Address::parse(text), Ok(Address::Network { is_tls, host: host.to_owned(), port }), "{text}");
        };
        check("http://127.0.0.1:9200", false, "127.0.0.1", 9200);
        check("https://db1.example/", true, "db1.example", PORT);
        check("http://[::1]:9200/frame", false, "::1", 9200);
        check("http://[::1]", false, "::1", PORT);
        assert_eq!(Address::parse("unix:/run/h.sock"), Ok(Address::Socket("/run/h.sock".into())));
        for wrong in ["127.0.0.1:9200", "unix:", "http://", "http://db1:port", "ftp://db1", "http://any:token@db1"] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }
}
