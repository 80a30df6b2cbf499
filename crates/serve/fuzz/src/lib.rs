//! What the fuzz targets share with the tests.

mod session;

pub use session::{proof, session, stream};
