//! stub
pub mod budget;
pub mod clock;
pub mod key;
