//! The connection itself, read by tasks while a runtime drives them and by blocking where a drop can't wait for one.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, recv, send};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::runtime::Handle;

use super::runtimes::{NEEDED, Runtimes};

/// Room for every line that a session writes before its keeper reads the first: writing never waits.
const SEND_BUFFER: usize = 256 * 1024;

#[cfg(any(target_os = "linux", target_os = "android"))]
const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const FLAGS: SocketFlags = SocketFlags::empty();

#[cfg(any(target_os = "linux", target_os = "android"))]
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const SEND_FLAGS: SendFlags = SendFlags::DONTWAIT;

/// Connects without ever blocking, not even where nobody takes the connections that wait. No child process inherits the
/// connection: one that outlived the handler would look like it.
pub(super) fn connect(path: &Path) -> io::Result<UnixStream> {
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)?;
    if FLAGS.is_empty() {
        rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
    }
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

/// Writes all of it at once.
///
/// # Errors
///
/// When the connection fails, or does not take all of it: the peer has not read for a long time then.
pub(super) fn write(fd: impl AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match send(&fd, bytes, SEND_FLAGS) {
            Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Reads what is there; nothing waits.
fn read_now(fd: BorrowedFd<'_>, buf: &mut [u8]) -> io::Result<usize> {
    loop {
        match recv(fd, &mut *buf, RecvFlags::DONTWAIT) {
            Ok((_, read)) => return Ok(read),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads by blocking until this moment. What is there already is read even if the moment is over: after a freeze both
/// are true at once.
fn read_until(fd: BorrowedFd<'_>, end: Instant, buf: &mut [u8]) -> io::Result<usize> {
    loop {
        match read_now(fd, buf) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result,
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match rustix::event::poll(&mut [PollFd::new(&fd, PollFlags::IN)], Timespec::try_from(left).ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// How the connection is read at the moment.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reading {
    /// By a task that is woken when there is something.
    Task,
    /// What is there already, past the runtime: it may not have looked since the handler last yielded.
    Now,
    /// By blocking, until this moment.
    Until(Instant),
}

/// One connection.
#[derive(Debug)]
pub(super) struct Socket {
    descriptor: Descriptor,
    reading: Mutex<Reading>,
}

#[derive(Debug)]
enum Descriptor {
    /// The runtimes of those who wait tell when there is something to read.
    Registered(Runtimes),
    /// Nobody does: it is read by blocking only.
    Unregistered(UnixStream),
}

impl Socket {
    /// Takes a connection that blocking code asks over.
    pub(super) const fn unregistered(stream: UnixStream) -> Self {
        Self { descriptor: Descriptor::Unregistered(stream), reading: Mutex::new(Reading::Now) }
    }

    /// Takes a connection, which must not block, for tasks to read.
    pub(super) fn registered(stream: UnixStream) -> io::Result<Self> {
        let Ok(here) = Handle::try_current() else {
            return Err(io::Error::other(NEEDED));
        };
        rustix::net::sockopt::set_socket_send_buffer_size(&stream, SEND_BUFFER)?;
        Ok(Self {
            descriptor: Descriptor::Registered(Runtimes::new(stream, &here)?),
            reading: Mutex::new(Reading::Task),
        })
    }

    /// Writes all of it at once, or fails.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        write(self.fd(), bytes)
    }

    /// Changes how the connection is read.
    pub(super) fn read_by(&self, reading: Reading) {
        *self.reading.lock().unwrap_or_else(PoisonError::into_inner) = reading;
    }

    /// Ends the connection for both sides; what was written before still arrives.
    pub(super) fn shut_down(&self) {
        // A peer that is gone already has no connection to end.
        let _ = rustix::net::shutdown(self.fd(), rustix::net::Shutdown::Both);
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match &self.descriptor {
            Descriptor::Registered(runtimes) => runtimes.fd(),
            Descriptor::Unregistered(stream) => stream.as_fd(),
        }
    }

    fn poll_read(&self, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let reading = *self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        match (reading, &self.descriptor) {
            (Reading::Until(end), _) => Poll::Ready(read_until(self.fd(), end, buf)),
            (Reading::Task, Descriptor::Registered(runtimes)) => runtimes.poll_read(cx, buf),
            (Reading::Now | Reading::Task, _) => match read_now(self.fd(), buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                result => Poll::Ready(result),
            },
        }
    }
}

/// The reading side of a [`Socket`].
#[derive(Debug)]
pub(super) struct Reads(pub(super) Arc<Socket>);

impl AsyncRead for Reads {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = ready!(self.0.poll_read(cx, buf.initialize_unfilled()))?;
        buf.advance(read);
        Poll::Ready(Ok(()))
    }
}
