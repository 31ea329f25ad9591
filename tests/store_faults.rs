//! What DynamoDB, or what stands in front of it, can answer instead of an answer: each is sorted by what follows from
//! it, told in words, and asked for exactly once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::time::Duration;

use leasehold::clock::Wall;
use leasehold::protocol::{Answer, Failure, FailureKind, Outcome, Request, Row, Version};
use leasehold::store::{DynamoDb, Store};
use support::fault_server::{DATE, Fault, FaultServer};
use support::{lock, owner, sdk_config};

fn acquire() -> Request {
    let (at, lease) = (Wall::from_millis(1_700_000_000_000), Duration::from_secs(30));
    Request::Acquire { owner: owner(1), version: None, at, lease, expires_at: None, unknown: vec![], served: None }
}

fn renew() -> Request {
    Request::Renew { owner: owner(1), version: Version::Counter(7), new_version: Version::Counter(8), expires_at: None }
}

/// Sends one request and asserts that it came exactly once.
async fn answer_to(request: Request, fault: Fault) -> Answer {
    let server = FaultServer::always(fault);
    let store = DynamoDb::with_config(sdk_config(server.url()));
    let answer = store.send(&lock("k"), request, Duration::from_millis(500)).await;
    assert_eq!(server.seen().len(), 1, "{answer:?}");
    answer
}

async fn failure_of(request: Request, fault: Fault) -> (Failure, Option<u64>) {
    match answer_to(request, fault).await {
        Answer { outcome: Outcome::Failed(failure), date, .. } => (failure, date),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn every_named_error_is_sorted_and_told_with_its_name_its_words_and_the_table() {
    use FailureKind::*;
    let cases = [
        (400, "ProvisionedThroughputExceededException", "slow down", Throttled),
        (400, "ThrottlingException", "slow down", Throttled),
        (400, "Throttling", "slow down", Throttled),
        (400, "ThrottledException", "slow down", Throttled),
        (400, "RequestLimitExceeded", "slow down", Throttled),
        (400, "RequestThrottled", "slow down", Throttled),
        (400, "RequestThrottledException", "slow down", Throttled),
        (400, "TooManyRequestsException", "slow down", Throttled),
        (400, "LimitExceededException", "slow down", Throttled),
        (503, "SlowDown", "slow down", Throttled),
        (400, "TransactionConflictException", "ongoing transaction", TransactionConflict),
        (400, "TransactionInProgressException", "ongoing transaction", TransactionConflict),
        (400, "ReplicatedWriteConflictException", "another Region", TransactionConflict),
        (500, "InternalServerError", "oops", Server),
        (500, "InternalFailure", "oops", Server),
        (503, "ServiceUnavailable", "oops", Server),
        (503, "SomethingNew", "oops", Server),
        (400, "InternalServerError", "oops", Server),
        (400, "ResourceNotFoundException", "Requested resource not found", MissingTable),
        (400, "ValidationException", "The provided key element does not match the schema", WrongKeySchema),
        (400, "ValidationException", "The number of conditions on the keys is invalid", WrongKeySchema),
        (400, "ValidationException", "Type mismatch for key key expected: N actual: S", WrongKeySchema),
        (
            400,
            "ValidationException",
            "Cannot update attribute owner. This attribute is part of the key",
            WrongKeySchema,
        ),
        (
            400,
            "ValidationException",
            "One or more parameter values were invalid: Type mismatch for Index Key owner Expected: N Actual: S",
            WrongKeySchema,
        ),
        (400, "ValidationException", "Item size to update has exceeded the maximum allowed size", MalformedRow),
        (
            400,
            "ValidationException",
            "Number overflow. Attempting to store a number with magnitude larger than supported range",
            MalformedRow,
        ),
        (400, "ValidationException", "Attempting to store more than 38 significant digits in a Number", MalformedRow),
        (400, "ValidationException", "Invalid UpdateExpression: Syntax error", Rejected),
        (400, "ResourceInUseException", "Table is being created: locks", MissingTable),
        (400, "AccessDeniedException", "User: arn:aws:sts::1:f is not authorized", AccessDenied),
        (400, "UnauthorizedOperation", "no", AccessDenied),
        (400, "UnrecognizedClientException", "The security token is invalid", Credentials),
        (400, "InvalidSignatureException", "Signature expired: 20231114T220000Z is now earlier than …", Clock),
        (400, "InvalidSignatureException", "Signature not yet current: 20231115T000000Z is still later than …", Clock),
        (400, "InvalidSignatureException", "The request signature we calculated does not match", Credentials),
        (403, "RequestTimeTooSkewed", "The difference is too large", Clock),
        (400, "RequestExpired", "Request has expired", Clock),
        (400, "ExpiredTokenException", "The security token is expired", Credentials),
        (400, "ExpiredToken", "The security token is expired", Credentials),
        (400, "MissingAuthenticationTokenException", "Missing token", Credentials),
        (400, "IncompleteSignatureException", "incomplete", Credentials),
        (403, "InvalidClientTokenId", "unknown", Credentials),
        (400, "ItemCollectionSizeLimitExceededException", "too large", Rejected),
        (400, "SomethingNew", "what is that", Rejected),
    ];
    for (status, code, message, kind) in cases {
        for request in [acquire(), Request::Read] {
            let (failure, date) = failure_of(request, Fault::error(status, code, message)).await;
            assert_eq!(failure.kind, kind, "{failure}");
            for told in [code, message, "`locks`"] {
                assert!(failure.message.contains(told), "{told} is missing: {failure}");
            }
            assert_eq!(date, Some(DATE), "{failure}");
        }
    }
}

#[tokio::test]
async fn a_message_that_someone_else_wrote_is_cut() {
    let (failure, _) = failure_of(acquire(), Fault::error(400, "SomethingNew", &"x".repeat(100_000))).await;
    assert!(failure.message.len() < 1_000, "{}", failure.message.len());
}

#[tokio::test]
async fn an_answer_without_a_name_is_not_taken_for_dynamodbs() {
    let html = "<html><h1>No</h1></html>";
    let cases = [
        (400, FailureKind::Rejected),
        (403, FailureKind::Rejected),
        (404, FailureKind::Rejected),
        (407, FailureKind::Rejected),
        (408, FailureKind::Server),
        (429, FailureKind::Server),
        (500, FailureKind::Server),
        (502, FailureKind::Server),
        (504, FailureKind::Server),
    ];
    for (status, kind) in cases {
        for body in [html, "", "{}"] {
            let fault = Fault::answer_with(status, &[("Date", "Tue, 14 Nov 2023 22:13:20 GMT")], body);
            let (failure, date) = failure_of(acquire(), fault).await;
            assert_eq!(failure.kind, kind, "{status} {body}: {failure}");
            assert!(failure.message.contains(&status.to_string()), "{failure}");
            assert_eq!(date, None, "another server's clock");
        }
    }
}

#[tokio::test]
async fn a_success_that_does_not_say_what_was_written_is_unknown() {
    let bodies = [
        "{}",
        "",
        "<html>",
        r#"{"Attributes":"#,
        r#"{"Attributes":{}}"#,
        r#"{"Attributes":{"version":{"S":"8"}}}"#,
        r#"{"Attributes":{"version":{"N":"1.5"}}}"#,
        r#"{"Attributes":{"version":{"N":"-1"}}}"#,
        r#"{"Attributes":{"version":{"N":"9"}}}"#,
    ];
    for body in bodies {
        let (failure, _) = failure_of(renew(), Fault::answer(200, body)).await;
        assert_eq!(failure.kind, FailureKind::Server, "{body}: {failure}");
        assert!(failure.kind.may_have_landed());
    }
    let body = r#"{"Attributes":{"version":{"N":"8"}}}"#;
    let answer = answer_to(renew(), Fault::answer(200, body)).await;
    assert_eq!(answer, Answer::new(Outcome::written(Version::Counter(8)), Some(DATE)));
}

#[tokio::test]
async fn a_release_needs_no_attributes_in_its_answer() {
    let release = Request::Release { owners: vec![owner(1)], ttl: None, hold: None };
    let answer = answer_to(release, Fault::answer(200, "{}")).await;
    assert_eq!(answer.outcome, Outcome::written(Version::Counter(0)));
}

#[tokio::test]
async fn a_refusal_without_the_row_means_an_absent_one_but_never_for_an_acquire() {
    let refusal = || Fault::error(400, "ConditionalCheckFailedException", "The conditional request failed");
    let release = Request::Release { owners: vec![owner(1)], ttl: None, hold: None };
    for request in [renew(), release] {
        let answer = answer_to(request, refusal()).await;
        assert_eq!(answer, Answer::new(Outcome::Refused { row: Row::Absent }, Some(DATE)));
    }
    let (failure, _) = failure_of(acquire(), refusal()).await;
    assert_eq!(failure.kind, FailureKind::Rejected);
    assert!(failure.message.contains("ReturnValuesOnConditionCheckFailure"), "{failure}");
}

#[tokio::test]
async fn a_connection_that_breaks_leaves_the_outcome_open() {
    let cut =
        "HTTP/1.1 200 OK\r\nx-amzn-RequestId: 1\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\nContent-Length: 99\r\n\r\n{";
    for fault in
        [Fault::Reset, Fault::Close, Fault::AnswerAndClose(cut.into()), Fault::AnswerAndClose("nonsense".into())]
    {
        let (failure, _) = failure_of(acquire(), fault.clone()).await;
        assert!(failure.kind.may_have_landed() && failure.kind.is_transient(), "{fault:?}: {failure}");
        assert!(matches!(failure.kind, FailureKind::Connection | FailureKind::Server), "{fault:?}: {failure}");
        assert!(failure.message.contains("`locks`"), "{failure}");
    }
}

#[tokio::test]
async fn nobody_listening_is_a_connection_failure() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let store = DynamoDb::with_config(sdk_config(&format!("http://{port}")));
    let answer = store.send(&lock("k"), acquire(), Duration::from_secs(5)).await;
    let Outcome::Failed(failure) = answer.outcome else { panic!("{answer:?}") };
    assert_eq!(failure.kind, FailureKind::Connection, "{failure}");
    assert!(failure.message.to_lowercase().contains("refused"), "{failure}");
}

#[tokio::test]
async fn a_date_that_is_not_one_or_comes_from_a_cache_does_not_serve() {
    let good = ("Date", "Tue, 14 Nov 2023 22:13:20 GMT");
    let id = ("x-amzn-RequestId", "REQ1");
    let body = r#"{"Attributes":{"version":{"N":"8"}}}"#;
    let cases = [
        (&[id, good][..], Some(DATE)),
        (&[id], None),
        (&[id, ("Date", "yesterday")], None),
        (&[id, ("Date", "1700000000")], None),
        (&[id, good, ("Age", "0")], None),
        (&[good], None),
    ];
    for (headers, date) in cases {
        let answer = answer_to(renew(), Fault::answer_with(200, headers, body)).await;
        assert_eq!(answer, Answer::new(Outcome::written(Version::Counter(8)), date), "{headers:?}");
    }
}

#[tokio::test]
async fn each_request_asks_for_its_capacity_and_what_it_consumed_is_counted() {
    let body = r#"{"Attributes":{"version":{"N":"8"}},"ConsumedCapacity":{"TableName":"locks","CapacityUnits":2.5}}"#;
    let server = FaultServer::always(Fault::answer(200, body));
    let store = DynamoDb::with_config(sdk_config(server.url()));
    for request in [renew(), renew(), Request::Read] {
        store.send(&lock("k"), request, Duration::from_secs(5)).await;
    }
    let usage = store.usage();
    assert_eq!((usage.renewals, usage.reads, usage.write_units, usage.read_units), (2, 1, 5.0, 2.5));
    for seen in server.seen() {
        assert_eq!(seen.body["ReturnConsumedCapacity"], "TOTAL", "{seen:?}");
    }
    assert_eq!(server.seen()[2].body["ConsistentRead"], true);
    assert_eq!(server.seen()[0].body["ReturnValuesOnConditionCheckFailure"], "ALL_OLD");
}
