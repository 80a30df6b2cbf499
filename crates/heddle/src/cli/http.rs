//! `--http` as its flags say it. Reads files and the environment, and listens nowhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args;
use observe::http::endpoint::{Endpoint, Token};
use observe::http::place::Place;
use serve::server::OwnCertificate;
use wire::TrustedFile;
use wire::server::{TlsFiles, server_tls};

use super::state_dir::state_dir;

/// Where the token is, if no file has it. Never on the command line: others can see that.
pub const TOKEN: &str = "HEDDLE_HTTP_TOKEN";
/// A shorter one can be guessed.
const TOKEN_BYTES_MIN: usize = 16;

/// Where a channel is shown.
#[derive(Clone, Debug, Default, Args)]
pub struct HttpArgs {
    /// Serve the dashboard at http://HOST:PORT/ and metrics for Prometheus at /metrics
    ///
    /// An address that other machines can reach needs a token (HEDDLE_HTTP_TOKEN or --http-token-file), and has TLS: with --http-cert and --http-key, else
    /// with a certificate that Heddle makes (heddle-http-cert.pem below $XDG_STATE_HOME/heddle or ~/.local/state/heddle).
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
        if !place.is_local() && token.is_none() {
            return Err(format!(
                "--http {place} can be reached from other machines: it needs a token ({TOKEN} or --http-token-file FILE). Or listen at 127.0.0.1, and \
                 forward it (ssh -L, a proxy)"
            ));
        }
        let files = match (&self.http_cert, &self.http_key) {
            (Some(cert), Some(key)) => Some(TlsFiles { cert: cert.clone(), key: key.clone(), ca: None }),
            _ if place.is_local() => None,
            _ => Some(own_certificate(&place)?),
        };
        let tls = files.map(|files| server_tls(&files)).transpose().map_err(|error| format!("--http: {error}"))?;
        Ok(Some(Endpoint { place, token, tls }))
    }
}

fn own_certificate(place: &Place) -> Result<TlsFiles, Problem> {
    let instead = |what: String| format!("--http {place} needs TLS: {what}; or name --http-cert and --http-key");
    let dir = state_dir().map_err(|error| instead(error.to_string()))?;
    fs::create_dir_all(&dir).map_err(|error| instead(format!("{}: {error}", dir.display())))?;
    let own = OwnCertificate::new(&dir, "heddle-http");
    own.renew(SystemTime::now()).map_err(|error| instead(error.to_string()))?;
    Ok(own.files())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_need_a_token() {
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
