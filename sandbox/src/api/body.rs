//! Reading what a process posts: whole, within Lambda's limits, streams with their trailing error.

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::{
    HeaderMap,
    body::{Bytes, Incoming},
};

use super::{Mailbox, Posted, Reply};
use crate::{environment::Message, invocation::InvocationError};

/// A response in one piece may have 6 MB and a little.
const BUFFERED_LIMIT: usize = 6 * 1024 * 1024 + 100;

/// A streamed one may have 200 MB.
const STREAMED_LIMIT: usize = 200 * 1024 * 1024;

const MODE: &str = "lambda-runtime-function-response-mode";
const STREAM_ERROR_TYPE: &str = "lambda-runtime-function-error-type";
const STREAM_ERROR_BODY: &str = "lambda-runtime-function-error-body";

/// A small document, such as an error or a registration.
pub(super) async fn document(body: Incoming) -> Result<Bytes, Reply> {
    match Limited::new(body, BUFFERED_LIMIT).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) => Err(unreadable(&*error)),
    }
}

/// A handler's response. The first byte of a streamed one is told to the environment at once.
pub(super) async fn response(
    request_id: &str,
    headers: &HeaderMap,
    body: Incoming,
    mailbox: &Mailbox,
) -> Result<Posted, Reply> {
    let content_type = text(headers, hyper::header::CONTENT_TYPE.as_str());
    let streamed = text(headers, MODE).is_some_and(|mode| mode.eq_ignore_ascii_case("streaming"));
    let limit = if streamed { STREAMED_LIMIT } else { BUFFERED_LIMIT };
    let mut limited = Limited::new(body, limit);
    let mut whole = Vec::new();
    let mut trailers = HeaderMap::new();
    while let Some(frame) = limited.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) if error.is::<LengthLimitError>() => return Ok(Posted::TooLarge),
            Err(error) => return Err(unreadable(&*error)),
        };
        let frame = match frame.into_data() {
            Ok(data) => {
                if streamed && whole.is_empty() && !data.is_empty() {
                    let message = Message::FirstByte { init: mailbox.init, request_id: request_id.to_owned() };
                    // The reply tells the process when the environment is gone.
                    let _ = mailbox.sender.send(message);
                }
                whole.extend_from_slice(&data);
                continue;
            }
            Err(frame) => frame,
        };
        if let Ok(more) = frame.into_trailers() {
            trailers.extend(more);
        }
    }
    if let Some(error_type) = text(&trailers, STREAM_ERROR_TYPE) {
        let body = text(&trailers, STREAM_ERROR_BODY).unwrap_or_default();
        return Ok(Posted::Broken(InvocationError::posted(body.as_bytes(), Some(&error_type), "Runtime.StreamError")));
    }
    Ok(Posted::Whole { body: Bytes::from(whole), content_type, streamed })
}

/// A header as text.
pub(super) fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

fn unreadable(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Reply {
    if error.is::<LengthLimitError>() {
        let message = format!("the body has more than {BUFFERED_LIMIT} bytes");
        return Reply::refused(hyper::StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message);
    }
    let message = format!("the body could not be read: {error}");
    Reply::refused(hyper::StatusCode::BAD_REQUEST, "InvalidRequestFormat", message)
}
