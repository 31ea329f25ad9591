//! The handler's side of a keeper: where it is, and how it is reached.

mod check;
mod connection;
mod heard;
mod heard_lease;
mod lost;
mod runtimes;
mod session;
mod socket;
mod state;
mod wakers;

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use self::check::Checks;
use self::connection::Connection;
pub(crate) use self::heard::{Answer, Broken, Grant, Loss, Owed, Released, Which};
pub(crate) use self::session::Session;
pub(crate) use self::state::{Question, StateAnswer};
use crate::error::KeeperMissing;
use crate::protocol::OwnerId;
use crate::session::{CheckAnswer, ToKeeper, VersionRange, encode};
use crate::settings::{KeeperChoice, Settings};

#[cfg(feature = "in-process")]
use super::InProcess;
#[cfg(feature = "testing")]
use crate::testing::{self as double, TestKeeper};

/// How long a question about a lease may take, a new connection included.
const CHECK_WITHIN: Duration = Duration::from_millis(50);

/// Where a session's keeper lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Behind the socket.
    Socket,
    /// On a thread of this process.
    #[cfg(feature = "in-process")]
    InProcess,
    /// In a test double.
    #[cfg(feature = "testing")]
    Double,
}

/// The keeper, as a layer's settings say where it is.
#[derive(Debug)]
pub(crate) struct KeeperClient {
    choice: KeeperChoice,
    on_lambda: bool,
    socket: PathBuf,
    /// The session versions that are offered.
    versions: VersionRange,
    checks: Checks,
    #[cfg(feature = "testing")]
    double: Option<TestKeeper>,
}

/// Which keeper a client asks, as far as clients of this process differ in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeeperName {
    socket: PathBuf,
    /// A test double's.
    double: usize,
}

impl KeeperClient {
    /// Which keeper it asks.
    pub(crate) fn name(&self) -> KeeperName {
        #[cfg(feature = "testing")]
        let double = self.double.as_ref().map_or(0, TestKeeper::identity);
        #[cfg(not(feature = "testing"))]
        let double = 0;
        KeeperName { socket: self.socket.clone(), double }
    }

    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            choice: settings.keeper,
            on_lambda: settings.on_lambda,
            socket: settings.socket.clone(),
            versions: VersionRange::SPOKEN,
            checks: Checks::default(),
            #[cfg(feature = "testing")]
            double: settings.double.clone(),
        }
    }

    /// The client of a release that speaks these versions, for the keeper behind this socket.
    #[cfg(all(test, feature = "in-process"))]
    pub(crate) fn speaking(socket: &std::path::Path, versions: VersionRange) -> Self {
        let (choice, socket) = (KeeperChoice::Extension, socket.to_owned());
        Self {
            choice,
            on_lambda: false,
            socket,
            versions,
            checks: Checks::default(),
            #[cfg(feature = "testing")]
            double: None,
        }
    }

    /// Tells an extension, if one is there, that this function has a layer. Neither waits nor fails: an extension that
    /// does not hear it only waits less for sessions.
    pub(crate) fn hello(&self) {
        if self.choice == KeeperChoice::InProcess || self.is_played() {
            return;
        }
        let said = socket::connect(&self.socket).and_then(|stream| {
            let line = encode(&ToKeeper::Hello { versions: self.versions }).map_err(io::Error::other)?;
            socket::write(stream, &line)
        });
        if let Err(error) = said {
            tracing::debug!(socket = %self.socket.display(), %error, "no keeper heard the layer's hello");
        }
    }

    /// Opens a session's connection and begins it.
    ///
    /// # Errors
    ///
    /// When there is no keeper.
    pub(crate) fn begin(&self, request_id: &str, deadline_ms: Option<u64>) -> Result<Session, KeeperMissing> {
        let begin = || {
            let (versions, lost) = (self.versions, lost::take());
            ToKeeper::Begin { versions, request_id: request_id.to_owned(), deadline_ms, lost }
        };
        #[cfg(feature = "testing")]
        if let Some(double) = &self.double {
            if double.is_gone() {
                return Err(self.missing(io::ErrorKind::ConnectionRefused.into()));
            }
            let open = |waker| Ok(Connection::Double(double::Connection::open(double.clone(), waker)));
            let begun = Session::begin(open, Place::Double, self.versions, begin());
            return begun.map_err(|source| self.missing(source));
        }
        let (stream, place) = self.connect()?;
        let begun = Session::begin(|_| Connection::over(stream), place, self.versions, begin());
        begun.map_err(|source| self.missing(source))
    }

    /// Whether a session that the other one began is one with this one's keeper.
    #[cfg(feature = "http")]
    pub(crate) fn shares_keeper_with(&self, other: &Self) -> bool {
        self.name() == other.name() && self.choice == other.choice
    }

    /// Whether a test double plays the keeper.
    const fn is_played(&self) -> bool {
        #[cfg(feature = "testing")]
        return self.double.is_some();
        #[cfg(not(feature = "testing"))]
        false
    }

    fn connect(&self) -> Result<(UnixStream, Place), KeeperMissing> {
        if self.choice == KeeperChoice::InProcess {
            return self.connect_in_process();
        }
        match socket::connect(&self.socket) {
            Ok(stream) => Ok((stream, Place::Socket)),
            Err(_) if self.choice == KeeperChoice::Auto && cfg!(feature = "in-process") => self.connect_in_process(),
            Err(source) => Err(self.missing(source)),
        }
    }

    #[cfg(feature = "in-process")]
    fn connect_in_process(&self) -> Result<(UnixStream, Place), KeeperMissing> {
        let connected = InProcess::shared().and_then(|keeper| keeper.connect()).and_then(|stream| {
            stream.set_nonblocking(true)?;
            Ok(stream)
        });
        let socket = self.socket.clone();
        let missing = |source| KeeperMissing { socket, advice: KeeperMissing::NO_THREAD, source };
        connected.map(|stream| (stream, Place::InProcess)).map_err(missing)
    }

    #[cfg(not(feature = "in-process"))]
    fn connect_in_process(&self) -> Result<(UnixStream, Place), KeeperMissing> {
        Err(self.missing(io::ErrorKind::Unsupported.into()))
    }

    fn missing(&self, source: io::Error) -> KeeperMissing {
        let advice = if self.on_lambda { KeeperMissing::ON_LAMBDA } else { KeeperMissing::ELSEWHERE };
        KeeperMissing { socket: self.socket.clone(), advice, source }
    }

    /// Asks whether this owner's lease is held; blocks for 50 ms at most.
    ///
    /// # Errors
    ///
    /// Why there is no answer, for people.
    pub(crate) fn check(&self, place: Place, owner: OwnerId) -> Result<CheckAnswer, String> {
        match place {
            Place::Socket => self.checks.ask(&self.socket, owner, CHECK_WITHIN),
            #[cfg(feature = "in-process")]
            Place::InProcess => InProcess::shared()
                .map(|keeper| keeper.check(owner))
                .map_err(|error| format!("the keeper's thread is gone: {error}")),
            #[cfg(feature = "testing")]
            Place::Double => match &self.double {
                Some(double) if !double.is_gone() => Ok(double.check(owner)),
                _ => Err("the keeper is gone".to_owned()),
            },
        }
    }
}
