//! What an invocation is answered with: the handler's response, and what is said where there is no lease.
//!
//! Each source of events has its own idea of failure. By default a refusal is an error, which is right for asynchronous
//! invocations, queues and EventBridge: Lambda tries again. [`AnswerFor`] knows what the other sources understand, and
//! closures say the rest.

mod cause;
mod closures;
pub(super) mod http;
mod source;

use serde::Serialize;
use serde_json::Value;

pub use self::closures::{OnBusy, OnRefusal};
pub use self::source::AnswerFor;
use super::sealed::Sealed;
use crate::error::{Error, InvocationError};

/// Decides what a handler's response and a refusal look like to the caller.
///
/// [`answer_for`](super::LeaseLayerBuilder::answer_for), [`on_busy`](super::LeaseLayerBuilder::on_busy) and
/// [`on_refusal`](super::LeaseLayerBuilder::on_refusal) choose one. The trait is sealed:
/// write it in bounds, to be generic over layers.
pub trait Answers<R>: Sealed {
    /// What callers of the layer's service get.
    type Response;

    /// The handler's own response.
    #[doc(hidden)]
    fn response(&self, response: R) -> Self::Response;

    /// What is answered where the layer refuses.
    ///
    /// # Errors
    ///
    /// Where it stays an error.
    #[doc(hidden)]
    fn refusal<E>(&self, error: Error) -> Result<Self::Response, InvocationError<E>>;
}

/// Every refusal is an error with its `errorType`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refuse;

impl Sealed for Refuse {}

impl<R> Answers<R> for Refuse {
    type Response = R;

    fn response(&self, response: R) -> R {
        response
    }

    fn refusal<E>(&self, error: Error) -> Result<R, InvocationError<E>> {
        Err(error.into())
    }
}

/// A response of the handler's, or the layer's own in its place; Lambda sees no difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Answered<R> {
    /// The handler's.
    Handler(R),
    /// The layer's: the handler did not run, or not to its end.
    Layer(Value),
}

/// The last word on an invocation.
pub(super) fn last<R, E, A: Answers<R>>(
    answers: &A,
    answer: Result<R, InvocationError<E>>,
) -> Result<A::Response, InvocationError<E>> {
    match answer {
        Ok(response) => Ok(answers.response(response)),
        Err(InvocationError::Lease { error, .. }) => answers.refusal(error),
        Err(InvocationError::Handler(error)) => Err(InvocationError::Handler(error)),
    }
}
