//! What the bench's function answers, and how its invocations are waited for.

use std::time::Duration;

use serde::Deserialize;

use super::INIT_TIMEOUT;
use crate::{Error, Event, Outcome, Sandbox, demo::Said};

/// The clock's readings around the layer and in the handler, in nanoseconds of the machine's monotonic clock.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Answer {
    called_ns: u64,
    pub(super) began_ns: u64,
    ended_ns: u64,
    returned_ns: u64,
    #[serde(default)]
    checks_ns: Vec<u64>,
}

impl Answer {
    /// The answer of an invocation that should have succeeded.
    pub(super) fn of(outcome: &Outcome) -> Result<Self, Error> {
        let answer = outcome.response().map(|response| response.json());
        match (answer, outcome.error()) {
            (Some(Ok(answer)), _) => Ok(answer),
            (_, Some(error)) => Err(Error::Init(error.clone())),
            (Some(Err(error)), _) => Err(Error::io("read the function's answer")(error.into())),
            (None, None) => Err(Error::io("read the function's answer")(std::io::ErrorKind::UnexpectedEof.into())),
        }
    }

    /// From the event to the handler.
    pub(super) fn before(&self) -> Duration {
        Duration::from_nanos(self.began_ns.saturating_sub(self.called_ns))
    }

    /// From the handler's end to the layer's answer.
    pub(super) fn after(&self) -> Duration {
        Duration::from_nanos(self.returned_ns.saturating_sub(self.ended_ns))
    }

    /// What each `ensure_held` took.
    pub(super) fn checks(&self) -> impl Iterator<Item = Duration> + '_ {
        self.checks_ns.iter().map(|nanos| Duration::from_nanos(*nanos))
    }
}

/// Waits until the handler of this invocation, which was asked to tell, has begun; when that was.
pub(super) async fn work_began(sandbox: &Sandbox, request: &str) -> Result<u64, Error> {
    let said =
        |event: &Event| Said::in_event(event).filter(|said| said.message == "work began" && said.is_about(request));
    let event = sandbox.log().wait_for(|event| said(event).is_some(), INIT_TIMEOUT).await?;
    let at = said(&event).and_then(|said| said.field("at_ns")?.parse().ok());
    at.ok_or_else(|| Error::io("read the function's line")(std::io::ErrorKind::InvalidData.into()))
}
