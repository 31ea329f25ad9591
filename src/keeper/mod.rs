//! The keeper: what runs the protocol for a handler.
//!
//! One driver, two homes: the extension, a process of its own, and a thread of the handler's own process. Either way a
//! `Keeper` serves connections that speak the session's lines, and pumps one state machine a lease against the store.

#[cfg(feature = "in-process")]
mod any_store;
pub(crate) mod client;
#[cfg(feature = "in-process")]
mod connection;
#[cfg(feature = "in-process")]
mod counts;
#[cfg(feature = "in-process")]
mod desk;
#[cfg(feature = "in-process")]
mod entropy;
#[cfg(feature = "in-process")]
mod event_log;
#[cfg(feature = "in-process")]
mod flights;
#[cfg(feature = "in-process")]
mod handle;
#[cfg(feature = "in-process")]
mod home;
#[cfg(feature = "in-process")]
mod in_process;
#[cfg(feature = "in-process")]
mod inspect;
#[cfg(feature = "in-process")]
mod lanes;
#[cfg(feature = "in-process")]
mod lease_counts;
#[cfg(feature = "in-process")]
mod lease_task;
#[cfg(feature = "in-process")]
mod machine;
#[cfg(feature = "in-process")]
mod meter;
#[cfg(feature = "in-process")]
mod metric_line;
#[cfg(feature = "in-process")]
mod outbox;
#[cfg(feature = "in-process")]
mod queue;
#[cfg(feature = "in-process")]
mod requests;
#[cfg(feature = "in-process")]
mod session;
#[cfg(feature = "in-process")]
mod shared;
#[cfg(feature = "in-process")]
mod standing;
#[cfg(feature = "in-process")]
mod state;
#[cfg(feature = "in-process")]
mod subject;
#[cfg(feature = "in-process")]
mod tally;
#[cfg(feature = "in-process")]
mod tasks;
#[cfg(feature = "in-process")]
mod terms;
#[cfg(feature = "in-process")]
mod trail;
#[cfg(feature = "in-process")]
mod wire;
#[cfg(feature = "in-process")]
mod wording;

#[cfg(feature = "in-process")]
pub use connection::Opening;
#[cfg(feature = "in-process")]
pub use counts::KeeperCounts;
#[cfg(feature = "in-process")]
pub use handle::{Drained, Keeper};
#[cfg(feature = "in-process")]
pub use home::{Home, Peer, PlainHome, SessionId};
#[cfg(feature = "in-process")]
pub use in_process::InProcess;
#[cfg(feature = "in-process")]
pub use meter::{Meter, Occasion};
#[cfg(feature = "in-process")]
pub use shared::KeeperOptions;

pub use crate::settings::MetricLines;

#[cfg(test)]
#[cfg(feature = "in-process")]
mod tests;
