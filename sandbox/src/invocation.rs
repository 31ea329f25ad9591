//! An invocation as a caller sees it: what is asked, the handle to wait on, and the outcome.

use std::time::{Duration, Instant};

use hyper::body::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::{EnvironmentId, EventKind, InvokeOrder, log::Log};

/// What to invoke the function with. A JSON value, text or bytes convert into it.
#[derive(Debug, Clone)]
pub struct Invocation {
    pub(crate) payload: Bytes,
    pub(crate) request_id: String,
    pub(crate) tenant: Option<String>,
    pub(crate) client_context: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) order: Option<InvokeOrder>,
}

impl Invocation {
    /// An invocation with this payload, which Lambda expects to be JSON.
    pub fn new(payload: impl Into<Vec<u8>>) -> Self {
        Self {
            payload: Bytes::from(payload.into()),
            request_id: Uuid::new_v4().to_string(),
            tenant: None,
            client_context: None,
            timeout: None,
            order: None,
        }
    }

    /// Sets the request id, which is a fresh UUID otherwise; an asynchronous retry repeats one.
    pub fn request_id(mut self, id: impl Into<String>) -> Self {
        self.request_id = id.into();
        self
    }

    /// Names the tenant, as functions with tenant isolation get it.
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Sets the client context, a JSON text.
    pub fn client_context(mut self, context: impl Into<String>) -> Self {
        self.client_context = Some(context.into());
        self
    }

    /// A timeout for this invocation alone, in place of the function's.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// When the extensions hear of this invocation, in place of the sandbox's setting.
    pub fn order(mut self, order: InvokeOrder) -> Self {
        self.order = Some(order);
        self
    }
}

impl From<Value> for Invocation {
    fn from(payload: Value) -> Self {
        Self::new(payload.to_string())
    }
}

impl From<&Value> for Invocation {
    fn from(payload: &Value) -> Self {
        Self::new(payload.to_string())
    }
}

impl From<&str> for Invocation {
    fn from(payload: &str) -> Self {
        Self::new(payload)
    }
}

impl From<String> for Invocation {
    fn from(payload: String) -> Self {
        Self::new(payload)
    }
}

impl From<Vec<u8>> for Invocation {
    fn from(payload: Vec<u8>) -> Self {
        Self::new(payload)
    }
}

/// An invocation under way.
#[derive(Debug)]
pub struct InvocationHandle {
    request_id: String,
    outcome: oneshot::Receiver<Outcome>,
}

impl InvocationHandle {
    /// The request id, to find the invocation's events in the log.
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// Waits until the caller would have an answer. The function's timeout and the limits of an initialization bound it.
    ///
    /// # Cancellation
    ///
    /// Dropping the future, or the handle, doesn't end the invocation, as with a caller that hangs up.
    pub async fn outcome(self) -> Outcome {
        self.outcome.await.unwrap_or_else(|_| {
            let message = "the sandbox was dropped before the invocation ended".to_owned();
            let error = InvocationError::new("Sandbox.Stopped", message);
            Outcome { request_id: self.request_id, environment: None, took: Duration::ZERO, result: Err(error) }
        })
    }
}

/// What a caller gets.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The invocation's request id.
    pub request_id: String,
    /// The environment that ran it; none if it never reached one.
    pub environment: Option<EnvironmentId>,
    /// From asking to the answer, the wait for an environment and its initialization included.
    pub took: Duration,
    /// The response or the error.
    pub result: Result<Response, InvocationError>,
}

impl Outcome {
    /// Whether the handler succeeded.
    pub fn is_success(&self) -> bool {
        self.result.is_ok()
    }

    /// The response, if the handler succeeded.
    pub fn response(&self) -> Option<&Response> {
        self.result.as_ref().ok()
    }

    /// The response as JSON; none if there is no response or it is no JSON.
    pub fn json(&self) -> Option<Value> {
        self.response().and_then(|response| response.json().ok())
    }

    /// The error, if the invocation failed.
    pub fn error(&self) -> Option<&InvocationError> {
        self.result.as_ref().err()
    }

    /// The error's type, such as `Sandbox.Timedout`, `Runtime.ExitError`, `Extension.Crash` or the handler's own.
    pub fn error_type(&self) -> Option<&str> {
        self.error().map(|error| error.error_type.as_str())
    }
}

/// A handler's response.
#[derive(Debug, Clone)]
pub struct Response {
    pub(crate) body: Bytes,
    pub(crate) content_type: Option<String>,
    pub(crate) streamed: bool,
}

impl Response {
    /// The body as it came; a streamed one with its prelude.
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// The body as text, with replacements where it isn't UTF-8.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Errors
    ///
    /// When it isn't JSON or not of the type `T`.
    pub fn json<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_slice(&self.body)
    }

    /// The content type the runtime gave.
    pub fn content_type(&self) -> Option<&str> {
        self.content_type.as_deref()
    }

    /// Whether the response was streamed.
    pub fn is_streamed(&self) -> bool {
        self.streamed
    }
}

/// A failed invocation, as Lambda reports it to the caller.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error_type}: {message}")]
pub struct InvocationError {
    /// The error's type: Lambda's own or the handler's.
    pub error_type: String,
    /// The error's message.
    pub message: String,
    /// The whole error document that the caller gets.
    pub body: Value,
}

impl InvocationError {
    pub(crate) fn new(error_type: &str, message: String) -> Self {
        let body = json!({ "errorType": error_type, "errorMessage": message });
        Self { error_type: error_type.to_owned(), message, body }
    }

    /// From what a runtime or extension posted: its document, or else the type in its header.
    pub(crate) fn posted(body: &[u8], header: Option<&str>, fallback: &str) -> Self {
        let document: Option<Value> = serde_json::from_slice(body).ok();
        let text = |name: &str| document.as_ref()?.get(name)?.as_str().map(str::to_owned);
        let error_type = text("errorType").or_else(|| header.map(str::to_owned)).unwrap_or_else(|| fallback.to_owned());
        let message = text("errorMessage").unwrap_or_default();
        let body = document.unwrap_or_else(|| json!({ "errorType": error_type, "errorMessage": message }));
        Self { error_type, message, body }
    }
}

/// An invocation on its way through the sandbox, with the line back to its caller.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) invocation: Invocation,
    asked: Instant,
    caller: Option<oneshot::Sender<Outcome>>,
}

impl Job {
    pub(crate) fn new(invocation: Invocation) -> (Self, InvocationHandle) {
        let (caller, outcome) = oneshot::channel();
        let handle = InvocationHandle { request_id: invocation.request_id.clone(), outcome };
        (Self { invocation, asked: Instant::now(), caller: Some(caller) }, handle)
    }

    pub(crate) fn request_id(&self) -> &str {
        &self.invocation.request_id
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.caller.is_none()
    }

    /// Answers the caller, once; later answers are dropped.
    pub(crate) fn answer(
        &mut self,
        log: &Log,
        environment: Option<EnvironmentId>,
        init: u32,
        result: Result<Response, InvocationError>,
    ) {
        let Some(caller) = self.caller.take() else { return };
        let request_id = self.invocation.request_id.clone();
        let error_type = result.as_ref().err().map(|error| error.error_type.clone());
        log.push(environment, init, EventKind::InvocationAnswered { request_id: request_id.clone(), error_type });
        // A caller that hung up is no concern of the environment's.
        let _ = caller.send(Outcome { request_id, environment, took: self.asked.elapsed(), result });
    }
}
