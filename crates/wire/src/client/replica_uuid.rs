//! The UUID by which a MySQL server knows a replica.

use crate::error::Error;

/// Of a replica that has none. Without one MySQL up to 8.0 sends broken rows to who asks it for its replicas.
pub(super) fn uuid_of(server_id: u32) -> String {
    format!("68656464-6c65-0000-0000-0000{server_id:08x}")
}

pub(super) fn uuid(text: &str) -> Result<&str, Error> {
    if text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
        return Ok(text);
    }
    Err(Error::DumpRequest(format!("{text:?} is no UUID")))
}
