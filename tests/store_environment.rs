//! What the environment says, each time in a process of its own: where DynamoDB is, and what is missing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::process::Command;
use std::time::Duration;

use leasehold::protocol::{FailureKind, Outcome, Request};
use leasehold::store::{DynamoDb, Store};
use support::fault_server::{Fault, FaultServer};
use support::lock;

const REGION: (&str, &str) = ("AWS_REGION", "eu-central-1");
const KEY_ID: (&str, &str) = ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
const SECRET: (&str, &str) = ("AWS_SECRET_ACCESS_KEY", "not a secret");

/// Run by the other tests, with the environment that they want: tells what came of one request each way.
#[tokio::test]
#[ignore = "run by the other tests in a process of its own"]
async fn child() {
    for store in [DynamoDb::from_env().await, DynamoDb::lazy()] {
        let answer = store.send(&lock("k"), Request::Read, Duration::from_secs(5)).await;
        match answer.outcome {
            Outcome::Read { .. } => println!("outcome: read"),
            Outcome::Failed(failure) => println!("outcome: {:?} {}", failure.kind, failure.message),
            other => panic!("{other:?}"),
        }
    }
}

fn outcomes(variables: &[(&str, &str)]) -> Vec<String> {
    let nowhere = "/nonexistent";
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "child"])
        .env_clear()
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .envs(["HOME", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"].map(|name| (name, nowhere)))
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let outcomes: Vec<_> = text.lines().filter_map(|line| line.split_once("outcome: ")).collect();
    let outcomes: Vec<_> = outcomes.into_iter().map(|(_, outcome)| outcome.to_owned()).collect();
    assert_eq!(outcomes.len(), 2, "{text}");
    outcomes
}

#[test]
fn the_environment_names_the_endpoint() {
    for variable in ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL"] {
        let server = FaultServer::always(Fault::answer(200, "{}"));
        let outcomes = outcomes(&[REGION, KEY_ID, SECRET, (variable, server.url())]);
        assert_eq!(outcomes, ["read", "read"], "{variable}");
        assert_eq!(server.seen().len(), 2, "{variable}");
    }
}

#[test]
fn retries_that_the_environment_asks_for_are_not_made() {
    let server = FaultServer::always(Fault::error(500, "InternalServerError", "oops"));
    let retries = [("AWS_MAX_ATTEMPTS", "5"), ("AWS_RETRY_MODE", "standard")];
    let here = [REGION, KEY_ID, SECRET, ("AWS_ENDPOINT_URL", server.url())];
    let outcomes = outcomes(&[&here[..], &retries[..]].concat());
    assert!(outcomes.iter().all(|outcome| outcome.starts_with("Server ")), "{outcomes:?}");
    assert_eq!(server.seen().len(), 2);
}

#[test]
fn what_the_environment_lacks_is_told_in_the_answer() {
    let server = FaultServer::always(Fault::answer(200, "{}"));
    let endpoint = ("AWS_ENDPOINT_URL", server.url());
    for outcome in outcomes(&[REGION, endpoint]) {
        assert!(outcome.starts_with(&format!("{:?} ", FailureKind::Credentials)), "{outcome}");
        assert!(outcome.contains("AWS_ACCESS_KEY_ID"), "{outcome}");
    }
    for outcome in outcomes(&[KEY_ID, SECRET, endpoint]) {
        assert!(outcome.starts_with(&format!("{:?} ", FailureKind::Rejected)), "{outcome}");
        assert!(outcome.contains("AWS_REGION"), "{outcome}");
    }
    for outcome in outcomes(&[REGION, KEY_ID, SECRET, ("AWS_ENDPOINT_URL", "not a URL")]) {
        assert!(outcome.starts_with(&format!("{:?} ", FailureKind::Rejected)), "{outcome}");
    }
    assert_eq!(server.seen().len(), 0);
}
