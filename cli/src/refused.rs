//! A request that AWS refused or never got, in plain words: which request, what failed, what to do.

use std::error::Error;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use leasehold::operator;
use leasehold::protocol::{Failure, FailureKind};

use crate::aws::PATIENCE;
use crate::ended::Stop;
use crate::text::{cut, span};

/// A request without the answer that was wanted.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    /// AWS's name for it, where AWS answered.
    pub(crate) code: Option<String>,
    /// All of it, for people.
    pub(crate) told: String,
    /// Whether no other request would be answered either.
    pub(crate) for_all: bool,
}

/// What AWS says of credentials that don't serve, in its services' several spellings.
const CREDENTIALS: [&str; 11] = [
    "UnrecognizedClientException",
    "InvalidClientTokenId",
    "InvalidAccessKeyId",
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "IncompleteSignatureException",
    "IncompleteSignature",
    "ExpiredTokenException",
    "ExpiredToken",
    "MissingAuthenticationTokenException",
    "MissingAuthenticationToken",
];

/// What services answer to an operation that they don't have, as another service's endpoint does.
const UNKNOWN: [&str; 3] = ["UnknownOperationException", "InvalidAction", "UnknownOperation"];

/// What to do about credentials that don't serve.
pub(crate) const SIGN_IN: &str = "sign in anew (`aws sso login`), or correct --profile or the variables AWS_ACCESS_KEY_ID, \
                                  AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN";

impl Refused {
    pub(crate) fn of<E>(action: &str, error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + Error + 'static,
    {
        let service = error.as_service_error();
        let code = service.and_then(ProvideErrorMetadata::code).map(str::to_owned);
        if let Some(code) = code {
            let message = service.and_then(ProvideErrorMetadata::message).unwrap_or_default();
            return Self::answered(action, code, message);
        }
        let told = match error {
            SdkError::ServiceError(answer) => another_service(answer.raw()),
            SdkError::ResponseError(answer) => another_service(answer.raw()),
            SdkError::TimeoutError(_) => format!(
                "no answer within {}: if it lasts, check the way to the endpoint: name resolution, a firewall, a proxy",
                span(PATIENCE)
            ),
            _ => operator::unreached(error).unwrap_or_else(|| unsent(error)),
        };
        Self { code: None, told: format!("{action}: {told}"), for_all: true }
    }

    /// One that could not even be put together.
    pub(crate) fn unsent(action: &str, error: &impl std::fmt::Display) -> Self {
        Self { code: None, told: format!("{action}: {error}"), for_all: false }
    }

    fn answered(action: &str, code: String, message: &str) -> Self {
        let short = code.rsplit(['#', '.']).next().unwrap_or_default().to_owned();
        let message = match message.trim_end_matches('.') {
            "" => String::new(),
            message => format!(": {message}"),
        };
        let credentials = CREDENTIALS.contains(&short.as_str());
        let advice = if credentials {
            format!("; {SIGN_IN}")
        } else if UNKNOWN.contains(&short.as_str()) {
            format!("; what answers does not know this request: {ELSEWHERE}")
        } else {
            String::new()
        };
        Self { told: format!("{action}: {short}{message}{advice}"), code: Some(short), for_all: credentials }
    }

    /// Whether AWS answered by this name.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.code.as_deref() == Some(name)
    }
}

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Self {
        Self::Aws(refused.told)
    }
}

/// The store's words are for functions as well; what an operator can do about credentials is added.
impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        match failure.kind {
            FailureKind::Credentials => Self::Aws(format!("{failure}; here: {SIGN_IN}")),
            _ => Self::Aws(failure.to_string()),
        }
    }
}

/// Where another endpoint than the service's own comes from.
const ELSEWHERE: &str = "where --endpoint-url or AWS_ENDPOINT_URL names an endpoint, it is asked for every service; \
                         AWS_ENDPOINT_URL_DYNAMODB, _LAMBDA, _SQS and _CLOUDFORMATION name one for each";

/// An answer that is not the service's: of a web server, a proxy, or another service.
fn another_service(answer: &HttpResponse) -> String {
    let empty = answer.body().bytes().is_some_and(|body| body.trim_ascii().is_empty());
    let kind = match answer.headers().get("content-type") {
        _ if empty => ", empty".to_owned(),
        Some(kind) => format!(", {}", cut(kind, 60)),
        None => String::new(),
    };
    format!("what answers at the endpoint is not this service (HTTP {}{kind}): {ELSEWHERE}", answer.status())
}

/// What was never sent.
fn unsent(error: &(dyn Error + 'static)) -> String {
    let said = causes(error);
    if said.contains("was not defined") {
        return format!("there is no such profile in AWS's configuration files ({said})");
    }
    if said.ends_with("the credential provider was not enabled") {
        return format!("the profile that was named has no credentials, or is not there: {SIGN_IN}");
    }
    if said.contains("no credentials found in chain") {
        return format!("no AWS credentials were found in variables, a profile or elsewhere: {SIGN_IN}");
    }
    if said.contains("credential") || said.contains("identity") || said.contains("token") {
        return format!("no usable AWS credentials: {said}; {SIGN_IN}");
    }
    format!("it was not sent: {said}")
}

/// What an error is made of, in words, each said once; the outermost only says that there was one.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut said: Vec<String> = Vec::new();
    for cause in std::iter::successors(error.source(), |&error| error.source()) {
        let text = cause.to_string();
        let text = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        if !said.last().is_some_and(|last| last.contains(&text)) {
            said.push(text);
        }
    }
    cut(&said.join(": "), 400)
}
