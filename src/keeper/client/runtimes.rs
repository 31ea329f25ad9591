//! The runtimes that tell a connection's readers when there is something to read: each those that wait within it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::net::UnixStream;
use tokio::runtime::{Handle, Id};

/// A runtime notices nothing while it does not run, and one that was taken down never will. So a connection is registered
/// with each runtime in which somebody waits for it: with the first for good, with so many others that did so last.
const MOST_OTHERS: usize = 4;

/// A connection as a runtime knows it; `None` where that one can't.
type Registered = (Id, Option<Arc<UnixStream>>);

/// What is said where a session can't be heard.
pub(super) const NEEDED: &str = "a lease needs a tokio runtime with I/O and time enabled";

/// One connection's registrations.
#[derive(Debug)]
pub(super) struct Runtimes {
    first: (Id, Arc<UnixStream>),
    others: Mutex<VecDeque<Registered>>,
}

impl Runtimes {
    /// Takes a connection, which must not block, for tasks of this runtime to read.
    pub(super) fn new(stream: net::UnixStream, here: &Handle) -> io::Result<Self> {
        let stream = registered(stream)?.ok_or_else(|| io::Error::other(NEEDED))?;
        Ok(Self { first: (here.id(), stream), others: Mutex::default() })
    }

    /// To write, and to read past all runtimes.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.first.1.as_fd()
    }

    /// Reads what is there; where that is nothing, the runtime that polls this wakes its task.
    pub(super) fn poll_read(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let stream = self.here();
        loop {
            ready!(stream.poll_read_ready(cx))?;
            match stream.try_read(buf) {
                // The readiness is cleared, and the next round waits.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    /// The connection as this runtime knows it, or as the first one does where there is none, or it can't. No lease is lost
    /// for that: who waits is then woken as long as the first one runs.
    fn here(&self) -> Arc<UnixStream> {
        let (first, stream) = &self.first;
        let here = Handle::try_current().ok().map(|handle| handle.id()).filter(|here| here != first);
        here.and_then(|here| self.within(here)).unwrap_or_else(|| stream.clone())
    }

    fn within(&self, here: Id) -> Option<Arc<UnixStream>> {
        let mut others = self.others();
        if let Some((_, stream)) = others.iter().find(|(id, _)| *id == here) {
            return stream.clone();
        }
        // What fails for want of descriptors may succeed the next time.
        let stream = self.fd().try_clone_to_owned().and_then(|again| registered(again.into())).ok()?;
        if others.len() >= MOST_OTHERS {
            others.pop_front();
        }
        others.push_back((here, stream.clone()));
        stream
    }

    fn others(&self) -> MutexGuard<'_, VecDeque<Registered>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Registers a connection with this runtime; `None` where it was built without I/O. Nothing but a panic tells that.
fn registered(stream: net::UnixStream) -> io::Result<Option<Arc<UnixStream>>> {
    let stream = catch_unwind(AssertUnwindSafe(|| UnixStream::from_std(stream)));
    stream.map_or(Ok(None), |stream| stream.map(|stream| Some(Arc::new(stream))))
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::Write as _;
    use std::time::Duration;

    use tokio::runtime::{Builder, Runtime};
    use tokio::time::timeout;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }

    fn connected(first: &Runtime) -> (Runtimes, net::UnixStream) {
        let (ours, theirs) = net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let _within = first.enter();
        (Runtimes::new(ours, first.handle()).unwrap(), theirs)
    }

    /// What comes once somebody waits for it within this runtime.
    fn hears(runtimes: &Runtimes, within: &Runtime, mut peer: &net::UnixStream) {
        let (mut is_said, mut buf) = (false, [0; 8]);
        let read = poll_fn(|cx| {
            let read = runtimes.poll_read(cx, &mut buf);
            if read.is_pending() && !std::mem::replace(&mut is_said, true) {
                peer.write_all(b"x").unwrap();
            }
            read
        });
        let heard = within.block_on(async { timeout(LONG, read).await }).expect("its runtime wakes it");
        assert_eq!(heard.unwrap(), 1);
    }

    #[test]
    fn whoever_waits_is_woken_by_its_own_runtime_whether_the_first_one_runs_or_not() {
        let (first, second) = (runtime(), runtime());
        let (runtimes, peer) = connected(&first);
        for _ in 0..3 {
            hears(&runtimes, &second, &peer);
            hears(&runtimes, &first, &peer);
        }
        assert_eq!(runtimes.others().len(), 1);
        drop(first);
        hears(&runtimes, &second, &peer);
    }

    #[test]
    fn runtimes_that_come_and_go_leave_no_registrations_behind() {
        let first = runtime();
        let (runtimes, peer) = connected(&first);
        for _ in 0..20 {
            hears(&runtimes, &runtime(), &peer);
        }
        assert_eq!(runtimes.others().len(), MOST_OTHERS);
        hears(&runtimes, &first, &peer);
    }

    #[test]
    fn a_runtime_without_io_leaves_it_to_the_first_to_wake_those_who_wait_in_it() {
        let first = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (runtimes, peer) = connected(&first);
        let without = Builder::new_current_thread().enable_time().build().unwrap();
        for _ in 0..3 {
            hears(&runtimes, &without, &peer);
        }
        assert_eq!(runtimes.others().len(), 1, "it is tried once");
    }

    #[test]
    fn a_connection_that_only_a_runtime_without_io_could_read_is_an_error() {
        let (ours, _theirs) = net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let without = Builder::new_current_thread().enable_time().build().unwrap();
        let _within = without.enter();
        assert_eq!(Runtimes::new(ours, without.handle()).unwrap_err().to_string(), NEEDED);
    }
}
