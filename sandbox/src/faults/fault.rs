//! What may happen to a request and its reply.

use std::time::{Duration, SystemTime};

use http_body_util::Full;
use hyper::{StatusCode, body::Bytes, header};
use serde_json::{Value, json};

/// What happens to one request.
///
/// A request that is forwarded is carried out even when its client has gone in the meantime.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Nothing: it passes.
    None,
    /// It never reaches DynamoDB, and the connection ends so.
    LoseRequest(End),
    /// It is carried out, but the reply is lost, and the connection ends so.
    LoseReply(End),
    /// It reaches DynamoDB this much later.
    DelayRequest(Duration),
    /// It is carried out at once, and its reply comes this much later.
    DelayReply(Duration),
    /// It never reaches DynamoDB; this is the answer.
    Answer(Answer),
    /// It is carried out, but this is the answer.
    AnswerAfterWrite(Answer),
    /// It is carried out and answered, with another `Date`.
    Date(DateHeader),
    /// It waits in front of DynamoDB until [`Injected::open`](super::Injected::open), then passes.
    HoldRequest,
    /// It is carried out; its reply waits until [`Injected::open`](super::Injected::open).
    HoldReply,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// In good order.
    Close,
    /// By a reset.
    Reset,
    /// Not at all: the client waits until it gives up.
    Silence,
}

/// What the header `Date` of a reply becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DateHeader {
    /// There is none.
    Missing,
    /// That of this many seconds later, or earlier.
    Shifted(i64),
    /// This text.
    Text(String),
    /// As it is, but beside an `Age`: the reply comes from a cache.
    Aged(u64),
}

/// An answer that DynamoDB did not give.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    status: u16,
    body: Value,
}

impl Answer {
    /// The names by which DynamoDB and its front throttle requests.
    pub const THROTTLES: [&'static str; 4] =
        ["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "Throttling"];

    /// An error by its name.
    pub fn error(status: u16, code: &str, message: &str) -> Self {
        let namespace = "com.amazonaws.dynamodb.v20120810";
        Self { status, body: json!({ "__type": format!("{namespace}#{code}"), "message": message }) }
    }

    /// A throttle of this name.
    pub fn throttled(code: &str) -> Self {
        Self::error(400, code, "The level of configured provisioned throughput for the table was exceeded")
    }

    /// A server error.
    pub fn server_error(status: u16) -> Self {
        Self::error(status, "InternalServerError", "The request could not be completed")
    }

    /// A transaction that works on the row.
    pub fn transaction_conflict() -> Self {
        Self::error(400, "TransactionConflictException", "Transaction is ongoing for the item")
    }

    /// A transaction that was cancelled for these reasons, one an operation; `None` is no reason.
    pub fn transaction_cancelled(reasons: &[&str]) -> Self {
        let mut answer = Self::error(400, "TransactionCanceledException", "Transaction cancelled, see its reasons");
        let reasons: Vec<_> = reasons.iter().map(|code| json!({ "Code": code })).collect();
        answer.body["CancellationReasons"] = json!(reasons);
        answer
    }

    /// Credentials that have run out.
    pub fn expired_token() -> Self {
        Self::error(400, "ExpiredTokenException", "The security token included in the request is expired")
    }

    pub(super) fn into_http(self) -> hyper::Response<Full<Bytes>> {
        let mut response = hyper::Response::new(Full::new(Bytes::from(self.body.to_string())));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/x-amz-json-1.0"));
        headers.insert("x-amzn-requestid", header::HeaderValue::from_static("INJECTED"));
        // DynamoDB's own errors have one, too.
        DateHeader::Shifted(0).apply(headers);
        response
    }
}

impl DateHeader {
    /// Changes a reply's header.
    pub(super) fn apply(&self, headers: &mut hyper::HeaderMap) {
        let text = match self {
            Self::Missing => None,
            Self::Text(text) => Some(text.clone()),
            Self::Shifted(seconds) => Some(shifted(*seconds)),
            Self::Aged(seconds) => {
                headers.insert(header::AGE, (*seconds).into());
                return;
            }
        };
        match text.and_then(|text| header::HeaderValue::from_str(&text).ok()) {
            Some(date) => drop(headers.insert(header::DATE, date)),
            None => drop(headers.remove(header::DATE)),
        }
    }
}

/// The time that is this many seconds from now, as HTTP writes it.
fn shifted(seconds: i64) -> String {
    let by = Duration::from_secs(seconds.unsigned_abs());
    let now = SystemTime::now();
    let at = if seconds < 0 { now.checked_sub(by) } else { now.checked_add(by) };
    httpdate::fmt_http_date(at.unwrap_or(SystemTime::UNIX_EPOCH))
}

#[cfg(test)]
mod tests {
    use hyper::HeaderMap;

    use super::*;

    #[test]
    fn a_date_can_go_move_and_be_nonsense() {
        let mut headers = HeaderMap::new();
        headers.insert(header::DATE, header::HeaderValue::from_static("Tue, 14 Nov 2023 22:13:20 GMT"));
        DateHeader::Shifted(3_600).apply(&mut headers);
        let later = httpdate::parse_http_date(headers[header::DATE].to_str().unwrap()).unwrap();
        let ahead = later.duration_since(SystemTime::now()).unwrap();
        assert!((3_500..=3_600).contains(&ahead.as_secs()), "{ahead:?}");
        DateHeader::Text("yesterday".to_owned()).apply(&mut headers);
        assert_eq!(headers[header::DATE], "yesterday");
        DateHeader::Missing.apply(&mut headers);
        assert!(!headers.contains_key(header::DATE));
    }
}
