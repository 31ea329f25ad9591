//! The extension: registers, calls Next, and misbehaves as `DOUBLE_EXTENSION` says.

use std::{io, path::Path, thread, time::Duration};

use serde_json::{Value, json};

use super::{http::Connection, say, setting};

const BASE: &str = "/2020-01-01/extension";

/// Runs until it is told to shut down, or as long as it was told to behave.
pub(crate) fn run() -> io::Result<()> {
    let mode = setting("DOUBLE_EXTENSION");
    let (mode, argument) = mode.split_once(':').unwrap_or((&mode, ""));
    match mode {
        "exit-at-once" => std::process::exit(3),
        "never-register" => loop {
            thread::park();
        },
        _ => {}
    }
    let mut connection = Connection::open()?;
    let id = register(&mut connection)?;
    let headers = [("Lambda-Extension-Identifier", id.as_str())];
    if mode == "init-error" {
        let body = json!({ "errorType": "Double.ExtensionInit", "errorMessage": "told to" }).to_string();
        connection.post(&format!("{BASE}/init/error"), &headers, body.as_bytes())?;
        std::process::exit(4);
    }
    loop {
        let answer = connection.get(&format!("{BASE}/event/next"), &headers)?;
        let event: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        match event["eventType"].as_str() {
            Some("INVOKE") => {
                say(&format!("INVOKE {}", event["requestId"].as_str().unwrap_or("without id")));
                match mode {
                    "exit-on-invoke" => std::process::exit(argument.parse().unwrap_or(0)),
                    "busy" => thread::sleep(Duration::from_millis(argument.parse().unwrap_or(0))),
                    "hang-on-invoke" => loop {
                        thread::park();
                    },
                    _ => {}
                }
            }
            Some("SHUTDOWN") => {
                say(&format!("SHUTDOWN {}", event["shutdownReason"].as_str().unwrap_or("without reason")));
                if mode == "ignore-shutdown" {
                    // As `lambda-extension` does: another Next, which is never answered.
                    connection.get(&format!("{BASE}/event/next"), &headers)?;
                }
                return Ok(());
            }
            _ => return Err(io::Error::other(format!("Next was answered with {}", answer.status))),
        }
    }
}

fn register(connection: &mut Connection) -> io::Result<String> {
    let program = std::env::args_os().next().unwrap_or_default();
    let own = Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = Some(setting("DOUBLE_NAME")).filter(|name| !name.is_empty()).unwrap_or(own);
    let events = Some(setting("DOUBLE_EVENTS")).filter(|events| !events.is_empty());
    let events = events.unwrap_or_else(|| "INVOKE,SHUTDOWN".to_owned());
    let body = json!({ "events": events.split(',').collect::<Vec<_>>() }).to_string();
    let headers = [("Lambda-Extension-Name", name.as_str()), ("Lambda-Extension-Accept-Feature", "accountId")];
    let answer = connection.post(&format!("{BASE}/register"), &headers, body.as_bytes())?;
    say(&format!("registering: {} {}", answer.status, String::from_utf8_lossy(&answer.body)));
    let id = answer.header("lambda-extension-identifier").map(str::to_owned);
    id.ok_or_else(|| io::Error::other("the registration was refused"))
}
