//! Who works at this moment, by a lock of the kernel's on a file a key: both sides take it while they hold a lease.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

/// What one of us holds while it works. A killed process loses it at once.
#[derive(Debug)]
pub struct Witness(File);

impl Witness {
    /// Takes it, and notes who did. Nobody else may hold it now: two holders at once are what it is there to see.
    pub fn take(folder: &Path, key: &str) -> Self {
        let mut file = OpenOptions::new().append(true).create(true).open(folder.join(key)).unwrap();
        assert!(file.try_lock().is_ok(), "two holders of `{key}` at once");
        file.write_all(b"r").unwrap();
        Self(file)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // Closing the file would do it as well.
        let _ = self.0.unlock();
    }
}

/// Who worked on the key, in order: `p` for pydynox, `r` for us.
pub fn history(folder: &Path, key: &str) -> String {
    std::fs::read_to_string(folder.join(key)).unwrap()
}
