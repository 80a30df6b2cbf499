//! A page as an answer, made of its template and of what all pages share. It knows no page.

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// Nothing but what the page itself has, and the answers of this server.
const POLICY: &str = "default-src 'none'; script-src 'sha256-SCRIPT'; style-src 'sha256-STYLE'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page of a template: what all pages share goes where the template marks it.
pub(super) fn assemble(template: &str) -> String {
    let parts = [
        ("<!-- head -->\n", include_str!("pages/head.html")),
        ("/* common */\n", include_str!("pages/common.css")),
        ("// common\n", include_str!("pages/common.js")),
        ("// amounts\n", include_str!("pages/amounts.js")),
    ];
    parts.into_iter().fold(template.to_owned(), |page, (mark, part)| page.replacen(mark, part, 1))
}

/// A page, with the policy that lets nothing run but its own script and style.
pub(super) fn html(page: &'static str) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    ([(header::CONTENT_SECURITY_POLICY, policy(page))], kind, page).into_response()
}

/// Of the page's own script and style: nothing else runs, whatever a server's text says.
fn policy(page: &str) -> String {
    use sha2::{Digest, Sha256};
    let hash = |tag: &str| {
        let open = format!("<{tag}>");
        let inner = page.split_once(&open).and_then(|(_, rest)| rest.split_once(&format!("</{tag}>")));
        let digest = Sha256::digest(inner.map_or("", |(inner, _)| inner).as_bytes());
        base64_simd::STANDARD.encode_to_string(digest)
    };
    POLICY.replace("SCRIPT", &hash("script")).replace("STYLE", &hash("style"))
}
