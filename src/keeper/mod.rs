//! The keeper: what runs the protocol for a handler.

pub(crate) mod client;
#[cfg(feature = "in-process")]
mod home;

#[cfg(feature = "in-process")]
pub use home::{Home, Peer, PlainHome, SessionId};
