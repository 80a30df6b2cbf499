//! What servers show of accounts, taken apart: `SHOW CREATE USER`, `SHOW GRANTS`. Asks nobody.

mod definition;
mod grants;
mod name;
mod tokens;

pub use definition::{Combination, Definition, LoginMethod, NATIVE};
pub use grants::{Grant, GrantOption, UnknownGrant};
pub use name::AccountName;
