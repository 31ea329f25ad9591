//! What is answered when somebody else holds the key: an error, or a response that a closure makes.

use std::fmt;

use crate::error::LeaseBusy;

/// Decides what a busy key is answered with.
///
/// [`on_busy`](super::LeaseLayerBuilder::on_busy) makes one of a closure; there is no need to implement it.
pub trait OnBusy<R> {
    /// The response, or `None` for the error.
    fn answer(&self, busy: &LeaseBusy) -> Option<R>;
}

/// A busy key is the error `LeaseBusy`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refuse;

impl<R> OnBusy<R> for Refuse {
    fn answer(&self, _busy: &LeaseBusy) -> Option<R> {
        None
    }
}

/// A busy key is a response that a closure makes.
pub struct Answer<F>(pub(super) F);

impl<R, F: Fn(&LeaseBusy) -> R> OnBusy<R> for Answer<F> {
    fn answer(&self, busy: &LeaseBusy) -> Option<R> {
        Some((self.0)(busy))
    }
}

impl<F> fmt::Debug for Answer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}
