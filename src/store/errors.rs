//! Sorts what went wrong with a request by what follows from it.

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use super::row_format;
use super::text::{chain, printable};
use super::witness::Witness;
use crate::protocol::{Failure, FailureKind};
use crate::session::Table;

/// How much of what the service or the client said is told on.
const MAX_MESSAGE: usize = 600;

/// The failure that an error means, for a request of this operation on this table.
pub(super) fn failure<E>(
    error: &SdkError<E, HttpResponse>,
    witness: &Witness,
    operation: &str,
    table: &Table,
) -> Failure
where
    E: ProvideErrorMetadata + Error + 'static,
{
    let at = format!("{operation} on table `{}`", printable(&table.name, 256));
    match error {
        _ if !witness.saw_it_sent() => never_sent(error, &at),
        // The SDK takes a success that it can't read for a service's error without a name.
        SdkError::ServiceError(answer) if answer.raw().status().is_success() => unreadable(error, answer.raw(), &at),
        SdkError::ServiceError(answer) => {
            let status = answer.raw().status().as_u16();
            answered(status, answer.err().code(), answer.err().message().unwrap_or_default(), &at, table)
        }
        SdkError::ResponseError(answer) => unreadable(error, answer.raw(), &at),
        SdkError::TimeoutError(_) => Failure::new(FailureKind::Timeout, format!("{at} timed out: {}", said(error))),
        // What went wrong on the way there or back: also what has no name, for the write may have been applied.
        _ => Failure::new(
            FailureKind::Connection,
            format!(
                "{at} failed: {}; if it lasts, check the endpoint, name resolution and the route to DynamoDB (in a \
                 VPC, its gateway endpoint)",
                said(error)
            ),
        ),
    }
}

/// An answer that could not be read, of whatever status: the write may have been applied.
fn unreadable(error: &dyn Error, answer: &HttpResponse, at: &str) -> Failure {
    let message = format!(
        "the answer to {at} (HTTP {}) could not be read: {}; if it lasts, check the endpoint and proxies on the way",
        answer.status(),
        said(error)
    );
    Failure::new(FailureKind::Server, message)
}

/// DynamoDB's own answer, or one of something that stands between.
fn answered(status: u16, code: Option<&str>, message: &str, at: &str, table: &Table) -> Failure {
    let Some(code) = code else {
        return anonymous(status, at);
    };
    let kind = kind_of(code, status, message);
    let said = match printable(message, MAX_MESSAGE) {
        message if message.is_empty() => String::new(),
        message => format!(": {}", message.trim_end_matches('.')),
    };
    let advice = advice(kind, table);
    Failure::new(kind, format!("DynamoDB answered {at} with {}{said}{advice}", printable(code, 100)))
}

/// DynamoDB names every error. What a proxy answers without a name may come after it passed the request on.
fn anonymous(status: u16, at: &str) -> Failure {
    let surely_not_passed_on = matches!(status, 300..=407 | 411..=417);
    let kind = if surely_not_passed_on { FailureKind::Rejected } else { FailureKind::Server };
    let message = format!(
        "{at} was answered with HTTP {status} and without an error's name, so probably not by DynamoDB: check the \
         endpoint (`AWS_ENDPOINT_URL_DYNAMODB`, `AWS_ENDPOINT_URL`) and proxies on the way"
    );
    Failure::new(kind, message)
}

fn kind_of(code: &str, status: u16, message: &str) -> FailureKind {
    match code {
        "ProvisionedThroughputExceededException"
        | "ThrottlingException"
        | "Throttling"
        | "ThrottledException"
        | "RequestLimitExceeded"
        | "RequestThrottled"
        | "RequestThrottledException"
        | "TooManyRequestsException"
        | "BandwidthLimitExceeded"
        | "LimitExceededException"
        | "SlowDown" => FailureKind::Throttled,
        "TransactionConflictException" | "TransactionInProgressException" | "ReplicatedWriteConflictException" => {
            FailureKind::TransactionConflict
        }
        "ResourceNotFoundException" | "TableNotFoundException" => FailureKind::MissingTable,
        "ValidationException" if is_about_the_key(message) => FailureKind::WrongKeySchema,
        "AccessDeniedException" | "AccessDenied" | "UnauthorizedOperation" | "UnauthorizedException" => {
            FailureKind::AccessDenied
        }
        "UnrecognizedClientException"
        | "InvalidClientTokenId"
        | "InvalidAccessKeyId"
        | "InvalidSignatureException"
        | "InvalidSignature"
        | "SignatureDoesNotMatch"
        | "IncompleteSignatureException"
        | "IncompleteSignature"
        | "ExpiredTokenException"
        | "ExpiredToken"
        | "RequestExpired"
        | "RequestTimeTooSkewed"
        | "MissingAuthenticationTokenException"
        | "MissingAuthenticationToken"
        | "AuthFailure" => FailureKind::Credentials,
        "InternalServerError"
        | "InternalServerErrorException"
        | "InternalFailure"
        | "InternalFailureException"
        | "ServiceUnavailable"
        | "ServiceUnavailableException" => FailureKind::Server,
        _ if status >= 500 => FailureKind::Server,
        _ => FailureKind::Rejected,
    }
}

/// A validation error has one name for a hundred causes: these are the texts of those that a table's key has.
fn is_about_the_key(message: &str) -> bool {
    [
        "does not match the schema",
        "number of conditions on the keys is invalid",
        "Missing the key",
        "Type mismatch for key",
        "is part of the key",
    ]
    .iter()
    .any(|text| message.contains(text))
}

/// What to change, where trying again does not help.
fn advice(kind: FailureKind, of: &Table) -> String {
    let table = printable(&of.name, 256);
    match kind {
        FailureKind::MissingTable => {
            format!("; create `{table}`, or correct the table's name, the Region or the account")
        }
        FailureKind::WrongKeySchema => format!(
            "; `{table}` needs a partition key of type S that is named as in the settings (`key` unless set), and a \
             sort key of type S exactly where the settings have one"
        ),
        FailureKind::AccessDenied => {
            let actions = row_format::of(of).map_or("dynamodb:GetItem", |format| format.actions());
            format!("; the function's role needs {actions} on `{table}`")
        }
        FailureKind::Credentials => "; check the role, its credentials and this host's clock".to_owned(),
        FailureKind::Throttled => "; if it lasts, raise the table's capacity or set it to on-demand".to_owned(),
        _ => String::new(),
    }
}

/// Credentials that can't be had are an error of the provider's, or none is set: which has no type of its own.
fn never_sent(error: &(dyn Error + 'static), at: &str) -> Failure {
    let said = said(error);
    if caused_by::<CredentialsError>(error) || said.contains("identity") {
        let message = format!(
            "{at} was not sent for lack of credentials: {said}; on Lambda the function's role provides them, elsewhere \
             set `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` or a profile"
        );
        return Failure::new(FailureKind::Credentials, message);
    }
    let message = format!("{at} was not sent: {said}; check `AWS_REGION`, the endpoint and the table's name");
    Failure::new(FailureKind::Rejected, message)
}

/// The cause's own words: the outermost error only says that there was one.
fn said(error: &dyn Error) -> String {
    error.source().map_or_else(|| chain(error, MAX_MESSAGE), |cause| chain(cause, MAX_MESSAGE))
}

fn caused_by<T: Error + 'static>(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| error.source()).any(|error| error.is::<T>())
}
