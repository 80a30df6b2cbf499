//! What a session is set to beside Heddle's own settings: for rows, or for a statement of the source.

mod row_setting;
pub(super) mod row_state;
pub(in crate::mysql) mod statement_state;
