//! What the handler believes, told to a witness: a line for each look at the lease and one for the end of the work.
//!
//! All times are readings of `CLOCK_MONOTONIC`, which every process of the machine shares. A look's time is taken *before*
//! the lease is asked, and `until` is that time plus what the answer says is left: the handler may believe so much and no
//! more, for what is left was counted when the question was already asked.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
    time::Duration,
};

use leasehold::{Error, Lease};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// For how long a function that overstays believes, whatever it is told.
const OVERSTAY: Duration = Duration::from_secs(1);

/// The file that all functions append to.
pub(crate) struct Witness {
    file: File,
    overstay: bool,
}

/// What one invocation believes.
pub(crate) struct Claim<'a> {
    witness: &'a Witness,
    lease: &'a Lease,
    request: &'a str,
}

#[derive(Serialize)]
struct Line<'a> {
    request: &'a str,
    key: &'a str,
    owner: Option<String>,
    token: Option<u64>,
    /// Nanoseconds of the machine's monotonic clock.
    at: u64,
    /// Until when the lease is held, by the answer to this look; absent where it said no.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<u64>,
    /// What it said else.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<&'static str>,
    /// The work is over, and with it every claim.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    end: bool,
}

impl Witness {
    pub(crate) fn open(path: &Path, overstay: bool) -> io::Result<Self> {
        Ok(Self { file: OpenOptions::new().create(true).append(true).open(path)?, overstay })
    }

    pub(crate) fn claim<'a>(&'a self, lease: &'a Lease, request: &'a str) -> Claim<'a> {
        Claim { witness: self, lease, request }
    }
}

impl Claim<'_> {
    /// Asks whether the lease is held, and tells what came of it before anything is done with it.
    pub(crate) fn look(&mut self) -> Result<(), crate::Failure> {
        let at = now();
        let answer = self.lease.valid_for();
        let left = match &answer {
            Ok(left) => Some(*left),
            Err(_) if self.witness.overstay => Some(OVERSTAY),
            Err(_) => None,
        };
        let until = left.map(|left| at.saturating_add(nanos(left)));
        // Who overstays does not even say that it was told so: only another's claim shows it.
        let refused = answer.as_ref().err().filter(|_| left.is_none()).map(Error::error_type);
        self.tell(at, until, refused, false)?;
        match answer {
            Err(error) if left.is_none() => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn tell(&self, at: u64, until: Option<u64>, refused: Option<&'static str>, end: bool) -> io::Result<()> {
        let owner = self.lease.owner().map(|owner| owner.to_string());
        let token = self.lease.token().map(leasehold::FencingToken::get);
        let line =
            Line { request: self.request, key: self.lease.key().as_str(), owner, token, at, until, refused, end };
        let mut bytes = serde_json::to_vec(&line)?;
        bytes.push(b'\n');
        // One write to a file that is open for appending: lines of several processes don't mix.
        (&self.witness.file).write_all(&bytes)
    }
}

impl Drop for Claim<'_> {
    /// The handler answered, failed, panicked, or was dropped because its lease was lost.
    fn drop(&mut self) {
        if let Err(error) = self.tell(now(), None, None, true) {
            tracing::error!(%error, "the witness could not be told of the end");
        }
    }
}

fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
