//! The data of LOAD DATA statements, from the events that carry them to the statement that loads them.
//!
//! The statement may come in a later transaction than its data: MySQL logs the data for a table without transactions at once, and the statement with
//! the transaction that it belongs to. Data never outlive the run of the source that logged them.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use binlog::load_data::LoadBlock;

/// All files together, in bytes.
const BYTES_MAX: usize = 256 << 20;

#[derive(Default)]
pub(super) struct LoadFiles {
    files: HashMap<u32, File, FixedState>,
}

struct File {
    data: Vec<u8>,
    /// The transaction that its data are in has ended.
    is_whole: bool,
}

impl LoadFiles {
    /// Of all files.
    pub fn held_bytes(&self) -> usize {
        self.files.values().map(|file| file.data.len()).sum()
    }

    /// Says what is wrong.
    pub fn add(&mut self, block: &LoadBlock) -> Result<(), String> {
        if self.held_bytes() + block.data.len() > BYTES_MAX {
            return Err(format!(
                "LOAD DATA files of more than {BYTES_MAX} bytes in statement format are not supported; \
                 use binlog_format=ROW on the source"
            ));
        }
        if block.first {
            self.files.insert(block.file_id, File { data: block.data.to_vec(), is_whole: false });
            return Ok(());
        }
        match self.files.get_mut(&block.file_id) {
            Some(file) => {
                file.data.extend_from_slice(&block.data);
                Ok(())
            }
            None => Err(format!("a block of file {} that did not begin", block.file_id)),
        }
    }

    pub fn take(&mut self, id: u32) -> Option<Vec<u8>> {
        self.files.remove(&id).map(|file| file.data)
    }

    /// A transaction ends. True if there are data in it that no statement of it has loaded.
    pub fn end_transaction(&mut self) -> bool {
        let mut any = false;
        for file in self.files.values_mut().filter(|file| !file.is_whole) {
            (file.is_whole, any) = (true, true);
        }
        any
    }

    /// A transaction comes again from its beginning.
    pub fn forget_transaction(&mut self) {
        self.files.retain(|_, file| file.is_whole);
    }

    /// The source has started: it ends all statements that were under way.
    pub fn clear(&mut self) {
        self.files.clear();
    }
}
