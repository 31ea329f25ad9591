//! What each source of events understands.

use serde_json::{Value, json};

use super::{Answered, Answers, cause, http};
use crate::error::{Error, InvocationError};
use crate::layer::batch::ReportBatchItemFailures;
use crate::layer::sealed::Sealed;

/// The source of a function's events, and so what its refusals look like.
///
/// | source | busy key | deadline too close | lease lost | ended before the deadline |
/// |---|---|---|---|---|
/// | [`api_gateway_v1`](Self::api_gateway_v1), [`api_gateway_v2`](Self::api_gateway_v2), [`function_url`](Self::function_url), [`alb`](Self::alb) | response 423 (or 409) with `Retry-After` | response 503 with `Retry-After` | response 500 | response 504 |
/// | [`step_functions`](Self::step_functions), [`direct`](Self::direct) | error `LeaseBusy`, its cause as JSON | error, its cause as JSON | error, its cause as JSON | error, its cause as JSON |
/// | [`schedule`](Self::schedule) | success: `{"skipped": true, …}` | error | error | error |
/// | [`whole_batch`](Self::whole_batch) | response: the whole batch comes back | the same | error | error |
///
/// Errors that are not in the table stay errors everywhere: a wrong table or a missing permission is the operator's, not
/// the caller's. Asynchronous invocations, EventBridge rules and queues need none of these: an error makes Lambda try
/// again, and that is what a layer answers by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerFor(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Http(http::Shape, http::BusyStatus),
    Cause,
    Skip,
    WholeBatch,
}

impl AnswerFor {
    /// An API Gateway REST API, or an HTTP API with payload format 1.0.
    #[must_use]
    pub const fn api_gateway_v1() -> Self {
        Self(Kind::Http(http::Shape::ApiGatewayV1, http::BusyStatus::Locked))
    }

    /// An API Gateway HTTP API with payload format 2.0.
    #[must_use]
    pub const fn api_gateway_v2() -> Self {
        Self(Kind::Http(http::Shape::ApiGatewayV2, http::BusyStatus::Locked))
    }

    /// A Lambda function URL.
    #[must_use]
    pub const fn function_url() -> Self {
        Self::api_gateway_v2()
    }

    /// An Application Load Balancer, with or without multi-value headers.
    #[must_use]
    pub const fn alb() -> Self {
        Self(Kind::Http(http::Shape::Alb, http::BusyStatus::Locked))
    }

    /// A Step Functions task: `errorType` is what `Retry` and `Catch` match on, and the message is a JSON document with
    /// the holder, the wait and `retryAfterMs`.
    #[must_use]
    pub const fn step_functions() -> Self {
        Self(Kind::Cause)
    }

    /// A caller that invokes the function directly and reads the error's message as JSON.
    #[must_use]
    pub const fn direct() -> Self {
        Self(Kind::Cause)
    }

    /// A scheduled job: where another one still runs, this one is skipped, which is a success.
    #[must_use]
    pub const fn schedule() -> Self {
        Self(Kind::Skip)
    }

    /// A batch of SQS messages or stream records under one key: where the handler did not run, the whole batch comes back,
    /// as with an error, but without one. See [`batch`](crate::layer::batch) for a key per record.
    ///
    /// Without `ReportBatchItemFailures` Lambda would not read this answer, and delete the batch.
    #[must_use]
    pub const fn whole_batch(_: ReportBatchItemFailures) -> Self {
        Self(Kind::WholeBatch)
    }

    /// Answers a busy key with 409 Conflict instead of 423 Locked. For sources that are no HTTP it changes nothing.
    #[must_use]
    pub fn busy_is_conflict(self) -> Self {
        match self.0 {
            Kind::Http(shape, _) => Self(Kind::Http(shape, http::BusyStatus::Conflict)),
            kind => Self(kind),
        }
    }
}

impl Sealed for AnswerFor {}

impl<R> Answers<R> for AnswerFor {
    type Response = Answered<R>;

    fn response(&self, response: R) -> Answered<R> {
        Answered::Handler(response)
    }

    fn refusal<E>(&self, error: Error) -> Result<Answered<R>, InvocationError<E>> {
        match &self.0 {
            Kind::Http(shape, busy) => match http::problem(&error, *busy) {
                Some(problem) => Ok(Answered::Layer(shape.response(&problem))),
                None => Err(error.into()),
            },
            Kind::Cause => Err(InvocationError::Lease { cause: Some(cause::of(&error)), error }),
            Kind::WholeBatch => match &error {
                Error::LeaseBusy(_) | Error::DeadlineTooClose(_) | Error::GrantTooLate(_) => {
                    Ok(Answered::Layer(all_of_it_failed()))
                }
                _ => Err(error.into()),
            },
            Kind::Skip => match &error {
                Error::LeaseBusy(_) => Ok(Answered::Layer(skipped(&error))),
                _ => Err(error.into()),
            },
        }
    }
}

/// What Lambda takes for the failure of everything: a failed item without a name.
fn all_of_it_failed() -> Value {
    json!({ "batchItemFailures": [{ "itemIdentifier": "" }] })
}

fn skipped(error: &Error) -> Value {
    json!({ "skipped": true, "reason": "someone else is running", "cause": cause::of(error) })
}
