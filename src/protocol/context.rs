//! What a machine is given with every event.

use std::fmt;

use super::{Observations, OwnerId, ServerTime, Version};
use crate::clock::Now;

/// Where identities and jitter come from: the kernel, at each use; a seeded generator in the simulation.
pub trait Entropy: fmt::Debug {
    /// A fresh owner id.
    fn owner(&mut self) -> OwnerId;

    /// A fresh opaque version.
    fn version(&mut self) -> Version {
        Version::Opaque(self.owner().bits())
    }

    /// A number from 0 up to 1.
    fn fraction(&mut self) -> f64;
}

/// The keeper's state around one event.
#[derive(Debug)]
pub struct Context<'a> {
    /// Both clocks, read once for this event.
    pub now: Now,
    /// What this keeper's answers say about server time.
    pub server_time: &'a mut ServerTime,
    /// What this keeper's contenders saw.
    pub observations: &'a mut Observations,
    /// Identities and jitter.
    pub entropy: &'a mut dyn Entropy,
    /// Whether this keeper's client ever had an answer; until then a request gets at least a second, for it also
    /// makes the connection.
    pub client_is_warm: bool,
}
