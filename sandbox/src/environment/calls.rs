//! What the processes ask over the two APIs, applied to the environment's state.

use hyper::StatusCode;
use serde_json::json;
use uuid::Uuid;

use super::{Actor, Broken, Phase, Registration};
use crate::{
    EventKind, InvocationError, Process, Response,
    api::{Call, During, Posted, Replier, Reply},
    settings::ACCOUNT,
};

impl Actor {
    pub(super) fn handle_call(&mut self, call: Call, replier: Replier) {
        let reply = match call {
            Call::RuntimeNext => return self.handle_runtime_next(replier),
            Call::ExtensionNext { id } => return self.handle_extension_next(&id, replier),
            Call::Response { request_id, posted } => self.handle_response(request_id, posted),
            Call::HandlerError { request_id, error } => self.handle_handler_error(request_id, error),
            Call::RuntimeInitError { error } => self.handle_reported(Process::Runtime, error, During::Init),
            Call::Register { name, events, wants_account } => self.handle_register(name, events, wants_account),
            Call::ExtensionError { id, during, error } => match self.extension_by_id(&id) {
                Some(index) => {
                    let process = Process::Extension(self.extensions[index].name.clone());
                    self.handle_reported(process, error, during)
                }
                None => unknown_extension(),
            },
        };
        // The process may be gone already.
        let _ = replier.send(reply);
    }

    fn handle_runtime_next(&mut self, replier: Replier) {
        if self.phase == Phase::Ending {
            // Held until the process is killed.
            self.runtime.waiting.push_back(replier);
            return;
        }
        let busy = self.active.values().any(|active| !active.job.is_answered());
        if busy && !self.settings.is_managed() && self.runtime.owed.is_empty() {
            let message = "the current invocation has neither response nor error yet";
            let _ = replier.send(Reply::refused(StatusCode::FORBIDDEN, "InvalidStateTransition", message));
            return;
        }
        self.push(EventKind::RuntimeNext);
        self.runtime.waiting.push_back(replier);
        self.pay_runtime();
    }

    fn handle_extension_next(&mut self, id: &str, replier: Replier) {
        let Some(index) = self.extension_by_id(id) else {
            let _ = replier.send(unknown_extension());
            return;
        };
        let extension = &mut self.extensions[index];
        extension.waiting = Some(replier);
        let name = extension.name.clone();
        self.push(EventKind::ExtensionNext { name });
        if self.phase == Phase::Ending {
            self.send_shutdown();
        } else {
            self.pay_extension(index);
        }
    }

    fn handle_response(&mut self, request_id: String, posted: Posted) -> Reply {
        if let Some(refusal) = self.refuse_answer(&request_id) {
            return refusal;
        }
        let (result, reply) = match posted {
            Posted::Whole { body, content_type, streamed } => {
                let posted = EventKind::ResponsePosted { request_id: request_id.clone(), bytes: body.len(), streamed };
                self.push(posted);
                (Ok(Response { body, content_type, streamed }), Reply::accepted())
            }
            Posted::Broken(error) => {
                let error_type = error.error_type.clone();
                self.push(EventKind::ErrorPosted { request_id: request_id.clone(), error_type });
                (Err(error), Reply::accepted())
            }
            Posted::TooLarge => {
                self.push(EventKind::AnswerRefused { request_id: request_id.clone(), status: 413 });
                let message = "the response is larger than Lambda takes; make it smaller or stream it";
                let error = InvocationError::new("Function.ResponseSizeTooLarge", message.to_owned());
                let status = StatusCode::PAYLOAD_TOO_LARGE;
                (Err(error), Reply::refused(status, "RequestEntityTooLarge", message))
            }
        };
        self.answer(&request_id, result);
        reply
    }

    fn handle_handler_error(&mut self, request_id: String, error: InvocationError) -> Reply {
        if let Some(refusal) = self.refuse_answer(&request_id) {
            return refusal;
        }
        let error_type = error.error_type.clone();
        self.push(EventKind::ErrorPosted { request_id: request_id.clone(), error_type });
        self.answer(&request_id, Err(error));
        Reply::accepted()
    }

    /// The refusal of an answer that is not, or no longer, wanted.
    fn refuse_answer(&self, request_id: &str) -> Option<Reply> {
        let (status, error_type, message) = match self.active.get(request_id) {
            Some(active) if !active.job.is_answered() => return None,
            Some(_) => (StatusCode::BAD_REQUEST, "InvalidRequestID", "the invocation was answered before"),
            None if self.ended.contains(request_id) => {
                (StatusCode::GONE, "Runtime.InvocationGone", "the invocation is over: it timed out or was answered")
            }
            None => (StatusCode::BAD_REQUEST, "InvalidRequestID", "there is no such invocation"),
        };
        let reply = Reply::refused(status, error_type, message);
        self.push(EventKind::AnswerRefused { request_id: request_id.to_owned(), status: reply.status() });
        Some(reply)
    }

    fn handle_reported(&mut self, process: Process, error: InvocationError, during: During) -> Reply {
        if during == During::Init && self.phase != Phase::Init {
            let message = "the initialization is over";
            return Reply::refused(StatusCode::FORBIDDEN, "InvalidStateTransition", message);
        }
        self.push(EventKind::ErrorReported { process, error_type: error.error_type.clone() });
        if self.phase != Phase::Ending && self.broken.is_none() {
            self.broken = Some(Broken::Reported(error));
        }
        Reply::accepted()
    }

    fn handle_register(&mut self, name: String, events: Vec<String>, wants_account: bool) -> Reply {
        if let Err((error_type, reason)) = self.check_registration(&name, &events) {
            self.push(EventKind::RegistrationRefused { name, reason: reason.clone() });
            return Reply::refused(StatusCode::FORBIDDEN, error_type, reason);
        }
        let id = Uuid::new_v4().to_string();
        if let Some(extension) = self.extensions.iter_mut().find(|extension| extension.name == name) {
            extension.registration = Some(Registration { id: id.clone(), events: events.clone() });
        }
        self.push(EventKind::ExtensionRegistered { name, events });
        let mut body = json!({
            "functionName": self.settings.function_name,
            "functionVersion": self.settings.function_version,
            "handler": "bootstrap",
        });
        if wants_account {
            body["accountId"] = json!(ACCOUNT);
        }
        Reply::ok(&body).header("lambda-extension-identifier", id)
    }

    fn check_registration(&self, name: &str, events: &[String]) -> Result<(), (&'static str, String)> {
        let Some(extension) = self.extensions.iter().find(|extension| extension.name == name) else {
            let known: Vec<&str> = self.extensions.iter().map(|extension| extension.name.as_str()).collect();
            let reason = format!(
                "no extension is called {name:?}; the name must be the file name of one of: {}",
                known.join(", ")
            );
            return Err(("Extension.InvalidExtensionName", reason));
        };
        if extension.registration.is_some() || self.phase != Phase::Init {
            return Err(("Extension.InvalidExtensionState", format!("{name} can't register now, or not again")));
        }
        for event in events {
            let known = matches!(event.as_str(), "INVOKE" | "SHUTDOWN");
            if !known {
                return Err(("Extension.InvalidEventType", format!("there is no event {event:?}")));
            }
            if event == "INVOKE" && self.settings.is_managed() {
                let reason = "INVOKE can't be registered on Managed Instances, only SHUTDOWN".to_owned();
                return Err(("Extension.InvalidEventType", reason));
            }
        }
        Ok(())
    }

    fn extension_by_id(&self, id: &str) -> Option<usize> {
        let has_id = |registration: &Option<Registration>| registration.as_ref().is_some_and(|known| known.id == id);
        self.extensions.iter().position(|extension| has_id(&extension.registration))
    }
}

fn unknown_extension() -> Reply {
    let message = "no extension with this identifier has registered; register first";
    Reply::refused(StatusCode::FORBIDDEN, "Extension.UnknownExtensionIdentifier", message)
}
