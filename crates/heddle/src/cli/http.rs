//! `--http` as its flags say it. Reads files and the environment, and listens nowhere.

use std::path::{Path, PathBuf};

use clap::Args;
use observe::http::endpoint::{Endpoint, Token};
use observe::http::place::Place;
use wire::TrustedFile;
use wire::server::{TlsFiles, server_tls};

/// Where the token is, if no file has it. Never on the command line: others can see that.
pub const TOKEN: &str = "HEDDLE_HTTP_TOKEN";
/// A shorter one can be guessed.
const TOKEN_BYTES_MIN: usize = 16;

/// Where a channel is shown.
#[derive(Clone, Debug, Default, Args)]
pub struct HttpArgs {
    /// Serve the dashboard at http://HOST:PORT/ and metrics for Prometheus at /metrics
    ///
    /// An address that other machines can reach needs a token (HEDDLE_HTTP_TOKEN or --http-token-file) and TLS (--http-cert, --http-key).
    /// unix:PATH is a socket for the same user, for heddle top and heddle status.
    #[arg(long, value_name = "HOST:PORT")]
    pub http: Option<Place>,
    /// File with the token that clients must send, 16 characters or more; default: HEDDLE_HTTP_TOKEN
    #[arg(long, value_name = "FILE", requires = "http")]
    pub http_token_file: Option<PathBuf>,
    /// TLS for --http: this machine's certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "http", requires = "http_key")]
    pub http_cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE", requires = "http", requires = "http_cert")]
    pub http_key: Option<PathBuf>,
}

/// What is wrong with the flags, or with what they name.
pub type Problem = String;

impl HttpArgs {
    /// `None`: nothing is to be shown.
    ///
    /// # Errors
    /// A file that cannot be read; other machines can reach the address, and it has no token or no TLS.
    pub fn listen(&self) -> Result<Option<Endpoint>, Problem> {
        let Some(place) = self.http.clone() else { return Ok(None) };
        let environment = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
        let token = token(self.http_token_file.as_deref(), environment)?;
        let tls = match (&self.http_cert, &self.http_key) {
            (Some(cert), Some(key)) => {
                let files = TlsFiles { cert: cert.clone(), key: key.clone(), ca: None };
                Some(server_tls(&files).map_err(|error| format!("--http: {error}"))?)
            }
            _ => None,
        };
        if !place.is_local() && (token.is_none() || tls.is_none()) {
            return Err(format!(
                "--http {place} can be reached from other machines: it needs a token ({TOKEN} or --http-token-file FILE) and TLS (--http-cert and \
                 --http-key). Or listen at 127.0.0.1, and forward it (ssh -L, a proxy)"
            ));
        }
        Ok(Some(Endpoint { place, token, tls }))
    }
}

fn token(file: Option<&Path>, environment: Option<String>) -> Result<Option<Token>, Problem> {
    let text = match file {
        Some(path) => {
            let file = TrustedFile::read(path, "token file").map_err(|error| error.to_string())?;
            if file.is_readable_by_all {
                let path = path.display();
                tracing::warn!("every user of this machine can read the token file {path}: chmod 600 {path}");
            }
            Some(file.text.trim().to_owned())
        }
        None => environment,
    };
    match text {
        Some(text) if text.len() < TOKEN_BYTES_MIN => {
            Err(format!("the token for --http has {} characters: it needs {TOKEN_BYTES_MIN} or more", text.len()))
        }
        text => Ok(text.as_deref().map(Token::new)),
    }
}

/// The same of this machine alone: where nobody is asked for a token.
pub fn parse_local_place(text: &str) -> Result<Place, String> {
    let place: Place = text.parse()?;
    if !place.is_local() {
        return Err(format!(
            "{place} can be reached from other machines, and nobody is asked for a password there: listen at 127.0.0.1, and forward it (ssh -L, a proxy with TLS)"
        ));
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_need_a_token_and_tls() {
        assert!(parse_local_place("localhost:9188").is_ok() && parse_local_place("0.0.0.0:9188").is_err());
        let of = |address: &str| HttpArgs { http: Some(address.parse().unwrap()), ..HttpArgs::default() };
        assert!(of("127.0.0.1:9188").listen().unwrap().is_some() && of("unix:h.sock").listen().unwrap().is_some());
        for open in ["0.0.0.0:9188", "10.0.0.1:9188", "[::]:9188"] {
            assert!(of(open).listen().err().is_some_and(|why| why.contains("needs a token")), "{open}");
        }
        assert!(HttpArgs::default().listen().unwrap().is_none());
        assert!(token(None, Some("short".to_owned())).is_err());
        assert!(token(None, Some("long enough to be one".to_owned())).unwrap().is_some());
    }
}
