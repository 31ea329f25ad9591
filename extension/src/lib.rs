//! The Lambda extension of `leasehold`: a process of its own that keeps leases for the handlers of its environment.
//!
//! The library is the binary in parts, so that its tests can drive each alone.

#![forbid(unsafe_code)]

pub mod api;
mod backoff;
pub mod hold;
pub mod journal;
pub mod socket;
