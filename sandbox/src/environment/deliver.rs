//! Handing invocations to the runtime and INVOKE events to the extensions, and answering callers.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use tokio::time::Instant;
use uuid::Uuid;

use super::{Active, Actor};
use crate::{EventKind, InvocationError, Response, api::Reply, invocation::Job};

impl Actor {
    /// The invocation's time starts now.
    pub(super) fn begin(&mut self, job: Job) -> String {
        let timeout = job.invocation.timeout.unwrap_or(self.settings.timeout);
        let (deadline, deadline_ms) = deadline(timeout);
        let request_id = job.request_id().to_owned();
        self.ended.remove(&request_id);
        self.push(EventKind::InvocationStarted { request_id: request_id.clone(), deadline_ms });
        let active = Active { job, deadline, deadline_ms, trace: trace() };
        self.active.insert(request_id.clone(), active);
        request_id
    }

    /// Gives the invocation to the runtime, or keeps it for its next call of Next.
    pub(super) fn invoke_runtime(&mut self, request_id: &str) {
        let Some(active) = self.active.get(request_id) else { return };
        let invocation = &active.job.invocation;
        let mut reply = Reply::payload(invocation.payload.clone())
            .header("lambda-runtime-aws-request-id", request_id)
            .header("lambda-runtime-deadline-ms", active.deadline_ms.to_string())
            .header("lambda-runtime-invoked-function-arn", self.settings.arn())
            .header("lambda-runtime-trace-id", &active.trace);
        if let Some(tenant) = &invocation.tenant {
            reply = reply.header("lambda-runtime-aws-tenant-id", tenant);
        }
        if let Some(context) = &invocation.client_context {
            reply = reply.header("lambda-runtime-client-context", context);
        }
        // Logged first: whatever the runtime does with it comes later in the log.
        self.push(EventKind::RuntimeInvoked { request_id: request_id.to_owned() });
        self.runtime.owed.push_back(reply);
        self.pay_runtime();
    }

    /// Sends INVOKE to every extension that registered for it.
    pub(super) fn invoke_extensions(&mut self, request_id: &str) {
        let Some(active) = self.active.get(request_id) else { return };
        let event = json!({
            "eventType": "INVOKE",
            "deadlineMs": active.deadline_ms,
            "requestId": request_id,
            "invokedFunctionArn": self.settings.arn(),
            "tracing": { "type": "X-Amzn-Trace-Id", "value": active.trace },
        });
        for index in 0..self.extensions.len() {
            let extension = &mut self.extensions[index];
            if extension.registration.as_ref().is_some_and(|registration| registration.wants("INVOKE")) {
                extension.owed = Some(event_reply(&event));
                let name = extension.name.clone();
                self.push(EventKind::ExtensionInvoked { name, request_id: request_id.to_owned() });
                self.pay_extension(index);
            }
        }
    }

    /// Answers the runtime's open calls of Next with what is owed to it. A call whose process hung up is passed over.
    pub(super) fn pay_runtime(&mut self) {
        while let Some(mut reply) = self.runtime.owed.pop_front() {
            loop {
                let Some(waiting) = self.runtime.waiting.pop_front() else {
                    self.runtime.owed.push_front(reply);
                    return;
                };
                match waiting.send(reply) {
                    Ok(()) => break,
                    Err(unsent) => reply = unsent,
                }
            }
        }
    }

    pub(super) fn pay_extension(&mut self, index: usize) {
        let extension = &mut self.extensions[index];
        if let Some(reply) = extension.owed.take() {
            extension.owed = match extension.waiting.take() {
                Some(waiting) => waiting.send(reply).err(),
                None => Some(reply),
            };
        }
    }

    /// Whether runtime and extensions are all waiting in Next with nothing to come.
    pub(super) fn all_waiting(&self) -> bool {
        self.missing().is_none()
    }

    /// Who isn't waiting in Next.
    pub(super) fn missing(&self) -> Option<String> {
        for extension in &self.extensions {
            let waits = extension.waiting.as_ref().is_some_and(|waiting| !waiting.is_closed());
            if !waits || extension.owed.is_some() {
                return Some(format!("extension {} to call Next", extension.name));
            }
        }
        let waits = self.runtime.waiting.iter().any(|waiting| !waiting.is_closed());
        (!waits || !self.runtime.owed.is_empty()).then(|| "the runtime to call Next".to_owned())
    }

    /// Answers the invocation's caller, unless it has its answer.
    pub(super) fn answer(&mut self, request_id: &str, result: Result<Response, InvocationError>) {
        if let Some(active) = self.active.get_mut(request_id) {
            active.job.answer(&self.log, Some(self.id), self.init, result);
        }
    }

    /// Answers everybody who is still waiting, and forgets the invocations.
    pub(super) fn fail_active(&mut self, error: impl Fn(&str) -> InvocationError) {
        for (request_id, mut active) in std::mem::take(&mut self.active) {
            active.job.answer(&self.log, Some(self.id), self.init, Err(error(&request_id)));
            self.ended.insert(request_id);
        }
    }

    /// The handler's part is over, well or not.
    pub(super) fn is_answered(&self, request_id: &str) -> bool {
        self.active.get(request_id).is_none_or(|active| active.job.is_answered())
    }
}

pub(super) fn event_reply(event: &serde_json::Value) -> Reply {
    Reply::ok(event)
}

/// A moment on the monotonic clock for the sandbox, and in epoch milliseconds for the processes.
pub(super) fn deadline(from_now: Duration) -> (Instant, u64) {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + from_now;
    (Instant::now() + from_now, u64::try_from(wall.as_millis()).unwrap_or(u64::MAX))
}

/// An X-Ray trace header that samples nothing.
fn trace() -> String {
    let root = Uuid::new_v4().simple().to_string();
    let parent = Uuid::new_v4().simple().to_string();
    format!("Root=1-{}-{};Parent={};Sampled=0", &root[..8], &root[8..], &parent[..16])
}
