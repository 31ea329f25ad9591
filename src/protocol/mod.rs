//! The lease protocol: what may be written, when, and what may be believed.
//!
//! Two pure state machines, [`Contender`] and [`Holder`], take events and a reading of the clocks and answer with
//! actions and the moment of their next wake-up. There is no clock, socket or task in here: the keeper pumps them
//! against a store, and the simulation pumps the very same ones against a hostile one. What a row format has no place for
//! is off ([`Abilities`]); all else holds in each of them.

mod format;
mod identity;

#[cfg(any(feature = "in-process", feature = "simulation"))]
mod machines {
    pub use super::action::{Acquired, Action, Busy, LossReason, RequestId, Verdict};
    pub use super::contender::{Budget, Contender};
    pub use super::context::{Context, Entropy};
    pub use super::holder::{Holder, Renewals, Validity};
    pub use super::look::{Look, Standing};
    pub use super::mutant::{Mutant, Rules, UnknownMutant};
    pub use super::observation::{Observation, Observations, Subject};
    pub use super::request::{Answer, Failure, FailureKind, Outcome, Request};
    pub use super::row::{HeldRow, Hints, Row, Unusable};
    pub use super::server_time::{Epoch, Sample, ServerTime};
    pub use super::settings::{Backoff, Polling, Settings};
    pub use super::version::Version;
}

#[cfg(any(feature = "in-process", feature = "simulation"))]
mod action;
#[cfg(any(feature = "in-process", feature = "simulation"))]
mod contender;
#[cfg(any(feature = "in-process", feature = "simulation"))]
mod context;
#[cfg(any(feature = "in-process", feature = "simulation"))]
mod holder;
#[cfg(any(feature = "in-process", feature = "simulation"))]
mod look;
#[cfg(any(feature = "in-process", feature = "simulation"))]
mod mutant;
#[cfg(any(feature = "in-process", feature = "simulation"))]
mod observation;
#[cfg(any(feature = "in-process", feature = "simulation"))]
mod request;
#[cfg(any(feature = "in-process", feature = "simulation"))]
mod row;
#[cfg(any(feature = "in-process", feature = "simulation"))]
mod server_time;
#[cfg(any(feature = "in-process", feature = "simulation"))]
mod settings;
#[cfg(all(test, any(feature = "in-process", feature = "simulation")))]
mod testing;
#[cfg(any(feature = "in-process", feature = "simulation"))]
mod timing;
#[cfg(any(feature = "in-process", feature = "simulation"))]
mod version;

#[cfg(feature = "simulation")]
pub mod simulation;

pub use format::{Abilities, Format, UnknownFormat, Versions};
pub use identity::{FencingToken, HolderInfo, OwnerId};
#[cfg(any(feature = "in-process", feature = "simulation"))]
pub use machines::*;
#[cfg(feature = "in-process")]
pub(crate) use row::free_until;
