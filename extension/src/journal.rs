//! The reset journal: notes of the attempts that a killed extension would leave behind.
//!
//! `/tmp` survives a reset of the environment. Before an attempt is written, a small file named after its owner says
//! what would have to be released if neither the handler nor this process lived to do it; the file goes when the
//! attempt is settled. An extension that starts reads what an earlier one left.
//!
//! A kill can hit at any instruction, and no more than that is defended against (a machine that dies takes `/tmp`
//! along): a note is whole before its attempt is sent, so half a note is one of an attempt that never was.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use leasehold::protocol::{HolderInfo, OwnerId};
use leasehold::session::Table;
use leasehold::store::Lock;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

pub use process::Process;

mod process;
#[cfg(test)]
mod tests;

/// The longest note that is read: a key of 2,048 bytes, every one of them escaped, and a table's ARN stay far below.
const MAX_NOTE: u64 = 32 * 1024;
/// How many files are looked at; an environment has one attempt or two for each invocation at work.
const MAX_NOTES: usize = 4_096;

/// An attempt that an earlier extension noted and did not live to see settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The attempt's owner.
    pub owner: OwnerId,
    /// What it would hold, without what people are told.
    pub lock: Lock,
    /// The process that the lease was for.
    pub handler: Process,
}

/// What a note's file holds.
#[derive(Serialize, Deserialize)]
struct Content {
    table: Table,
    key: String,
    handler: Process,
}

/// The folder of notes.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    /// What this process noted: only that is its to remove as settled.
    noted: Mutex<HashSet<OwnerId>>,
    /// Whether the last note failed, so that a full `/tmp` makes one line in the log and not one for each attempt.
    failing: AtomicBool,
}

impl Journal {
    /// The journal in this folder, which is made with the first note.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, noted: Mutex::default(), failing: AtomicBool::new(false) }
    }

    /// Notes an attempt for the handler with this process id. A note that can't be made is told in the log and costs
    /// no acquisition: the lease then ends by itself.
    pub fn note(&self, pid: u32, lock: &Lock, owner: OwnerId) {
        if pid == 0 {
            // The handler's process can't be known, so nobody could ever tell that it is gone.
            return;
        }
        match self.write(pid, lock, owner) {
            Ok(()) => {
                self.failing.store(false, Ordering::Relaxed);
                self.noted().insert(owner);
            }
            Err(error) => {
                if !self.failing.swap(true, Ordering::Relaxed) {
                    let folder = self.folder.display();
                    tracing::warn!(
                        %error, %folder,
                        "the reset journal can't be written: a lease stays until it ends if the environment is reset"
                    );
                }
            }
        }
    }

    /// Removes the note of an attempt that this process made.
    pub fn settle(&self, owner: OwnerId) {
        if self.noted().remove(&owner) {
            self.remove(owner);
        }
    }

    /// What earlier extensions left. Files that are no notes are removed where they bear a note's name, else left alone.
    pub fn left_behind(&self) -> Vec<Note> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => {
                tracing::warn!(%error, folder = %self.folder.display(), "the reset journal can't be read");
                return Vec::new();
            }
        };
        let owners = entries.take(MAX_NOTES).filter_map(|entry| {
            let name = entry.ok()?.file_name();
            let owner = OwnerId::parse(name.to_str()?)?;
            // A UUID has other spellings; only ours names a note.
            (name.to_str()? == owner.to_string()).then_some(owner)
        });
        let owners: Vec<_> = owners.filter(|owner| !self.noted().contains(owner)).collect();
        owners.into_iter().filter_map(|owner| self.read_or_remove(owner)).collect()
    }

    /// Removes a note that was left behind, once it needs no release any more.
    pub fn remove(&self, owner: OwnerId) {
        if let Err(error) = fs::remove_file(self.path(owner))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, %owner, "a note in the reset journal can't be removed");
        }
    }

    fn write(&self, pid: u32, lock: &Lock, owner: OwnerId) -> io::Result<()> {
        let handler = Process::read(pid)?;
        let content = Content { table: lock.table.clone(), key: lock.key.clone(), handler };
        let content = serde_json::to_vec(&content).map_err(io::Error::other)?;
        let path = self.path(owner);
        let mut file = create(&path).or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                return Err(error);
            }
            self.make_folder()?;
            create(&path)
        })?;
        file.write_all(&content).inspect_err(|_| {
            // A full disk leaves an empty file, which would only be in the way.
            let _ = fs::remove_file(&path);
        })
    }

    fn make_folder(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)
    }

    fn read_or_remove(&self, owner: OwnerId) -> Option<Note> {
        match read(&self.path(owner)) {
            Ok(Content { table, key, handler }) => Some(Note {
                owner,
                lock: Lock { table, key, holder: HolderInfo::default(), attributes: Default::default() },
                handler,
            }),
            Err(error) => {
                tracing::debug!(%error, %owner, "a file in the reset journal is no note");
                self.remove(owner);
                None
            }
        }
    }

    fn path(&self, owner: OwnerId) -> PathBuf {
        self.folder.join(owner.to_string())
    }

    fn noted(&self) -> std::sync::MutexGuard<'_, HashSet<OwnerId>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Reads a note. Whatever lies there must not make this process wait, or read without end, or follow it elsewhere.
fn read(path: &Path) -> io::Result<Content> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let mut content = Vec::new();
    file.take(MAX_NOTE + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_NOTE {
        return Err(io::Error::other("longer than a note"));
    }
    let content: Content = serde_json::from_slice(&content).map_err(io::Error::other)?;
    if content.key.is_empty() || content.key.len() > 2_048 || content.table.name.is_empty() {
        return Err(io::Error::other("it names no lock"));
    }
    Ok(content)
}
