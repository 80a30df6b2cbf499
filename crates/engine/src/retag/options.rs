//! What a user may choose of new tags.

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Keys that are remembered; older ones are taken for one that everybody follows. About 64 bytes each.
    pub keys_max: usize,
    /// Transactions of one session keep their order, as with WRITESET_SESSION.
    pub keep_session_order: bool,
    /// Say for each transaction what it waits for, in words.
    pub explain: bool,
    /// A transaction with more bytes is not looked into: it keeps its tag, and those behind it follow it.
    pub transaction_bytes_max: u64,
}
