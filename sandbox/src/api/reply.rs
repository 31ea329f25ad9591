//! Replies of the two APIs, in the form that AWS's clients expect.

use http_body_util::Full;
use hyper::{StatusCode, body::Bytes, header::HeaderValue};
use serde_json::{Value, json};

/// A status, headers and a JSON body.
#[derive(Debug)]
pub(crate) struct Reply {
    status: StatusCode,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

impl Reply {
    pub(crate) fn ok(body: &Value) -> Self {
        Self::new(StatusCode::OK, body)
    }

    /// An invocation's payload.
    pub(crate) fn payload(body: Bytes) -> Self {
        Self { status: StatusCode::OK, headers: Vec::new(), body }
    }

    /// What was posted was taken.
    pub(crate) fn accepted() -> Self {
        Self::new(StatusCode::ACCEPTED, &json!({ "status": "OK" }))
    }

    pub(crate) fn refused(status: StatusCode, error_type: &str, message: impl Into<String>) -> Self {
        Self::new(status, &json!({ "errorType": error_type, "errorMessage": message.into() }))
    }

    /// The environment has gone on, or is no more.
    pub(crate) fn gone() -> Self {
        let message = "the environment is being reset or has ended";
        Self::refused(StatusCode::GONE, "Sandbox.EnvironmentEnded", message)
    }

    fn new(status: StatusCode, body: &Value) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::from(body.to_string()) }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn status(&self) -> u16 {
        self.status.as_u16()
    }

    pub(super) fn into_http(self) -> hyper::Response<Full<Bytes>> {
        let mut response = hyper::Response::new(Full::new(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(hyper::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in self.headers {
            match HeaderValue::from_str(&value) {
                Ok(value) => drop(headers.insert(name, value)),
                Err(_) => tracing::warn!(name, "a header's value has characters that can't be sent; it was left out"),
            }
        }
        response
    }
}
