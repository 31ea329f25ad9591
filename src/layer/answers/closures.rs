//! Answers that closures make, in the handler's own type.

use std::fmt;

use super::Answers;
use crate::error::{Error, InvocationError, LeaseBusy};
use crate::layer::sealed::Sealed;

/// A busy key is a response that a closure makes; every other refusal is an error.
pub struct OnBusy<F>(pub(in crate::layer) F);

impl<F> Sealed for OnBusy<F> {}

impl<R, F: Fn(&LeaseBusy) -> R> Answers<R> for OnBusy<F> {
    type Response = R;

    fn response(&self, response: R) -> R {
        response
    }

    fn refusal<E>(&self, error: Error) -> Result<R, InvocationError<E>> {
        match &error {
            Error::LeaseBusy(busy) => Ok((self.0)(busy)),
            _ => Err(error.into()),
        }
    }
}

impl<F> fmt::Debug for OnBusy<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnBusy").finish_non_exhaustive()
    }
}

/// A refusal is what a closure makes of it, or an error.
pub struct OnRefusal<F>(pub(in crate::layer) F);

impl<F> Sealed for OnRefusal<F> {}

impl<R, F: Fn(&Error) -> Option<R>> Answers<R> for OnRefusal<F> {
    type Response = R;

    fn response(&self, response: R) -> R {
        response
    }

    fn refusal<E>(&self, error: Error) -> Result<R, InvocationError<E>> {
        (self.0)(&error).ok_or_else(|| error.into())
    }
}

impl<F> fmt::Debug for OnRefusal<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnRefusal").finish_non_exhaustive()
    }
}
