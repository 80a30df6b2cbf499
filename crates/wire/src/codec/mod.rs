//! The protocol as bytes: packets, their fields, and what each kind of packet says. Both sides of a connection can use it.
//!
//! It never reads a socket (packets come through `Read` and `Write`), a clock or an option, and knows nothing of who is connected.

pub(crate) mod capabilities;
pub(crate) mod certificate_proof;
pub(crate) mod command;
pub(crate) mod compressed;
pub(crate) mod cursor;
pub(crate) mod error_packet;
pub(crate) mod handshake;
pub(crate) mod packet;
pub(crate) mod resultset;
pub(crate) mod semi_sync;
pub(crate) mod server_info;
