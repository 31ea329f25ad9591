//! From a request's method, path, headers and body to a [`Call`].

use hyper::{HeaderMap, Method, Request, StatusCode, body::Incoming};
use serde::Deserialize;

use super::{Call, During, Mailbox, Reply, body};
use crate::invocation::InvocationError;

const RUNTIME_ERROR_TYPE: &str = "lambda-runtime-function-error-type";
const EXTENSION_ERROR_TYPE: &str = "lambda-extension-function-error-type";
const EXTENSION_NAME: &str = "lambda-extension-name";
const EXTENSION_ID: &str = "lambda-extension-identifier";
const ACCEPT_FEATURE: &str = "lambda-extension-accept-feature";

#[derive(Debug, Deserialize)]
struct Registration {
    #[serde(default)]
    events: Vec<String>,
}

/// Reads the request to its end; what makes no sense is answered here.
pub(super) async fn call(request: Request<Incoming>, mailbox: &Mailbox) -> Result<Call, Reply> {
    let (head, content) = request.into_parts();
    let path = head.uri.path().to_owned();
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    match (&head.method, segments.as_slice()) {
        (&Method::GET, ["2018-06-01", "runtime", "invocation", "next"]) => Ok(Call::RuntimeNext),
        (&Method::POST, ["2018-06-01", "runtime", "invocation", id, "response"]) => {
            let posted = body::response(id, &head.headers, content, mailbox).await?;
            Ok(Call::Response { request_id: (*id).to_owned(), posted })
        }
        (&Method::POST, ["2018-06-01", "runtime", "invocation", id, "error"]) => {
            let error = posted(&head.headers, RUNTIME_ERROR_TYPE, content, "Runtime.Unknown").await?;
            Ok(Call::HandlerError { request_id: (*id).to_owned(), error })
        }
        (&Method::POST, ["2018-06-01", "runtime", "init", "error"]) => {
            let error = posted(&head.headers, RUNTIME_ERROR_TYPE, content, "Runtime.InitError").await?;
            Ok(Call::RuntimeInitError { error })
        }
        (&Method::POST, ["2020-01-01", "extension", "register"]) => register(&head.headers, content).await,
        (&Method::GET, ["2020-01-01", "extension", "event", "next"]) => {
            Ok(Call::ExtensionNext { id: extension_id(&head.headers)? })
        }
        (&Method::POST, ["2020-01-01", "extension", "init", "error"]) => {
            extension_error(&head.headers, content, During::Init).await
        }
        (&Method::POST, ["2020-01-01", "extension", "exit", "error"]) => {
            extension_error(&head.headers, content, During::Exit).await
        }
        (&Method::PUT, ["2022-07-01", "telemetry"] | ["2020-08-15", "logs"]) => {
            // Lambda's own emulator answers the same: taken, but nothing will be sent.
            let message = "the sandbox has no Telemetry API; read the processes' lines in its log";
            Err(Reply::refused(StatusCode::ACCEPTED, "Telemetry.NotSupported", message))
        }
        (method, _) => {
            let message = format!("the sandbox doesn't know {method} {path}");
            Err(Reply::refused(StatusCode::NOT_FOUND, "Sandbox.NotSupported", message))
        }
    }
}

async fn register(headers: &HeaderMap, content: Incoming) -> Result<Call, Reply> {
    let name = body::text(headers, EXTENSION_NAME).unwrap_or_default();
    let features = body::text(headers, ACCEPT_FEATURE).unwrap_or_default();
    let wants_account = features.split(',').any(|feature| feature.trim() == "accountId");
    let document = body::document(content).await?;
    let registration: Registration = serde_json::from_slice(&document)
        .map_err(|error| Reply::refused(StatusCode::FORBIDDEN, "InvalidRequestFormat", error.to_string()))?;
    Ok(Call::Register { name, events: registration.events, wants_account })
}

async fn extension_error(headers: &HeaderMap, content: Incoming, during: During) -> Result<Call, Reply> {
    let id = extension_id(headers)?;
    let fallback = match during {
        During::Init => "Extension.InitError",
        During::Exit => "Extension.ExitError",
    };
    let error = posted(headers, EXTENSION_ERROR_TYPE, content, fallback).await?;
    Ok(Call::ExtensionError { id, during, error })
}

fn extension_id(headers: &HeaderMap) -> Result<String, Reply> {
    body::text(headers, EXTENSION_ID).ok_or_else(|| {
        let message = "the header Lambda-Extension-Identifier is missing";
        Reply::refused(StatusCode::FORBIDDEN, "Extension.MissingHeader", message)
    })
}

async fn posted(
    headers: &HeaderMap,
    type_header: &str,
    content: Incoming,
    fallback: &str,
) -> Result<InvocationError, Reply> {
    let document = body::document(content).await?;
    let header = body::text(headers, type_header);
    Ok(InvocationError::posted(&document, header.as_deref(), fallback))
}
