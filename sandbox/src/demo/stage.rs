//! Where a scene plays: a sandbox with the sample function and the extension, and questions about what happened.

use std::time::Duration;

use serde_json::Value;

use super::{Failed, Programs, Said, Scene};
use crate::{Event, Invocation, InvocationHandle, Overflow, Sandbox};

/// How long a step that should come soon may take before the scene has failed.
pub(super) const SOON: Duration = Duration::from_secs(10);
/// How long a step may take that waits for a lease to end.
pub(super) const LEASE_LATER: Duration = Duration::from_secs(30);

const TABLE: &str = "locks";

/// A scene's sandbox.
#[derive(Debug)]
pub struct Stage {
    sandbox: Sandbox,
    event: Value,
}

impl Stage {
    pub(super) async fn set(scene: &Scene, programs: &Programs) -> Result<Self, Failed> {
        let file = programs.events.join(scene.event);
        let text = tokio::fs::read(&file).await;
        let text = text.map_err(|error| Failed::because(format!("{} can't be read: {error}", file.display())))?;
        let event = serde_json::from_slice(&text)
            .map_err(|error| Failed::because(format!("{} is no JSON: {error}", file.display())))?;
        let mut builder = Sandbox::builder()
            .function(&programs.sample)
            .extension(&programs.extension)
            .name("sample")
            .timeout(scene.timeout)
            .environments(3)
            .overflow(Overflow::Queue)
            .env("LEASEHOLD_TABLE", TABLE)
            .env("AWS_LAMBDA_LOG_FORMAT", "JSON")
            .env("AWS_LAMBDA_LOG_LEVEL", "INFO");
        for (name, value) in scene.settings {
            builder = builder.env(*name, *value);
        }
        let sandbox = builder.start().await?;
        sandbox.tables().create_lock_table(TABLE).await?;
        Ok(Self { sandbox, event })
    }

    /// The sandbox.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// The scene's event.
    pub(super) fn event(&self) -> Value {
        self.event.clone()
    }

    /// The scene's event, with the work that the sample is to do under the lock.
    pub(super) fn event_with(&self, work: Value) -> Value {
        let mut event = self.event();
        if let Some(detail) = event.get_mut("detail").and_then(Value::as_object_mut) {
            detail.insert("work".to_owned(), work);
        } else {
            let body = match event.pointer_mut("/Records/0/body") {
                Some(body) => body,
                None => &mut event["body"],
            };
            let parsed: Option<Value> = body.as_str().and_then(|text| serde_json::from_str(text).ok());
            let mut inner = parsed.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
            inner["work"] = work;
            *body = Value::String(inner.to_string());
        }
        event
    }

    /// Initializes that many environments, so that a cold start is no part of the scene.
    pub(super) async fn warm(&self, environments: usize) -> Result<(), Failed> {
        for index in 0..environments {
            self.sandbox.environment(index).start().await?;
        }
        Ok(())
    }

    /// Starts an invocation in that environment.
    pub(super) fn begin(&self, environment: usize, invocation: impl Into<Invocation>) -> InvocationHandle {
        self.sandbox.environment(environment).start_invocation(invocation)
    }

    /// Waits until this invocation's handler works under the lock.
    pub(super) async fn at_work(&self, invocation: &InvocationHandle, limit: Duration) -> Result<Event, Failed> {
        self.said("work began", invocation.request_id(), limit).await
    }

    /// Waits until the keeper took a lease for this invocation.
    pub(super) async fn acquired(&self, request_id: &str, limit: Duration) -> Result<(Event, Said), Failed> {
        let event = self.said("acquired", request_id, limit).await?;
        let said = Said::in_event(&event).ok_or_else(|| Failed::because("the keeper's line could not be read"))?;
        Ok((event, said))
    }

    async fn said(&self, message: &str, request_id: &str, limit: Duration) -> Result<Event, Failed> {
        let wanted = |event: &Event| {
            Said::in_event(event).is_some_and(|said| said.message == message && said.is_about(request_id))
        };
        Ok(self.sandbox.log().wait_for(wanted, limit).await?)
    }

    /// Waits until a keeper has said that it freed the lease of this invocation.
    pub(super) async fn released(&self, request_id: &str) -> Result<Event, Failed> {
        self.said("released", request_id, SOON).await
    }

    /// When this invocation's work under the lock began and ended, in microseconds of wall time.
    pub(super) async fn work(&self, request_id: &str) -> Result<(u64, u64), Failed> {
        Ok((self.time_of("work began", request_id).await?, self.time_of("work ended", request_id).await?))
    }

    async fn time_of(&self, message: &str, request_id: &str) -> Result<u64, Failed> {
        let event = self.said(message, request_id, SOON).await?;
        let at = Said::in_event(&event).and_then(|said| said.at_us());
        at.ok_or_else(|| {
            Failed::because(format!("the line `{message}` of {request_id} does not say when it was written"))
        })
    }
}
