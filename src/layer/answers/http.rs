//! Refusals as HTTP responses: a status, `Retry-After`, and a problem document (RFC 9457) that tells a stranger nothing.

use std::time::Duration;

use serde_json::{Value, json};

use crate::error::Error;

/// How a response is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::layer) enum Shape {
    ApiGatewayV1,
    ApiGatewayV2,
    Alb,
}

/// What a busy key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::layer) enum BusyStatus {
    Locked,
    Conflict,
}

/// A refusal, before it is written down. It names no key, holder or table: those are not the caller's to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::layer) struct Problem {
    status: u16,
    title: &'static str,
    detail: &'static str,
    retry_after: Option<u64>,
}

/// What there is to say over HTTP, of those refusals that are the caller's to know.
pub(in crate::layer) fn problem(error: &Error, busy_status: BusyStatus) -> Option<Problem> {
    match error {
        Error::LeaseBusy(busy) => {
            let (status, title) = match busy_status {
                BusyStatus::Locked => (423, "Locked"),
                BusyStatus::Conflict => (409, "Conflict"),
            };
            let detail = "Another request works on this resource. Try again later.";
            Some(Problem { status, title, detail, retry_after: Some(whole_seconds(busy.retry_after)) })
        }
        // The next one has its time before it: by how much later it comes does not matter.
        Error::DeadlineTooClose(_) | Error::GrantTooLate(_) => Some(Problem {
            status: 503,
            title: "Service Unavailable",
            detail: "There was too little time left for this request. Try again.",
            retry_after: Some(1),
        }),
        // No `Retry-After` from here on: what the handler had done by then is not known.
        Error::OutOfTime(_) => Some(Problem {
            status: 504,
            title: "Gateway Timeout",
            detail: "The request took too long, was interrupted, and may have been carried out in part.",
            retry_after: None,
        }),
        Error::LeaseLost(_) | Error::KeeperGone(_) => Some(Problem {
            status: 500,
            title: "Internal Server Error",
            detail: "The request was interrupted and may have been carried out in part.",
            retry_after: None,
        }),
        _ => None,
    }
}

/// What there is to say over HTTP of any refusal, where none may stay an error.
#[cfg(feature = "http")]
pub(in crate::layer) fn any_problem(error: &Error, busy_status: BusyStatus) -> Problem {
    if let Some(problem) = problem(error, busy_status) {
        return problem;
    }
    match error {
        Error::StoreThrottled(_) | Error::StoreUnavailable(_) | Error::TransactionConflict(_) => Problem {
            status: 503,
            title: "Service Unavailable",
            detail: "The request could not be taken up. Try again.",
            retry_after: Some(1),
        },
        Error::KeyInvalid(_) | Error::KeyNotFound(_) => Problem {
            status: 400,
            title: "Bad Request",
            detail: "The request does not say what it is about.",
            retry_after: None,
        },
        _ => Problem {
            status: 500,
            title: "Internal Server Error",
            detail: "The request could not be taken up.",
            retry_after: None,
        },
    }
}

impl Problem {
    fn headers(&self) -> impl Iterator<Item = (&'static str, String)> + use<> {
        let content_type = ("content-type", "application/problem+json".to_owned());
        std::iter::once(content_type).chain(self.retry_after.map(|seconds| ("retry-after", seconds.to_string())))
    }

    fn body(&self) -> String {
        let Self { status, title, detail, .. } = self;
        json!({ "type": "about:blank", "title": title, "status": status, "detail": detail }).to_string()
    }

    /// The response as a route's handler would write it.
    #[cfg(feature = "http")]
    pub(in crate::layer) fn response(&self) -> ::http::Response<String> {
        use ::http::{HeaderName, HeaderValue, StatusCode};

        let mut response = ::http::Response::new(self.body());
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        for (name, value) in self.headers() {
            if let Ok(value) = HeaderValue::try_from(value) {
                response.headers_mut().insert(HeaderName::from_static(name), value);
            }
        }
        response
    }
}

impl Shape {
    /// The response as its source reads it.
    pub(super) fn response(self, problem: &Problem) -> Value {
        let Problem { status, title, .. } = problem;
        let headers: serde_json::Map<_, _> =
            problem.headers().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
        let multi = headers.iter().map(|(name, value)| (name.clone(), json!([value])));
        let multi: serde_json::Map<_, _> = multi.collect();
        let mut response =
            json!({ "statusCode": status, "headers": headers, "body": problem.body(), "isBase64Encoded": false });
        if self == Self::Alb {
            // A target group with multi-value headers reads only those, one without only the others.
            response["multiValueHeaders"] = multi.into();
            response["statusDescription"] = format!("{status} {title}").into();
        }
        response
    }
}

/// `Retry-After` counts whole seconds, and one too few would only be refused again.
fn whole_seconds(duration: Duration) -> u64 {
    (duration.as_secs() + u64::from(duration.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_rounded_up() {
        let millis = [0, 1, 1_000, 1_001, 11_000].map(Duration::from_millis);
        assert_eq!(millis.map(whole_seconds), [1, 1, 1, 2, 11]);
    }
}
