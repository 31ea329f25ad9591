//! One invocation of a function of the stack, to its end, by this machine's own clock.

use std::time::{Duration, Instant};

use aws_config::SdkConfig;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_lambda::Client;
use aws_sdk_lambda::operation::RequestId as _;
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::LogType;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::log_tail::Report;
use super::stack::{Deployed, Role};
use crate::refused::Refused;

/// Longer than any function of the stack may take, and its environment's start.
const PATIENCE: Duration = Duration::from_secs(90);
/// After how long a throttled invocation, or one of a function that is not ready yet, is tried again.
const DELAYS: [u64; 5] = [500, 1_000, 2_000, 4_000, 8_000];

/// Invokes, and never a second time but where Lambda says that it has not begun.
#[derive(Clone, Debug)]
pub(super) struct Invoker {
    lambda: Client,
    deployed: Deployed,
}

/// An invocation that Lambda carried out.
#[derive(Clone, Debug)]
pub(super) struct Invocation {
    pub(super) function: String,
    pub(super) request_id: String,
    pub(super) answered: Instant,
    pub(super) result: Result<Answer, FunctionError>,
    pub(super) report: Option<Report>,
}

/// What the function tells of an invocation that came to its end: `verify/src/answer.rs`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Answer {
    pub(super) token: Option<u64>,
    pub(super) environment: String,
    pub(super) waited_ms: u64,
    pub(super) took_over: bool,
    pub(super) renewals: u64,
    pub(super) writes_refused: u64,
    pub(super) request_failures: u64,
    pub(super) write_units: f64,
    pub(super) read_units: f64,
}

/// How an invocation failed, as Lambda tells its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FunctionError {
    pub(super) error_type: String,
    pub(super) message: String,
}

impl Answer {
    /// Whether the key was somebody else's at first. Every acquisition takes a few milliseconds, so the wait does not tell.
    pub(super) fn found_it_held(&self) -> bool {
        self.writes_refused > 0 || self.read_units > 0.0
    }
}

impl FunctionError {
    fn read(payload: &[u8]) -> Self {
        let document: Value = serde_json::from_slice(payload).unwrap_or_default();
        let text = |name: &str| document[name].as_str().map(str::to_owned);
        Self {
            error_type: text("errorType").unwrap_or_else(|| "an error without a type".to_owned()),
            message: text("errorMessage").unwrap_or_else(|| String::from_utf8_lossy(payload).into_owned()),
        }
    }

    /// By its message: Lambda has not always given this one a type.
    pub(super) fn is_timeout(&self) -> bool {
        self.message.contains("Task timed out") || self.error_type == "Sandbox.Timedout"
    }

    pub(super) fn told(&self) -> String {
        format!("{}: {}", self.error_type, self.message)
    }
}

impl Invoker {
    pub(super) fn new(config: &SdkConfig, deployed: Deployed) -> Self {
        let timeouts = TimeoutConfig::builder().operation_timeout(PATIENCE).read_timeout(PATIENCE).build();
        let config = aws_sdk_lambda::config::Builder::from(config)
            // A second invocation is another one: the SDK knows nothing of scenes.
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeouts)
            .build();
        Self { lambda: Client::from_conf(config), deployed }
    }

    pub(super) fn lambda(&self) -> &Client {
        &self.lambda
    }

    /// Invokes the function and waits for its end.
    ///
    /// # Errors
    ///
    /// What Lambda refused, or the way to it.
    pub(super) async fn invoke(&self, role: Role, event: &Value) -> Result<Invocation, Refused> {
        for delay in DELAYS {
            match self.once(role, event).await {
                Err(refused) if has_not_begun(&refused) => sleep(Duration::from_millis(delay)).await,
                invoked => return invoked,
            }
        }
        self.once(role, event).await.map_err(|mut refused| {
            if refused.is("TooManyRequestsException") {
                refused.told.push_str(
                    "; it was tried for 15 s: the account's concurrency is used up, two invocations at once are needed",
                );
            }
            refused
        })
    }

    async fn once(&self, role: Role, event: &Value) -> Result<Invocation, Refused> {
        let function = self.deployed.function(role).to_owned();
        let sent = self
            .lambda
            .invoke()
            .function_name(&function)
            .log_type(LogType::Tail)
            .payload(Blob::new(event.to_string()))
            .send()
            .await;
        let answered = Instant::now();
        let output = sent.map_err(|error| Refused::of(&format!("Invoke {function}"), &error))?;
        let payload = output.payload().map(|payload| payload.as_ref().to_vec()).unwrap_or_default();
        let tail = output.log_result().and_then(|tail| STANDARD.decode(tail).ok()).unwrap_or_default();
        let result = match output.function_error() {
            Some(_) => Err(FunctionError::read(&payload)),
            None => serde_json::from_slice(&payload).map_err(|error| FunctionError {
                error_type: "an answer that is not this function's".to_owned(),
                message: format!("{error}: {}", String::from_utf8_lossy(&payload)),
            }),
        };
        Ok(Invocation {
            request_id: output.request_id().unwrap_or_default().to_owned(),
            function,
            answered,
            result,
            report: Report::find(&String::from_utf8_lossy(&tail)),
        })
    }
}

/// Throttled, or its function is being created or woken: Lambda has not begun it.
fn has_not_begun(refused: &Refused) -> bool {
    refused.is("TooManyRequestsException") || refused.is("ResourceConflictException")
}

impl Invocation {
    pub(super) fn json(&self) -> Value {
        let error = self.result.as_ref().err();
        json!({
            "function": self.function, "request_id": self.request_id,
            "error_type": error.map(|error| &error.error_type), "error": error.map(|error| &error.message),
            "token": self.result.as_ref().ok().and_then(|answer| answer.token).map(|token| token.to_string()),
            "waited_ms": self.result.as_ref().ok().map(|answer| answer.waited_ms),
            "report": self.report.as_ref().map(Report::json),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_known_with_and_without_a_type() {
        let old =
            FunctionError::read(br#"{"errorMessage":"2024-01-01T00:00:00Z 1 Task timed out after 6.00 seconds"}"#);
        let new = FunctionError::read(
            br#"{"errorType":"Sandbox.Timedout","errorMessage":"RequestId: 1 Error: Task timed out after 6.00 seconds"}"#,
        );
        assert!(old.is_timeout() && new.is_timeout());
        let other = FunctionError::read(br#"{"errorType":"LeaseBusy","errorMessage":"busy"}"#);
        assert!(!other.is_timeout() && other.told() == "LeaseBusy: busy");
        assert_eq!(FunctionError::read(b"no JSON").message, "no JSON");
    }
}
