//! DynamoDB's errors by their names, and where a name has many causes by their texts.

use crate::protocol::FailureKind;

/// The kind of failure that this answer is.
pub(super) fn kind_of(code: &str, status: u16, message: &str) -> FailureKind {
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
        // A table is in use by its own creation or deletion.
        "ResourceNotFoundException" | "TableNotFoundException" | "ResourceInUseException" | "TableInUseException" => {
            FailureKind::MissingTable
        }
        "ValidationException" if says(message, &KEY) || says(message, &INDEX) => FailureKind::WrongKeySchema,
        "ValidationException" if says(message, &SIZE) || says(message, &NUMBER) => FailureKind::MalformedRow,
        "AccessDeniedException" | "AccessDenied" | "UnauthorizedOperation" | "UnauthorizedException" => {
            FailureKind::AccessDenied
        }
        "RequestExpired" | "RequestTimeTooSkewed" => FailureKind::Clock,
        "InvalidSignatureException" | "InvalidSignature" | "SignatureDoesNotMatch" if says(message, &TIME) => {
            FailureKind::Clock
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

// A validation error has one name for a hundred causes, told apart by their texts.

/// The table's key is another one than the request's.
const KEY: [&str; 5] = [
    "does not match the schema",
    "number of conditions on the keys is invalid",
    "Missing the key",
    "Type mismatch for key",
    "is part of the key",
];

/// An index of the table has one of the format's attributes as a key, with another type.
pub(super) const INDEX: [&str; 2] = ["Type mismatch for Index Key", "secondary index key"];

/// The row is full.
pub(super) const SIZE: [&str; 1] = ["exceeded the maximum allowed size"];

/// The row's version plus one is no number that DynamoDB can keep, or no number.
const NUMBER: [&str; 3] = ["significant digits", "Number overflow", "Number underflow"];

/// The signature was made too long ago, or not yet, by DynamoDB's clock.
const TIME: [&str; 2] = ["Signature expired", "Signature not yet current"];

pub(super) fn says(message: &str, texts: &[&str]) -> bool {
    texts.iter().any(|text| message.contains(text))
}
