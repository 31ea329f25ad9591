//! One function of the stack: its sandbox, what Lambda tells about it, and its invocations.

use std::time::{Duration, Instant};

use hyper::body::Bytes;
use serde_json::{Value, json};

use super::{Stack, StackFunction, tail};
use crate::{DynamoDb, Error, Invocation, InvocationHandle, Outcome, Overflow, Sandbox, settings::ACCOUNT};

/// How long an initialization may take: a machine that builds meanwhile is slow.
const INIT_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Function {
    wanted: StackFunction,
    region: String,
    sandbox: Sandbox,
    active_from: Instant,
}

/// What came of an invocation, for the caller.
#[derive(Debug)]
pub(super) enum Invoked {
    /// The function ran. Its error's type stands in the body.
    Ran { request_id: String, failed: bool, body: Bytes, tail: String },
    /// Lambda did not get as far as that.
    Refused { status: u16, code: &'static str, message: String },
}

impl Function {
    pub(super) async fn start(stack: &Stack, wanted: &StackFunction, dynamodb_url: &str) -> Result<Self, Error> {
        let mut builder = Sandbox::builder()
            .function(&wanted.program)
            .name(&wanted.name)
            .region(stack.region())
            .timeout(Duration::from_secs(wanted.timeout_s.into()))
            .init_timeout(INIT_TIMEOUT)
            .memory_mb(wanted.memory_mb)
            .environments(wanted.concurrency)
            .overflow(Overflow::Throttle)
            .dynamodb(DynamoDb::Endpoint(dynamodb_url.to_owned()))
            .env("AWS_LAMBDA_LOG_FORMAT", "JSON")
            .env("AWS_LAMBDA_LOG_LEVEL", "INFO");
        for extension in &wanted.extensions {
            builder = builder.extension(extension);
        }
        for (name, value) in &wanted.variables {
            builder = builder.env(name, value);
        }
        let active_from = Instant::now() + Duration::from_millis(wanted.pending_ms);
        Ok(Self {
            sandbox: builder.start().await?,
            wanted: wanted.clone(),
            region: stack.region().to_owned(),
            active_from,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.wanted.name
    }

    pub(super) fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    pub(super) fn memory_mb(&self) -> u32 {
        self.wanted.memory_mb
    }

    fn state(&self) -> &'static str {
        if Instant::now() < self.active_from { "Pending" } else { "Active" }
    }

    /// The answer to `GetFunctionConfiguration`.
    pub(super) fn configuration(&self) -> Value {
        let layers: Vec<_> = self.wanted.extensions.iter().filter_map(|path| path.file_name()).collect();
        let layers: Vec<_> = layers
            .iter()
            .map(|name| {
                let arn = format!("arn:aws:lambda:{}:{ACCOUNT}:layer:{}:1", self.region, name.to_string_lossy());
                json!({ "Arn": arn, "CodeSize": 1 })
            })
            .collect();
        json!({
            "FunctionName": self.wanted.name,
            "FunctionArn": format!("arn:aws:lambda:{}:{ACCOUNT}:function:{}", self.region, self.wanted.name),
            "Runtime": "provided.al2023",
            "Handler": "bootstrap",
            "PackageType": "Zip",
            "Version": "$LATEST",
            "Timeout": self.wanted.timeout_s,
            "MemorySize": self.wanted.memory_mb,
            "State": self.state(),
            "LastUpdateStatus": "Successful",
            "Layers": layers,
            "Environment": { "Variables": self.wanted.variables },
            "LoggingConfig": { "LogFormat": "JSON", "LogGroup": format!("/aws/lambda/{}", self.wanted.name) },
        })
    }

    /// `Invoke`, begun; it goes on whether anybody waits for its end or not.
    pub(super) fn begin(&self, payload: Bytes) -> Result<InvocationHandle, Invoked> {
        if self.state() == "Pending" {
            let message = "The operation cannot be performed at this time. The function is currently in the following \
                           state: Pending";
            let message = message.to_owned();
            return Err(Invoked::Refused { status: 409, code: "ResourceConflictException", message });
        }
        let payload = if payload.is_empty() { Bytes::from_static(b"{}") } else { payload };
        Ok(self.sandbox.start_invocation(Invocation::new(payload)))
    }

    /// `Invoke`, to its end.
    pub(super) async fn invoke(&self, payload: Bytes) -> Invoked {
        let mark = self.sandbox.log().len();
        let outcome = match self.begin(payload) {
            Ok(begun) => begun.outcome().await,
            Err(refused) => return refused,
        };
        let refused = |status, code: &'static str| {
            let message = outcome.error().map(|error| error.message.clone()).unwrap_or_default();
            Invoked::Refused { status, code, message }
        };
        match outcome.error_type() {
            Some("TooManyRequestsException") => refused(429, "TooManyRequestsException"),
            // The host was lost, or the sandbox itself is at its end: Lambda's own fault for its callers.
            Some("ServiceException" | "Sandbox.Stopped" | "Sandbox.EnvironmentEnded" | "Sandbox.EnvironmentFailed") => {
                refused(500, "ServiceException")
            }
            _ => self.ran(&outcome, mark),
        }
    }

    fn ran(&self, outcome: &Outcome, mark: usize) -> Invoked {
        let body = match &outcome.result {
            Ok(response) => Bytes::copy_from_slice(response.bytes()),
            Err(error) => Bytes::from(error.body.to_string()),
        };
        Invoked::Ran {
            request_id: outcome.request_id.clone(),
            failed: !outcome.is_success(),
            body,
            tail: tail::of(&self.sandbox, outcome, mark, self.wanted.memory_mb),
        }
    }
}
