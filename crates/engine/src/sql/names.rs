//! Names in statements: of tables, of XA branches.

use std::fmt;

/// A table (or sequence) and the schema it is in: the one written, else the default.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectName {
    pub schema: String,
    pub name: String,
}

impl ObjectName {
    pub fn new(schema: &str, name: &str) -> Self {
        Self { schema: schema.to_owned(), name: name.to_owned() }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// A branch of a distributed transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Xid {
    pub global: Vec<u8>,
    pub branch: Vec<u8>,
    pub format: u64,
}
