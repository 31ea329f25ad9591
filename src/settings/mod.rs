//! A layer's settings: what the code set, what the `LEASEHOLD_*` variables set, and what holds of it.
//!
//! Code wins, except for `LEASEHOLD_MODE`, which only the environment sets, so that an operator can roll out and roll
//! back without a deployment of code. Nothing is guessed: a value that can't be read is an error, a name that is not
//! known a warning, and everything that is wrong is told at once.

mod check;
mod choice;
mod draft;
mod duration;
mod environment;
mod keys;
mod known;
mod polling;
mod reading;
mod resolved;

#[cfg(test)]
mod tests;

pub use choice::{KeeperChoice, MetricLines, MissingPath, Mode, OnLoss, OnUnavailable, Release};
pub(crate) use draft::Draft;
pub(crate) use environment::Environment;
pub(crate) use keys::Secret;
pub use polling::Polling;
pub(crate) use reading::too_long;
pub(crate) use resolved::Settings;
