//! stub
pub mod clock;
