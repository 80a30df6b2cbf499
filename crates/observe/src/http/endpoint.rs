//! Where `--http` listens, and what it needs where other machines can reach it: a token and TLS. Reads no file, and listens nowhere.

use std::sync::Arc;

use rustls::ServerConfig;
use sha2::{Digest, Sha256};

use super::place::Place;

/// Where to listen, and who may look.
#[derive(Clone)]
pub struct Endpoint {
    pub place: Place,
    pub token: Option<Token>,
    pub tls: Option<Arc<ServerConfig>>,
}

/// What who looks has to know. Only its hash is kept.
#[derive(Clone)]
pub struct Token([u8; 32]);

impl Token {
    pub fn new(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }

    /// As HTTP says it: `Bearer TOKEN`, or `Basic` with the token as the password of any user (a browser asks for that by itself).
    pub fn is_in(&self, authorization: &str) -> bool {
        let (kind, value) = authorization.split_once(' ').unwrap_or_default();
        let value = value.trim();
        if kind.eq_ignore_ascii_case("bearer") {
            return self.is(value.as_bytes());
        }
        let decoded = base64_simd::STANDARD.decode_to_vec(value).unwrap_or_default();
        let password = decoded.iter().position(|&byte| byte == b':').and_then(|at| decoded.get(at + 1..));
        kind.eq_ignore_ascii_case("basic") && password.is_some_and(|password| self.is(password))
    }

    /// Takes the same time for every wrong token: what is compared are hashes, and all of both.
    fn is(&self, text: &[u8]) -> bool {
        let other: [u8; 32] = Sha256::digest(text).into();
        self.0.iter().zip(other).fold(0, |differ, (one, other)| differ | (one ^ other)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_a_bearer_s_or_a_password() {
        let token = Token::new("correct horse battery");
        let basic = |text: &str| format!("Basic {}", base64_simd::STANDARD.encode_to_string(text));
        for right in [
            "Bearer correct horse battery".to_owned(),
            "bearer correct horse battery".to_owned(),
            basic("any:correct horse battery"),
            basic(":correct horse battery"),
        ] {
            assert!(token.is_in(&right), "{right}");
        }
        for wrong in [
            "",
            "Bearer",
            "Bearer correct horse",
            "correct horse battery",
            &basic("correct horse battery"),
            &basic("correct horse battery:"),
            "Basic %%%",
        ] {
            assert!(!token.is_in(wrong), "{wrong}");
        }
    }
}
