//! The process at the other end of a connection: who it is, and that it is gone.
//!
//! The end of file tells a crash, unless a child that the handler forked keeps the descriptor open. So the process
//! itself is watched as well.

use std::future::pending;
use std::time::Duration;

use leasehold::keeper::Peer;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;

/// What a process that ended had still said is read for this long; mostly its end of file is there before.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// Whose connection this is.
pub(crate) fn of(stream: &UnixStream) -> Peer {
    let pid = stream.peer_cred().ok().and_then(|credentials| credentials.pid());
    Peer { pid: pid.and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0) }
}

/// Waits until the process is gone and its last words had their time; for ever where it can't be watched.
pub(crate) async fn gone(peer: Peer) {
    let Some(pid) = i32::try_from(peer.pid).ok().and_then(Pid::from_raw) else { return pending().await };
    match pidfd_open(pid, PidfdFlags::NONBLOCK) {
        Ok(process) => {
            #[allow(deprecated, reason = "its successor is unsafe; an `OwnedFd` keeps what both ask for")]
            let watched = AsyncFd::with_interest(process, Interest::READABLE);
            let Ok(process) = watched else { return pending().await };
            if process.readable().await.is_err() {
                return pending().await;
            }
        }
        Err(Errno::SRCH) => {}
        // An old kernel, or a sandbox that forbids it: the end of file has to do.
        Err(_) => return pending().await,
    }
    tokio::time::sleep(LAST_WORDS).await;
}
