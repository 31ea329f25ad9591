//! Sorts what went wrong with a request by what follows from it.

mod kind;

use std::error::Error;
use std::time::Duration;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use self::kind::{INDEX, SIZE, kind_of, says};
use super::https::{ROUTE, Unreached, by_proxy};
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
        SdkError::ServiceError(answer) if answer.raw().status().is_success() => {
            unreadable(error, answer.raw(), witness, &at)
        }
        SdkError::ServiceError(answer) => match answer.err().code() {
            Some(code) => {
                let (status, message) = (answer.raw().status().as_u16(), answer.err().message().unwrap_or_default());
                answered(status, code, message, operation, &at, table)
            }
            None => anonymous(answer.raw(), witness, &at),
        },
        SdkError::ResponseError(answer) => unreadable(error, answer.raw(), witness, &at),
        SdkError::TimeoutError(_) => {
            Failure::new(FailureKind::Timeout, format!("{at} timed out: {}{ROUTE}", said(error)))
        }
        // What went wrong on the way there or back: also what has no name, for the write may have been applied.
        _ => match Unreached::in_error(error) {
            Some(unreached) => Failure::new(FailureKind::Connection, format!("{at}: {unreached}")),
            None => Failure::new(FailureKind::Connection, format!("{at} failed: {}{ROUTE}", said(error))),
        },
    }
}

/// No answer came within the time that there was.
pub(super) fn late(witness: &Witness, limit: Duration, table: &Table) -> Failure {
    let (ms, name) = (limit.as_millis(), printable(&table.name, 256));
    let message = match witness.endpoint() {
        Some(endpoint) => {
            let proxy = by_proxy(endpoint.starts_with("https:"));
            format!("no answer within {ms} ms about table `{name}` from {endpoint}{ROUTE}{proxy}")
        }
        None => format!(
            "nothing was sent about table `{name}` within {ms} ms: it took that long to get credentials; if it lasts, check \
             where they are from"
        ),
    };
    Failure::new(FailureKind::Timeout, message)
}

/// An answer that could not be read, of whatever status: the write may have been applied.
fn unreadable(error: &dyn Error, answer: &HttpResponse, witness: &Witness, at: &str) -> Failure {
    let what = described(answer);
    // What DynamoDB itself answered has an id, and then what is wrong with it matters.
    let message = if answer.headers().get("x-amzn-requestid").is_some() && !is_empty(answer) {
        format!("the answer to {at} could not be read, {what}: {}{ENDPOINT}", said(error))
    } else {
        let by = answerer(witness);
        format!("the answer to {at} could not be read, {what}: what answers{by} is probably not DynamoDB{ENDPOINT}")
    };
    Failure::new(FailureKind::Server, format!("{message}{}", proxy(witness)))
}

/// An answer's status and what is in it, as its sender says.
fn described(answer: &HttpResponse) -> String {
    let kind = match answer.headers().get("content-type") {
        _ if is_empty(answer) => " (empty)".to_owned(),
        Some(kind) => format!(" ({})", printable(kind, 60)),
        None => String::new(),
    };
    format!("HTTP {}{kind}", answer.status())
}

fn is_empty(answer: &HttpResponse) -> bool {
    answer.body().bytes().is_some_and(|body| body.trim_ascii().is_empty())
}

fn answerer(witness: &Witness) -> String {
    witness.endpoint().map_or_else(String::new, |endpoint| format!(" at {}", printable(endpoint, 256)))
}

fn proxy(witness: &Witness) -> String {
    witness.endpoint().map_or_else(String::new, |endpoint| by_proxy(endpoint.starts_with("https:")))
}

/// DynamoDB's own answer, or one of something that speaks like it.
fn answered(status: u16, code: &str, message: &str, operation: &str, at: &str, table: &Table) -> Failure {
    let kind = kind_of(code, status, message);
    let said = match printable(message, MAX_MESSAGE) {
        message if message.is_empty() => String::new(),
        message => format!(": {}", message.trim_end_matches('.')),
    };
    let advice = advice(kind, message, operation, table);
    Failure::new(kind, format!("DynamoDB answered {at} with {}{said}{advice}", printable(code, 100)))
}

/// DynamoDB names every error. What a proxy answers without a name may come after it passed the request on.
fn anonymous(answer: &HttpResponse, witness: &Witness, at: &str) -> Failure {
    let surely_not_passed_on = matches!(answer.status().as_u16(), 300..=407 | 411..=417);
    let kind = if surely_not_passed_on { FailureKind::Rejected } else { FailureKind::Server };
    let message = format!(
        "{at} was answered with {} and without an error's name, so what answers{} is probably not DynamoDB{ENDPOINT}{}",
        described(answer),
        answerer(witness),
        proxy(witness)
    );
    Failure::new(kind, message)
}

/// What to look at when something other than DynamoDB seems to answer.
pub(super) const ENDPOINT: &str = "; check the endpoint (`AWS_ENDPOINT_URL_DYNAMODB`, `AWS_ENDPOINT_URL`)";

/// What to change. Where the layer knows better, what it answers says so.
fn advice(kind: FailureKind, message: &str, operation: &str, table: &Table) -> String {
    let name = printable(&table.name, 256);
    match kind {
        FailureKind::MissingTable => format!(
            "; create `{name}`, or correct `table` (LEASEHOLD_TABLE), the Region or the account; a table that was only \
             just created is there once it is ACTIVE"
        ),
        FailureKind::WrongKeySchema if says(message, &INDEX) => format!(
            "; an index of `{name}` has one of the lock's attributes as its key, with another type: take a table of \
             its own for these locks"
        ),
        FailureKind::WrongKeySchema => format!(
            "; the settings say that `{name}` has {}: set `key_attribute` and `sort_key` to what the table has, or take \
             a table of its own whose partition key is the string `key`",
            key_of(table)
        ),
        FailureKind::AccessDenied if message.contains("kms:") || message.contains("KMS") => format!(
            "; allow the function's role kms:Decrypt on the key that encrypts `{name}`, and see that this key is enabled"
        ),
        FailureKind::AccessDenied if message.contains("explicit deny") => format!(
            "; a policy denies it, which no permission outweighs: remove that deny for the function's role on `{name}`"
        ),
        FailureKind::AccessDenied if operation == "Scan" => {
            format!("; allow whoever asks dynamodb:Scan on `{name}`: operators need it, functions don't")
        }
        FailureKind::AccessDenied => {
            let actions = row_format::of(table).map_or("dynamodb:GetItem", |format| format.actions());
            format!("; allow the function's role {actions} on `{name}`")
        }
        FailureKind::Credentials => {
            "; check the function's role, or give this machine credentials that are valid".to_owned()
        }
        FailureKind::Clock => {
            "; if it lasts, set this host's clock: it is more than 5 minutes off, unless the request \
                               was held up that long"
                .to_owned()
        }
        FailureKind::MalformedRow if says(message, &SIZE) => {
            "; the row has reached DynamoDB's limit of 400 KB by what \
            else was put on it: remove that, or delete the row once nobody works on its key"
                .to_owned()
        }
        FailureKind::MalformedRow => {
            "; the row's `version` can't be counted on from: look at the row and delete it once \
                                      nobody works on its key"
                .to_owned()
        }
        FailureKind::Server => "; if it lasts, see AWS's status".to_owned(),
        _ => String::new(),
    }
}

fn key_of(table: &Table) -> String {
    let partition = format!("the partition key `{}`", printable(&table.key_attribute, 256));
    match &table.sort_key {
        Some((sort, _)) => format!("{partition} and the sort key `{}`, both of type S", printable(sort, 256)),
        None => format!("{partition} of type S and no sort key"),
    }
}

/// Credentials that can't be had are an error of the provider's, or none is set: which has no type of its own.
fn never_sent(error: &(dyn Error + 'static), at: &str) -> Failure {
    if let Some(unset) = unset(error) {
        return Failure::new(FailureKind::Rejected, format!("{at} was not sent: {unset}"));
    }
    let said = said(error);
    let said = if said.contains("no credentials found in chain") {
        "none were found in variables, a profile, a web identity, a container or an instance".to_owned()
    } else if said.ends_with("the credential provider was not enabled") {
        "the profile that was named has none, or is not there".to_owned()
    } else {
        said
    };
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

/// What is missing or wrong among the settings, where the SDK says so in words that are its own or with the whole request.
fn unset(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let said = chain(error, MAX_MESSAGE);
    if said.contains("Missing Region") {
        Some("no Region is set: set `AWS_REGION`")
    } else if said.contains("field: `region`") {
        Some("the Region is none: set `AWS_REGION` to one's name, such as `eu-central-1`")
    } else if said.contains("failed to apply endpoint") {
        Some(
            "the endpoint is no URL: let `AWS_ENDPOINT_URL_DYNAMODB` or `AWS_ENDPOINT_URL` begin with `https://` or \
             `http://` and a host, or take them out",
        )
    } else {
        None
    }
}

/// The cause's own words: the outermost error only says that there was one.
fn said(error: &dyn Error) -> String {
    error.source().map_or_else(|| chain(error, MAX_MESSAGE), |cause| chain(cause, MAX_MESSAGE))
}

fn caused_by<T: Error + 'static>(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |&error| error.source()).any(|error| error.is::<T>())
}
