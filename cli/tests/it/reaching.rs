//! Endpoints that can't be reached or are none of DynamoDB's: which, what failed, what to do, in plain words and by status.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::thread;

use leasehold::session::Table;
use serde_json::Value;

use crate::stage::{Ran, Stage, program, run};
use crate::stand_in;

/// Answers each request with these bytes and closes the connection. Answers where it is found.
fn answering(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(&stream);
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            // Who goes away in the middle is no failure of the test.
            let _ = reader.read_exact(&mut vec![0; length]);
            let _ = (&stream).write_all(bytes);
        }
    });
    url
}

/// Every command that asks DynamoDB, with an endpoint.
fn commands(url: &str) -> Vec<Vec<&str>> {
    let commands = [
        vec!["list"],
        vec!["show", "orders:1"],
        vec!["watch", "--looks", "1"],
        vec!["free", "orders:1", "--if-version", "1"],
        vec!["table", "check"],
        vec!["table", "create"],
    ];
    commands.map(|command| [&command[..], &["--table", "locks", "--endpoint-url", url]].concat()).to_vec()
}

/// The status is 3, standard error says this in a line or two, and nothing of the SDK's own description is among it.
fn assert_plain(ran: Ran, parts: &[&str]) {
    let ran = ran.ended(3);
    for part in parts {
        assert!(ran.err.contains(part), "{part:?} is missing in {}", ran.err);
    }
    let of_the_sdk = ["DispatchFailure", "ConnectorError", "unhandled", "interceptor", "dispatch failure", "proxy"];
    assert!(!of_the_sdk.iter().any(|text| ran.err.contains(text)), "{}", ran.err);
    assert!(ran.err.lines().count() <= 2 && ran.err.len() < 900, "{}", ran.err);
}

#[test]
fn a_dead_endpoint_is_named_by_every_command() {
    for command in commands("http://127.0.0.1:9") {
        assert_plain(run(&command), &["nothing listens at http://127.0.0.1:9: the connection was refused"]);
    }
}

#[test]
fn what_is_not_dynamodb_is_told_as_that_and_never_as_an_empty_table() {
    let html = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>";
    for (answer, words) in [
        (&html[..], "HTTP 200"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n", "HTTP 404"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "not DynamoDB"),
        (b"HTTP/1.1 503 Busy\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nno", "HTTP 503"),
        (b"SSH-2.0-OpenSSH_9\r\n", "does not speak HTTP"),
        (b"", "closed the connection without an answer"),
    ] {
        let url = answering(answer);
        for command in [vec!["list"], vec!["show", "orders:1"], vec!["table", "check"]] {
            let command = [&command[..], &["--table", "locks", "--endpoint-url", &url]].concat();
            let ran = run(&command);
            assert_eq!(ran.out, "", "{command:?}");
            assert_plain(ran, &[words, &url]);
        }
    }
}

#[test]
fn names_without_an_address_and_tls_where_there_is_none_are_told_apart() {
    let list = |url: &str| run(&["list", "--table", "locks", "--endpoint-url", url]);
    assert_plain(list("http://leasehold.invalid:8000"), &["the name `leasehold.invalid`", "has no address"]);
    let plain = answering(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let tls = plain.replace("http:", "https:");
    assert_plain(list(&tls), &["TLS", &tls]);
    let ran = run(&["list", "--table", "locks", "--region", "xx-nowhere-1"]);
    assert_plain(ran, &["`dynamodb.xx-nowhere-1.amazonaws.com`", "the Region", "asked with --region xx-nowhere-1"]);
}

#[test]
fn certificates_that_can_not_be_read_are_told_by_their_variable() {
    for (variable, value) in [("SSL_CERT_FILE", "/no/such/file"), ("SSL_CERT_DIR", "/no/such/folder")] {
        let mut command = program(&["list", "--table", "locks", "--endpoint-url", "https://127.0.0.1:9"]);
        let ran = Ran::of(command.env(variable, value).output().unwrap());
        assert_plain(ran, &[&format!("{variable} (`{value}`)"), "https://127.0.0.1:9 was not asked"]);
    }
}

#[test]
fn lambda_and_cloudformation_are_not_looked_for_at_a_dynamodb() {
    let stage = Stage::without_tables(Table::new("locks"));
    let url = stage.dynamodb.url();
    for command in [vec!["doctor", "--function", "orders"], vec!["verify", "--stack", "s", "--yes"]] {
        let ran = run(&[&command[..], &["--endpoint-url", url]].concat());
        assert_plain(ran, &["is not this service", "AWS_ENDPOINT_URL_DYNAMODB, _LAMBDA"]);
    }
    let url = stand_in::start(|_| stand_in::error(400, "UnknownOperationException", ""));
    let ran = run(&["doctor", "--function", "orders", "--endpoint-url", &url]);
    assert_plain(ran, &["UnknownOperationException", "does not know this request"]);
}

#[test]
fn settings_of_aws_that_are_none_are_told_before_anything_is_asked() {
    let list = ["list", "--table", "locks"];
    for (variable, value, says) in [
        ("AWS_ENDPOINT_URL", "", "AWS_ENDPOINT_URL: it is empty"),
        ("AWS_ENDPOINT_URL_DYNAMODB", "", "AWS_ENDPOINT_URL_DYNAMODB: it is empty"),
        ("AWS_ENDPOINT_URL", "localhost:8000", "\"localhost:8000\" is no URL of an endpoint"),
        ("AWS_REGION", "", "is no Region"),
        ("AWS_REGION", "eu central", "is no Region"),
    ] {
        let ran = Ran::of(program(&list).env(variable, value).output().unwrap()).ended(2);
        assert!(ran.err.contains(says), "{says:?} is missing in {}", ran.err);
    }
    let ran = Ran::of(program(&list).env_remove("AWS_REGION").output().unwrap()).ended(2);
    assert!(ran.err.contains("no Region is set: give --region"), "{}", ran.err);
    // The SDK panics at these.
    let stage = Stage::without_tables(Table::new("locks"));
    let mut command = program(&stage.arguments(&["table", "check"]));
    Ran::of(command.env("AWS_MAX_ATTEMPTS", "many").env("AWS_RETRY_MODE", "none").output().unwrap()).ended(1);
}

/// As with AWS's own command line: who says `--profile` means its credentials, whatever keys lie in variables.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_profile_that_is_asked_for_goes_before_keys_in_variables() {
    let stage = Stage::new().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("credentials");
    std::fs::write(&path, "[good]\naws_access_key_id = AKIDPROFILE\naws_secret_access_key = secret\n").unwrap();
    let check = |profile: &str| {
        let mut command = program(&stage.arguments(&["list", "--profile", profile]));
        Ran::of(command.env("AWS_SHARED_CREDENTIALS_FILE", &path).env("AWS_CONFIG_FILE", "/dev/null").output().unwrap())
    };
    check("good").ended(0);
    let ran = check("missing").ended(3);
    assert!(
        ran.err.contains("profile") && ran.err.contains("asked with") && ran.err.contains("missing"),
        "{}",
        ran.err
    );
}

#[test]
fn missing_credentials_are_told_with_what_to_do() {
    for command in [["list", "--table", "locks"].to_vec(), ["table", "check", "--table", "locks"].to_vec()] {
        let mut command = program(&[&command[..], &["--endpoint-url", "http://127.0.0.1:9"]].concat());
        command.env_remove("AWS_ACCESS_KEY_ID").env("AWS_EC2_METADATA_DISABLED", "true");
        assert_plain(
            Ran::of(command.output().unwrap()),
            &["credentials", "were found in variables, a profile", "aws sso login"],
        );
    }
}

/// Standard output is one JSON document, whatever happened: a program reads it before it looks at the status.
#[test]
fn with_json_errors_are_documents_too() {
    let dead = ["--table", "locks", "--endpoint-url", "http://127.0.0.1:9", "--json"];
    for command in commands("http://127.0.0.1:9") {
        let command = [&command[..], &["--json"]].concat();
        let told = run(&command).ended(3).json();
        assert_eq!(told["error"]["status"], 3, "{command:?}: {told}");
        assert!(told["error"]["told"].as_str().unwrap().contains("nothing listens at"), "{command:?}: {told}");
    }
    let told = run(&[&["list"][..], &dead].concat()).ended(3).json();
    assert_eq!((&told["rows"], &told["summary"]["looked_at"]), (&Value::Array(vec![]), &0.into()));
    for (command, status) in [
        (vec!["list", "--json"], 2),
        (vec!["bogus", "--json"], 2),
        (vec!["free", "a", "--table", "locks", "--json"], 2),
        (vec!["show", "", "--table", "locks", "--json"], 2),
        (vec!["list", "--table", "locks", "--namespace", "a/b", "--json"], 2),
        (vec!["report", "--json"], 2),
        (vec!["cost", "--locks", "1e300", "--json"], 2),
        (vec!["doctor", "--function", "f", "--endpoint-url", "http://127.0.0.1:9", "--json"], 3),
        (vec!["verify", "--stack", "s", "--scene", "bogus", "--json"], 2),
    ] {
        let told = run(&command).ended(status).json();
        assert_eq!(told["error"]["status"], status, "{command:?}: {told}");
        assert!(!told["error"]["told"].as_str().unwrap().is_empty());
    }
    let scenes = run(&["verify", "--list", "--json"]).ended(0).json();
    assert_eq!(scenes["scenes"][0]["scene"], "contend", "{scenes}");
}
