//! The keeper: what runs the protocol for a handler.

#[cfg(feature = "in-process")]
mod home;

#[cfg(feature = "in-process")]
pub use home::{Home, Peer, PlainHome, SessionId};
