//! A server's own replication, for all who look at it or steer it: `status` what it says of itself, in the words of every version · `statements` the SQL
//! that steers it · `ask` questions to the server · `settings` names of settings. Knows nothing of what is done with the answers.

pub mod ask;
pub mod settings;
pub mod statements;
pub mod status;
