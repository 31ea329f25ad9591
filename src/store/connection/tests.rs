//! What is made of variables at which the SDK panics; each store in a process of its own, with variables of its own.

use std::process::Command;
use std::time::Duration;

use crate::session::Table;
use crate::store::DynamoDb;

/// Run by the other test, in the environment that it wants.
#[tokio::test]
#[ignore = "run by the other test in a process of its own"]
async fn child() {
    let looked = DynamoDb::from_env().await.look(&Table::new("locks"), "k", Duration::from_secs(60)).await;
    println!("outcome: {}", looked.unwrap_err());
}

fn outcome(variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "--nocapture", "store::connection::tests::child"]).env_clear();
    command.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").env("AWS_SECRET_ACCESS_KEY", "not a secret");
    let output = command.env("AWS_REGION", "xx-nowhere-1").envs(variables.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| line.split_once("outcome: ")).unwrap().1.to_owned()
}

#[test]
fn an_empty_or_broken_variable_is_no_panic() {
    const GENERAL: &str = "AWS_ENDPOINT_URL";
    const OF_DYNAMODB: &str = "AWS_ENDPOINT_URL_DYNAMODB";
    let (nobody, other) = ("http://127.0.0.1:9", "http://127.0.0.1:10");
    for (variables, says) in [
        (&[(GENERAL, "")][..], "`dynamodb.xx-nowhere-1.amazonaws.com`"),
        (&[(OF_DYNAMODB, "")], "`dynamodb.xx-nowhere-1.amazonaws.com`"),
        (&[(OF_DYNAMODB, ""), (GENERAL, nobody)], "nothing listens at http://127.0.0.1:9"),
        (&[(OF_DYNAMODB, nobody), (GENERAL, "")], "nothing listens at http://127.0.0.1:9"),
        (&[(OF_DYNAMODB, nobody), (GENERAL, other)], "nothing listens at http://127.0.0.1:9"),
        (&[("AWS_MAX_ATTEMPTS", "many"), ("AWS_RETRY_MODE", "none"), (GENERAL, nobody)], "nothing listens at"),
        (&[(GENERAL, "localhost")], "the endpoint is no URL"),
        (
            &[("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE\n")],
            "credentials: other: the credentials provider was not properly configured: \
          the access key has a control character",
        ),
        (&[("AWS_SECRET_ACCESS_KEY", "not a secret\r")], "the secret key has a control character"),
        (&[("AWS_SESSION_TOKEN", "to\nken")], "the session token has a control character"),
        (&[("AWS_REGION", "")], "the Region is none: set `AWS_REGION`"),
    ] {
        let outcome = outcome(variables);
        assert!(outcome.contains(says), "{variables:?}: {outcome}");
        assert!(outcome.len() < 500, "{outcome}");
    }
}
