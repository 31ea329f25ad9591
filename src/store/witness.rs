//! Sees one request out, reads the `Date` header of its answer, and keeps what that says of the capacity it took.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use aws_sdk_dynamodb::config::interceptors::{
    AfterDeserializationInterceptorContextRef, BeforeDeserializationInterceptorContextRef,
    BeforeTransmitInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_smithy_runtime_api::client::interceptors::dyn_dispatch_hint;
use aws_smithy_runtime_api::http::Headers;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;

use super::https::endpoint;

/// Notes of one request whether it was ever sent, and its answer's `Date`: before the answer is deserialized, so that it
/// is seen whether that is a success or an error.
#[derive(Clone, Debug, Default)]
pub(super) struct Witness {
    notes: Arc<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    sent: AtomicBool,
    date: OnceLock<u64>,
    consumed: OnceLock<u64>,
    endpoint: OnceLock<String>,
}

impl Witness {
    /// Whether the request was handed to a connection, or to one in the making.
    pub(super) fn saw_it_sent(&self) -> bool {
        self.notes.sent.load(Ordering::Relaxed)
    }

    /// Whom it was handed to.
    pub(super) fn endpoint(&self) -> Option<&str> {
        self.notes.endpoint.get().map(String::as_str)
    }

    /// The `Date` in seconds since the Unix epoch, if an answer came that had one that serves.
    pub(super) fn date(&self) -> Option<u64> {
        self.notes.date.get().copied()
    }

    /// Notes what the answer says that the request consumed.
    pub(super) fn note_consumed(&self, millionths: Option<u64>) {
        if let Some(millionths) = millionths {
            let _ = self.notes.consumed.set(millionths);
        }
    }

    /// What the request consumed, in millionths of a capacity unit, if its answer told.
    pub(super) fn consumed(&self) -> Option<u64> {
        self.notes.consumed.get().copied()
    }
}

#[dyn_dispatch_hint]
impl Intercept for Witness {
    fn name(&self) -> &'static str {
        "Witness"
    }

    fn read_before_transmit(
        &self,
        context: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let _ = self.notes.endpoint.set(endpoint(context.request().uri()));
        self.notes.sent.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(date) = server_time(context.response().headers()) {
            // Retries are off, so there is one answer; were there more, the first would be the cautious one.
            let _ = self.notes.date.set(date);
        }
        Ok(())
    }

    /// The SDK reads a success without a body as one that says nothing: of a table that has no rows, of a row that is absent.
    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let answer = context.response();
        let empty = answer.body().bytes().is_some_and(|body| body.trim_ascii().is_empty());
        if empty && answer.status().is_success() { Err("the answer is empty".into()) } else { Ok(()) }
    }
}

/// Only DynamoDB's own clock serves, and only its reading of now: an answer without a request id comes from something in
/// between, one with an `Age` from a cache, and one with two dates has been tampered with.
fn server_time(headers: &Headers) -> Option<u64> {
    let mut dates = headers.get_all("date");
    let date = dates.next()?;
    if dates.next().is_some() || headers.get("age").is_some() || headers.get("x-amzn-requestid").is_none() {
        return None;
    }
    let date = DateTime::from_str(date.trim(), Format::HttpDate).ok()?;
    u64::try_from(date.secs()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn read(headers: &[(&'static str, &'static str)]) -> Option<u64> {
        let mut all = Headers::new();
        all.append("x-amzn-RequestId", "1");
        for (name, value) in headers {
            all.append(*name, *value);
        }
        server_time(&all)
    }

    #[test]
    fn a_date_is_read_to_the_second() {
        assert_eq!(read(&[("Date", DATE)]), Some(784_111_777));
    }

    #[test]
    fn what_is_no_plain_date_does_not_serve() {
        assert_eq!(read(&[]), None);
        for odd in ["", "now", "784111777", "1994-11-06T08:49:37Z", "Sun, 06 Nov 1904 08:49:37 GMT"] {
            assert_eq!(read(&[("date", odd)]), None, "{odd}");
        }
        assert_eq!(read(&[("date", DATE), ("age", "0")]), None);
        assert_eq!(read(&[("date", DATE), ("date", DATE)]), None);
    }

    #[test]
    fn a_proxys_date_does_not_serve() {
        let mut headers = Headers::new();
        headers.append("date", DATE);
        assert_eq!(server_time(&headers), None);
    }
}
