//! The socket that layers connect to: bound, served for as long as the extension lives, and bound again where its path was
//! taken away: handlers share `/tmp` with it, and some clean it.

use std::future::poll_fn;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::task::Poll;
use std::time::Duration;

use leasehold::keeper::Peer;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use crate::backoff::Backoff;
use crate::crowd::{self, Crowd, Told};
use crate::peer;

#[cfg(test)]
mod tests;

/// How often it is looked whether the socket's path still leads here.
const LOOK: Duration = Duration::from_secs(1);

/// Why the socket could not be bound.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Its folder can't be made.
    #[error("the folder of the socket {path} can't be made: {source}; set LEASEHOLD_SOCKET to another path")]
    Folder {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something else lies where the socket should be.
    #[error("{path} is not a socket: remove it, or set LEASEHOLD_SOCKET to another path")]
    NotASocket {
        /// The socket.
        path: PathBuf,
    },
    /// Another keeper answers there.
    #[error("another process is listening on {path}: set LEASEHOLD_SOCKET to another path for one of the two")]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// What lies there can't be looked at, connected to or removed.
    #[error("what an earlier process left at {path} can't be cleared away: {source}")]
    Leftover {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The system refuses.
    #[error("the socket {path} can't be bound: {source}; set LEASEHOLD_SOCKET to another path")]
    Bind {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A socket that is listened on, and which file its path led to when it was bound.
#[derive(Debug)]
pub struct Bound {
    listener: UnixListener,
    path: PathBuf,
    file: Option<File>,
}

/// A file's device and number.
type File = (u64, u64);

impl Bound {
    /// Binds again where the path leads elsewhere by now, and gives back the listener that nobody finds any more. Until then
    /// no handler reaches this keeper; what is connected stays so.
    async fn keep(&mut self) -> Result<Option<UnixListener>, BindError> {
        if self.file.is_some() && self.file == file(&self.path) {
            return Ok(None);
        }
        let old = std::mem::replace(self, bind(&self.path).await?);
        tracing::warn!(socket = %self.path.display(), "the socket was taken away and is bound again: leave it when cleaning /tmp");
        Ok(Some(old.listener))
    }
}

fn file(path: &Path) -> Option<File> {
    std::fs::symlink_metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Binds the socket, over the remains of an extension that was killed if they lie there.
///
/// # Errors
///
/// When that can't be, or another process lives there.
pub async fn bind(path: &Path) -> Result<Bound, BindError> {
    let owned = || path.to_owned();
    if let Some(folder) = path.parent() {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|source| BindError::Folder { path: owned(), source })?;
    }
    clear(path).await?;
    let listener = UnixListener::bind(path).map_err(|source| BindError::Bind { path: owned(), source })?;
    Ok(Bound { listener, path: owned(), file: file(path) })
}

/// Removes a socket on which nobody listens any more.
async fn clear(path: &Path) -> Result<(), BindError> {
    let leftover = |source| BindError::Leftover { path: path.to_owned(), source };
    match std::fs::symlink_metadata(path) {
        // Connecting to what is not a socket is refused like connecting to a dead one.
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(BindError::NotASocket { path: path.to_owned() });
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(leftover(error)),
    }
    match UnixStream::connect(path).await {
        Ok(_) => Err(BindError::InUse { path: path.to_owned() }),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            io::ErrorKind::ConnectionRefused => match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(leftover(error)),
                _ => Ok(()),
            },
            // So many wait to be accepted that no more may: somebody lives there.
            io::ErrorKind::WouldBlock => Err(BindError::InUse { path: path.to_owned() }),
            _ => Err(leftover(error)),
        },
    }
}

/// Accepts connections and serves each in a task of its own, until it is dropped; the tasks end with it. Where descriptors
/// run short, connections that are no sessions are closed for new ones, and the task is dropped wherever it is. Whether
/// the path still leads here is looked at with each of `events`, and now and then.
pub async fn serve<F>(bound: &mut Bound, mut events: watch::Receiver<()>, session: impl Fn(UnixStream, Peer, Told) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (mut sessions, mut crowd) = (JoinSet::new(), Crowd::new());
    let serve = |sessions: &mut JoinSet<()>, crowd: &mut Crowd, stream: UnixStream| {
        let (peer, told) = (peer::of(&stream), Told::default());
        crowd.joined(sessions.spawn(session(stream, peer, told.clone())), told);
    };
    let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_secs(1));
    let mut lost = Backoff::new(Duration::from_millis(10), Duration::from_secs(1));
    let mut look = tokio::time::interval(LOOK);
    loop {
        let may_accept = sessions.len() < crowd::room();
        let dispensable = crowd.dispensable_from().filter(|_| crowd.is_full());
        if dispensable.is_none() && crowd.is_full() {
            crowd.note_full();
        }
        tokio::select! {
            accepted = bound.listener.accept(), if may_accept => match accepted {
                Ok((stream, _)) => {
                    backoff.succeeded();
                    serve(&mut sessions, &mut crowd, stream);
                }
                Err(error) => {
                    // Out of descriptors after all, mostly: the connection stays where it is and the socket readable,
                    // so trying again at once would only spin.
                    let delay = backoff.failed();
                    if backoff.is_worth_a_line() {
                        tracing::warn!(%error, "a connection can't be accepted");
                    }
                    crowd.close_one();
                    tokio::time::sleep(delay).await;
                }
            },
            Some(ended) = sessions.join_next_with_id() => {
                crowd.left(ended.as_ref().map_or_else(JoinError::id, |(id, ())| *id));
                note_panic(ended);
            },
            // So that the next one finds a place.
            () = sleep_until(dispensable.unwrap_or_else(Instant::now)), if dispensable.is_some() => crowd.close_one(),
            _ = async { tokio::select! { Ok(()) = events.changed() => {}, _ = look.tick() => {} } } => {
                let Some(old) = keep(bound, &mut lost).await else { continue };
                // Those who connected to it and were not accepted yet.
                while let Poll::Ready(Ok((stream, _))) = poll_fn(|cx| Poll::Ready(old.poll_accept(cx))).await {
                    serve(&mut sessions, &mut crowd, stream);
                }
            }
        }
    }
}

async fn keep(bound: &mut Bound, lost: &mut Backoff) -> Option<UnixListener> {
    match bound.keep().await {
        Ok(old) => {
            lost.succeeded();
            old
        }
        Err(error) => {
            lost.failed();
            if lost.is_worth_a_line() {
                tracing::error!(%error, "the socket was taken away, and no handler can reach this keeper");
            }
            None
        }
    }
}

fn note_panic<T>(ended: Result<T, JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a connection's task panicked; the others go on");
    }
}
