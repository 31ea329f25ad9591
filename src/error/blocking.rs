//! What blocking calls are refused with.

use thiserror::Error;

/// A call that blocks was made within an async runtime, whose tasks it would hold up, the session with the keeper among
/// them. Nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "`{called}` blocks, and was called within an async runtime: await `{instead}` there; blocking code on a runtime's thread \
     takes `Handle::current().block_on({instead}(…))`"
)]
#[non_exhaustive]
pub struct BlockingInAsync {
    /// What was called.
    pub called: &'static str,
    /// What to call there.
    pub instead: &'static str,
}
