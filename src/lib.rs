//! stub
#![forbid(unsafe_code)]
pub mod clock;
pub mod keeper;
pub mod protocol;
pub mod session;
#[cfg(feature = "in-process")]
pub mod store;
