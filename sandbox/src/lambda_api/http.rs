//! HTTP requests of the AWS SDKs, to the account and back.

use std::{convert::Infallible, sync::Arc, time::Duration};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    HeaderMap, Method, Request, Response,
    body::{Bytes, Incoming},
    header::HeaderValue,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{Account, describe, function::Invoked};

/// A synchronous invocation's payload may have 6 MB.
const LIMIT: usize = 6 * 1024 * 1024;

/// Accepts until its executor ends; the connections are tasks of this one.
pub(super) async fn accept(listener: std::net::TcpListener, account: Arc<Account>) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the API's port can't be used"),
    };
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, Arc::clone(&account)));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, account: Arc<Account>) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "no-delay could not be set");
    }
    let service = service_fn(|request: Request<Incoming>| {
        let account = Arc::clone(&account);
        async move { Ok::<_, Infallible>(answer(&account, request).await) }
    });
    let served = http1::Builder::new().header_read_timeout(None).serve_connection(TokioIo::new(stream), service).await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn answer(account: &Account, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let body = match Limited::new(body, LIMIT).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return refused(413, "RequestTooLargeException", &format!("the body can't be read: {error}")),
    };
    let path = head.uri.path().to_owned();
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let (name, what) = match (&head.method, segments.as_slice()) {
        (&Method::POST, [""]) => {
            let (status, xml) = describe::answer(&account.stack, &String::from_utf8_lossy(&body));
            return response(status, "text/xml", Bytes::from(xml));
        }
        (&Method::POST, ["2015-03-31", "functions", name, "invocations"]) => (name, What::Invoke),
        (&Method::GET, ["2015-03-31", "functions", name, "configuration"]) => (name, What::Configuration),
        (method, _) => {
            return refused(404, "UnknownOperationException", &format!("the sandbox has no {method} {path}"));
        }
    };
    let name = percent_decode_str(name).decode_utf8_lossy();
    let Some(function) = account.function(&name) else {
        return refused(404, "ResourceNotFoundException", &format!("Function not found: {name}"));
    };
    // As Lambda does, which hands no function what is no JSON; nothing at all is an empty object.
    let is_invoke = matches!(what, What::Invoke);
    let body = if is_invoke && body.is_empty() { Bytes::from_static(b"{}") } else { body };
    if let (true, Err(error)) = (is_invoke, serde_json::from_slice::<serde::de::IgnoredAny>(&body)) {
        let message = format!("Could not parse request body into json: {error}");
        return refused(400, "InvalidRequestContentException", &message);
    }
    match what {
        What::Configuration => response(200, "application/json", Bytes::from(function.configuration().to_string())),
        What::Invoke if is_header(&head.headers, "x-amz-invocation-type", "Event") => match function.begin(body) {
            Ok(_) => response(202, "application/json", Bytes::new()),
            Err(refused) => invoked(refused, false),
        },
        What::Invoke => invoked(function.invoke(body).await, is_header(&head.headers, "x-amz-log-type", "Tail")),
    }
}

enum What {
    Invoke,
    Configuration,
}

fn invoked(invoked: Invoked, with_tail: bool) -> Response<Full<Bytes>> {
    match invoked {
        Invoked::Refused { status, code, message } => refused(status, code, &message),
        Invoked::Ran { request_id, failed, body, tail } => {
            let mut response = response(200, "application/json", body);
            let mut set = |name: &'static str, value: &str| match HeaderValue::from_str(value) {
                Ok(value) => drop(response.headers_mut().insert(name, value)),
                Err(_) => tracing::warn!(name, "a header's value can't be sent; it was left out"),
            };
            set("x-amzn-requestid", &request_id);
            set("x-amz-executed-version", "$LATEST");
            if failed {
                set("x-amz-function-error", "Unhandled");
            }
            if with_tail {
                set("x-amz-log-result", &STANDARD.encode(tail));
            }
            response
        }
    }
}

fn is_header(headers: &HeaderMap, name: &str, value: &str) -> bool {
    headers.get(name).is_some_and(|found| found.as_bytes().eq_ignore_ascii_case(value.as_bytes()))
}

fn refused(status: u16, code: &'static str, message: &str) -> Response<Full<Bytes>> {
    let body = json!({ "Type": "User", "Message": message, "message": message });
    let mut response = response(status, "application/json", Bytes::from(body.to_string()));
    response.headers_mut().insert("x-amzn-errortype", HeaderValue::from_static(code));
    response
}

fn response(status: u16, content_type: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
