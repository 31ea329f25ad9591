//! Lambda's Extensions API: registration, and one call of Next.

use std::time::Duration;

use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use lambda_extension::Extension;
use lambda_runtime_api_client::body::Body;
use lambda_runtime_api_client::{BoxError, PooledClient, build_request};
use serde::Deserialize;

/// The longest event that is read.
const MAX_EVENT: usize = 1024 * 1024;
/// How long an event may take whose head has come. Next itself may take forever.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// Where the Extensions API is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(Uri);

impl Endpoint {
    /// Reads `AWS_LAMBDA_RUNTIME_API`: `host:port`, or a URL that may have a path (`cargo lambda watch` sets one).
    ///
    /// # Errors
    ///
    /// When it is neither.
    pub fn parse(text: &str) -> Result<Self, BadEndpoint> {
        // The registering client takes the variable as it stands and does not forgive one without a host.
        let uri: Option<Uri> = text.parse().ok().filter(|uri: &Uri| uri.authority().is_some());
        uri.map(Self).ok_or_else(|| BadEndpoint { found: text.to_owned() })
    }
}

/// `AWS_LAMBDA_RUNTIME_API` names no host.
#[derive(Debug, thiserror::Error)]
#[error("AWS_LAMBDA_RUNTIME_API is neither host:port nor an http URL: `{found}`")]
pub struct BadEndpoint {
    found: String,
}

/// Which events the extension asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Events {
    /// Each invocation, and the end.
    InvokeAndShutdown,
    /// Only the end: Managed Instances refuse more, and never freeze.
    Shutdown,
}

impl Events {
    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::InvokeAndShutdown => &["INVOKE", "SHUTDOWN"],
            Self::Shutdown => &["SHUTDOWN"],
        }
    }
}

/// Registers the extension; the identifier it goes by from now on.
///
/// The API's address comes from the process's environment: that must have been read as an [`Endpoint`] before.
///
/// # Errors
///
/// When the API can't be reached or refuses.
pub async fn register(name: &str, events: Events) -> Result<String, BoxError> {
    let extension = Extension::new().with_extension_name(name).with_events(events.names());
    Ok(extension.register().await?.extension_id)
}

/// What Next answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An invocation began.
    Invoke {
        /// Its request id.
        request_id: String,
        /// When it has to be over, in milliseconds since the Unix epoch; 0 where that is unknown.
        deadline_ms: u64,
    },
    /// The environment ends.
    Shutdown {
        /// Why: `SPINDOWN`, `TIMEOUT`, `FAILURE` or what may come.
        reason: String,
        /// When the extension has to be gone, in milliseconds since the Unix epoch; 0 where that is unknown.
        deadline_ms: u64,
    },
    /// One that this release does not know.
    Unknown {
        /// What it calls itself.
        name: String,
    },
}

/// An event as it stands in a body. Only what is needed is asked for.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    event_type: String,
    #[serde(default)]
    request_id: String,
    #[serde(default)]
    deadline_ms: u64,
    #[serde(default)]
    shutdown_reason: String,
}

/// Why Next brought no event.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NextError {
    /// The request could not be made of the identifier that the registration gave.
    #[error("the registered identifier makes no request: {0}")]
    Request(#[from] http::Error),
    /// The connection failed.
    #[error("the Extensions API can't be reached: {}", chain(.0.as_ref()))]
    Transport(BoxError),
    /// The API answered with something else than 200.
    #[error("the Extensions API answered {status}: {body}")]
    Status {
        /// What it answered.
        status: StatusCode,
        /// The beginning of what it said.
        body: String,
    },
    /// The answer began and did not end in time.
    #[error("the Extensions API's answer stopped half-way")]
    Stalled,
    /// The answer does not end where an event's would.
    #[error("the Extensions API's answer is longer than {MAX_EVENT} bytes")]
    TooLong,
    /// The answer is no event.
    #[error("the Extensions API's answer is no event: {0}")]
    NoEvent(#[from] serde_json::Error),
}

/// An error with everything that lies below it: hyper's own words don't say what the system said.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let below = std::iter::successors(error.source(), |error| error.source());
    below.fold(error.to_string(), |text, error| format!("{text}: {error}"))
}

/// The registered extension's end of the API.
#[derive(Debug)]
pub struct Api {
    endpoint: Endpoint,
    extension_id: String,
    /// Its connection is gone after a failure: whatever was wrong with it must not meet the next request.
    client: Option<PooledClient>,
}

impl Api {
    /// The API as seen by the extension that was registered under this identifier.
    #[must_use]
    pub const fn new(endpoint: Endpoint, extension_id: String) -> Self {
        Self { endpoint, extension_id, client: None }
    }

    /// Says that the extension is done, and waits for what comes next, however long that takes.
    ///
    /// # Errors
    ///
    /// When no event came. It can be asked again: on a new connection.
    ///
    /// # Cancellation
    ///
    /// An event that was under way is lost.
    pub async fn next(&mut self) -> Result<Event, NextError> {
        let client = self
            .client
            .take()
            .unwrap_or_else(|| PooledClient::builder().with_endpoint(self.endpoint.0.clone()).build());
        let event = ask(&client, &self.extension_id).await?;
        self.client = Some(client);
        Ok(event)
    }
}

async fn ask(client: &PooledClient, extension_id: &str) -> Result<Event, NextError> {
    let request: Request<Body> = build_request()
        .uri("/2020-01-01/extension/event/next")
        .header("Lambda-Extension-Identifier", extension_id)
        .body(Body::empty())?;
    let response = client.call(request).await.map_err(NextError::Transport)?;
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_EVENT).collect();
    let body = tokio::time::timeout(BODY_TIMEOUT, body).await.map_err(|_| NextError::Stalled)?;
    let body = body.map_err(unread)?.to_bytes();
    if status != StatusCode::OK {
        let body = String::from_utf8_lossy(&body).chars().take(200).collect();
        return Err(NextError::Status { status, body });
    }
    Ok(read_event(&body)?)
}

fn unread(error: BoxError) -> NextError {
    if error.is::<LengthLimitError>() { NextError::TooLong } else { NextError::Transport(error) }
}

fn read_event(body: &[u8]) -> serde_json::Result<Event> {
    let Wire { event_type, request_id, deadline_ms, shutdown_reason } = serde_json::from_slice(body)?;
    Ok(match event_type.as_str() {
        "INVOKE" => Event::Invoke { request_id, deadline_ms },
        "SHUTDOWN" => Event::Shutdown { reason: shutdown_reason, deadline_ms },
        _ => Event::Unknown { name: event_type },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_host_and_a_port_or_a_url() {
        for text in ["127.0.0.1:9001", "localhost:9001", "http://[::1]:9000/.rt/function", "http://host"] {
            assert!(Endpoint::parse(text).is_ok(), "{text}");
        }
        for text in ["", "/path", "host:port:more", "http://", "a b"] {
            let error = Endpoint::parse(text).unwrap_err().to_string();
            assert!(error.contains("AWS_LAMBDA_RUNTIME_API") && error.contains(text), "{text}: {error}");
        }
    }

    #[test]
    fn events_are_read_with_what_is_there() {
        let invoke = br#"{"eventType":"INVOKE","deadlineMs":1800000000000,"requestId":"r","invokedFunctionArn":"arn","tracing":{"type":"X-Amzn-Trace-Id","value":"v"}}"#;
        assert_eq!(
            read_event(invoke).unwrap(),
            Event::Invoke { request_id: "r".to_owned(), deadline_ms: 1_800_000_000_000 }
        );
        let bare = br#"{"eventType":"SHUTDOWN"}"#;
        assert_eq!(read_event(bare).unwrap(), Event::Shutdown { reason: String::new(), deadline_ms: 0 });
        let new = br#"{"eventType":"RESTORE","more":[1]}"#;
        assert_eq!(read_event(new).unwrap(), Event::Unknown { name: "RESTORE".to_owned() });
    }

    #[test]
    fn what_is_no_event_is_an_error() {
        for body in ["", "[]", "{}", "null", r#"{"eventType":7}"#, r#"{"eventType":"INVOKE","deadlineMs":"soon"}"#] {
            assert!(read_event(body.as_bytes()).is_err(), "{body}");
        }
    }
}
