//! stub
#![forbid(unsafe_code)]
pub mod budget;
pub mod clock;
pub mod keeper;
pub mod key;
pub mod protocol;
pub mod session;
#[cfg(feature = "in-process")]
pub mod store;
