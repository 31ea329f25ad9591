//! The guide: what a lock is for, how a handler gets one, and what it can and can't promise, a chapter a module.

#[doc = include_str!("http.md")]
pub mod http {}

#[doc = include_str!("state.md")]
pub mod state {}

#[doc = include_str!("holds.md")]
pub mod holds {}

#[doc = include_str!("scheduled.md")]
pub mod scheduled {}

#[doc = include_str!("by_hand.md")]
pub mod by_hand {}
