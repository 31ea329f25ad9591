//! The Lambda extension of `leasehold`: a process of its own that keeps leases for the handlers of its environment.
//!
//! The library is the binary in parts, so that its tests can drive each alone: [`lifecycle::run`] is the whole of it.

#![forbid(unsafe_code)]

pub mod api;
mod backoff;
pub mod crowd;
pub mod hold;
pub mod home;
pub mod journal;
pub mod lifecycle;
pub mod logging;
pub mod metrics;
pub mod next_loop;
mod peer;
pub mod recovery;
pub mod settings;
pub mod socket;
mod supervise;
pub mod usage;
