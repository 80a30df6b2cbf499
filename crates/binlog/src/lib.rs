//! MySQL and MariaDB binary log: bytes ⇄ events.
//!
//! Entry points: [`Framer`] cuts a log file into [`Event`]s, [`FormatDescription`] says how the events after it are
//! laid out, [`Boundary`] says where transactions begin and end, one module per event type decodes it,
//! [`RowsEvent::images`] walks rows without copying, [`encode`] builds events, [`patch`] changes fields in place,
//! [`gtids`] are identifiers and sets of them, [`LogPosition`] is a place in a log.
//!
//! Every event keeps its bytes; decoding is lazy and, for anything large, a slice of those bytes. Event types that
//! are not known are still framed, checked and carried on.
//!
//! This crate never opens a file or a socket, reads a clock, starts a thread or keeps a global. Input never makes it
//! panic or allocate what a length field claims: bytes that are not there are an error.
//!
//! Files that import each other, and why they stay so:
//! - `event` and `format_description`: a format description is an event that says how it is itself laid out;
//! - `value` and `json`: a JSON document may hold any value, and a value may be a JSON document.

pub mod boundary;
pub mod charset;
pub mod column;
pub mod compressed;
pub mod corruption;
pub mod encode;
pub mod ending;
pub mod errno;
pub mod event;
pub mod format_description;
pub mod frame;
pub mod gtid;
pub mod gtid_list;
pub mod gtids;
pub mod header;
pub mod heartbeat;
pub mod image;
pub mod incident;
pub mod intvar;
pub mod json;
pub mod json_tree;
pub mod kind;
pub mod load_data;
pub mod logged_gtids;
pub mod mariadb_gtid;
pub mod patch;
pub mod position;
pub mod previous_gtids;
pub mod query;
pub mod rand;
mod reader;
pub mod rotate;
pub mod rows;
pub mod rows_query;
pub mod status_vars;
pub mod table_map;
pub mod text;
pub mod transaction_payload;
pub mod user_var;
pub mod value;
mod varlen;
pub mod xa_prepare;
pub mod xid;

pub use boundary::Boundary;
pub use column::{Column, ColumnKind};
pub use corruption::{Corruption, CorruptionKind};
pub use ending::{Ending, NextFile};
pub use event::{Checksum, Event, Flavour};
pub use format_description::FormatDescription;
pub use frame::{FIRST_OFFSET, Finish, Framer, MAGIC, MAX_EVENT_LEN, Step};
pub use gtid::MySqlGtid;
pub use gtid_list::MariaDbGtidList;
pub use header::{HEADER_LEN, Header};
pub use image::{Bitmap, ColumnValue};
pub use kind::Kind;
pub use logged_gtids::LoggedGtids;
pub use mariadb_gtid::MariaDbGtid;
pub use position::{BadPosition, LogPosition};
pub use previous_gtids::PreviousGtids;
pub use query::Query;
pub use rows::{RowImages, RowsEvent, RowsKind};
pub use status_vars::StatusVars;
pub use table_map::{KeyPart, TableMap};
pub use transaction_payload::TransactionPayload;
pub use xa_prepare::{XaPrepare, XaXid};
pub use xid::Xid;
