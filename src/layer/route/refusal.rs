//! Refusals as responses: to a router no request may be an error.

use http::Response;

use crate::error::Error;
use crate::layer::answers::OnRefusal;
use crate::layer::answers::http::{BusyStatus, any_problem};
use crate::layer::sealed::Sealed;

/// Makes the response to a request that the layer refuses.
///
/// [`on_refusal`](super::RouteLayerBuilder::on_refusal) chooses one. The trait is sealed.
pub trait RouteAnswers<R>: Sealed {
    /// The response; `problem` is what is answered unless set.
    #[doc(hidden)]
    fn response(&self, error: &Error, problem: Response<String>) -> Response<R>;
}

/// Problem documents (RFC 9457) that tell a stranger nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProblemDetails;

impl Sealed for ProblemDetails {}

impl<R: From<String>> RouteAnswers<R> for ProblemDetails {
    fn response(&self, _error: &Error, problem: Response<String>) -> Response<R> {
        problem.map(R::from)
    }
}

impl<R, F: Fn(&Error, Response<String>) -> Response<R>> RouteAnswers<R> for OnRefusal<F> {
    fn response(&self, error: &Error, problem: Response<String>) -> Response<R> {
        (self.0)(error, problem)
    }
}

/// How refusals look to the caller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refusals<A> {
    pub(super) busy: BusyStatus,
    pub(super) answers: A,
}

impl<A> Refusals<A> {
    pub(super) fn response<R>(&self, error: &Error) -> Response<R>
    where
        A: RouteAnswers<R>,
    {
        note(error);
        self.answers.response(error, any_problem(error, self.busy).response())
    }
}

/// Logs a refusal: nobody else sees the error behind the response.
fn note(error: &Error) {
    let error_type = error.error_type();
    match error {
        // Logged where they were met.
        Error::LeaseBusy(_) | Error::LeaseLost(_) => {}
        Error::DeadlineTooClose(_) | Error::GrantTooLate(_) | Error::OutOfTime(_) | Error::KeyInvalid(_) => {
            tracing::warn!(error_type, %error, "a request was refused");
        }
        _ => tracing::error!(error_type, %error, "a request was refused"),
    }
}
