//! The function: its event lists the steps it takes, such as `{"steps": ["say:hello", "sleep:50", "spin"]}`.

use std::{
    io::{self, Write as _},
    path::Path,
    process::Command,
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::{http::Answer, http::Connection, say, setting};

const BASE: &str = "/2018-06-01/runtime";

/// Serves invocations until killed; on Managed Instances on as many threads as it is told.
pub(crate) fn run() -> io::Result<()> {
    handle_sigterm()?;
    match setting("DOUBLE_INIT").as_str() {
        "exit" => std::process::exit(7),
        "complain" => {
            let _ = writeln!(io::stderr(), "Error: the double was told to end");
            std::process::exit(1);
        }
        "hang" => loop {
            thread::park();
        },
        "error" => {
            let body = json!({ "errorType": "Double.InitError", "errorMessage": "told to" }).to_string();
            Connection::open()?.post(&format!("{BASE}/init/error"), &[], body.as_bytes())?;
            std::process::exit(1);
        }
        _ => {}
    }
    let workers: usize = setting("AWS_LAMBDA_MAX_CONCURRENCY").parse().unwrap_or(1);
    let threads: Vec<_> = (0..workers).map(|_| thread::spawn(serve)).collect();
    for thread in threads {
        thread.join().map_err(|_| io::Error::other("a worker panicked"))??;
    }
    Ok(())
}

fn serve() -> io::Result<()> {
    let mut connection = Connection::open()?;
    loop {
        let invocation = connection.get(&format!("{BASE}/invocation/next"), &[])?;
        if invocation.status != 200 {
            return Err(io::Error::other(format!("Next was answered with {}", invocation.status)));
        }
        handle(&mut connection, &invocation)?;
    }
}

/// Takes the steps one after the other; answers at the end unless a step did.
fn handle(connection: &mut Connection, invocation: &Answer) -> io::Result<()> {
    let id = invocation.header("lambda-runtime-aws-request-id").unwrap_or_default().to_owned();
    let event: Value = serde_json::from_slice(&invocation.body).unwrap_or_default();
    let response_path = format!("{BASE}/invocation/{id}/response");
    let mut response = json!({
        "event": event,
        "deadline": invocation.header("lambda-runtime-deadline-ms"),
        "arn": invocation.header("lambda-runtime-invoked-function-arn"),
        "trace": invocation.header("lambda-runtime-trace-id"),
        "tenant": invocation.header("lambda-runtime-aws-tenant-id"),
    });
    let steps = event["steps"].as_array().cloned().unwrap_or_default();
    for step in steps.iter().filter_map(Value::as_str) {
        let (step, argument) = step.split_once(':').unwrap_or((step, ""));
        match step {
            "say" => say(argument),
            "sleep" => thread::sleep(Duration::from_millis(argument.parse().unwrap_or(0))),
            "spin" => loop {
                std::hint::spin_loop();
            },
            "abort" => std::process::abort(),
            "exit" => std::process::exit(argument.parse().unwrap_or(0)),
            "fork" => {
                let child = Command::new("sleep").arg("600").spawn()?;
                say(&format!("forked {}", child.id()));
            }
            "touch" => std::fs::write(std::env::temp_dir().join(argument), b"")?,
            "await" => wait_until(|| Ok(Path::new(argument).exists()))?,
            "meet" => {
                std::fs::write(std::env::temp_dir().join(format!("meet-{id}")), b"")?;
                let all = argument.parse().unwrap_or(1);
                wait_until(|| Ok(files()?.len() >= all))?;
            }
            "files" => response["files"] = json!(files()?),
            "env" => response[argument] = json!(std::env::var(argument).ok()),
            "large" => response["filler"] = json!("x".repeat(7 * 1024 * 1024)),
            "fail" => {
                let body = json!({ "errorType": "Double.Failed", "errorMessage": argument }).to_string();
                let headers = [("lambda-runtime-function-error-type", "unhandled")];
                let answer = connection.post(&format!("{BASE}/invocation/{id}/error"), &headers, body.as_bytes())?;
                return told(&answer);
            }
            "stream" => {
                let headers = [("Lambda-Runtime-Function-Response-Mode", "streaming")];
                let answer = connection.stream(&response_path, &headers, &["one ", "two ", "three"], &[])?;
                return told(&answer);
            }
            "break-stream" => {
                let headers = [
                    ("Lambda-Runtime-Function-Response-Mode", "streaming"),
                    ("Trailer", "Lambda-Runtime-Function-Error-Type"),
                ];
                let trailers = [("Lambda-Runtime-Function-Error-Type", "Double.StreamBroke")];
                let answer = connection.stream(&response_path, &headers, &["one "], &trailers)?;
                return told(&answer);
            }
            "next" => {
                let answer = connection.get(&format!("{BASE}/invocation/next"), &[])?;
                say(&format!("early Next got {}", answer.status));
            }
            "answer" => told(&connection.post(&response_path, &[], b"\"early\"")?)?,
            other => return Err(io::Error::other(format!("no such step: {other}"))),
        }
    }
    let answer =
        connection.post(&response_path, &[("content-type", "application/json")], response.to_string().as_bytes())?;
    told(&answer)
}

fn told(answer: &Answer) -> io::Result<()> {
    say(&format!("answered with {}", answer.status));
    Ok(())
}

/// Bounded by the invocation's timeout or by the test.
fn wait_until(done: impl Fn() -> io::Result<bool>) -> io::Result<()> {
    while !done()? {
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn files() -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(std::env::temp_dir())? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// `ignore`: says so and stays; `exit`: says so and exits; otherwise SIGTERM kills as usual.
fn handle_sigterm() -> io::Result<()> {
    let mode = setting("DOUBLE_SIGTERM");
    if mode.is_empty() {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let context = runtime.enter();
    let mut terminate = signal(SignalKind::terminate())?;
    drop(context);
    thread::spawn(move || {
        runtime.block_on(async {
            while terminate.recv().await.is_some() {
                say("got SIGTERM");
                if mode == "exit" {
                    std::process::exit(0);
                }
            }
        });
    });
    Ok(())
}
