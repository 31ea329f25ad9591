//! `list` on a table of 10,000 rows that is in use: bounded memory, progress, and every row once.

use std::collections::HashSet;
use std::io::{BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use leasehold_sandbox::Row;
use serde_json::Value;

use crate::pty::Pty;
use crate::stage::{Stage, n, program, s};

const ROWS: usize = 10_000;
const LEASE: Duration = Duration::from_secs(30);

fn row(number: usize) -> Row {
    let holder = [("function", s("ship-orders")), ("request_id", s("c0ffee")), ("acquired_at", n(1_700_000_000_000))];
    let holder = holder.map(|(name, value)| (name.to_owned(), value)).into();
    let owner = format!("00000000-0000-4000-8000-{number:012}");
    let row = [
        ("key", s(&format!("orders:{number:05}"))),
        ("format", s("leasehold/1")),
        ("version", n(1_700_000_000_000)),
        ("lease_ms", n(30_000)),
        ("owner", s(&owner)),
        ("holder", AttributeValue::M(holder)),
    ];
    row.map(|(name, value)| (name.to_owned(), value)).into()
}

async fn fill(client: &Client, rows: std::ops::Range<usize>) {
    let numbers: Vec<_> = rows.collect();
    for numbers in numbers.chunks(25) {
        let puts = numbers.iter().map(|number| {
            let put = PutRequest::builder().set_item(Some(row(*number))).build().unwrap();
            WriteRequest::builder().put_request(put).build()
        });
        client.batch_write_item().request_items("locks", puts.collect()).send().await.unwrap();
    }
}

/// Reads all that the program prints, and the most memory that it had meanwhile, in kilobytes.
fn read(mut command: Command) -> (String, u64) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let (mut out, mut peak, mut chunk) = (Vec::new(), 0, [0; 16_384]);
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    while let Ok(read @ 1..) = reader.read(&mut chunk) {
        out.extend_from_slice(&chunk[..read]);
        // While it waits for its pipe to be emptied it can't be gone; at its very end it may.
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let high = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let high = high.and_then(|high| high.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(high.unwrap_or(0));
    }
    assert!(child.wait().unwrap().success());
    (String::from_utf8(out).unwrap(), peak)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ten_thousand_rows_under_contention() {
    let stage = Arc::new(Stage::new().await);
    let client = stage.client().await;
    fill(&client, 0..500).await;
    let list = |more: &[&str]| program(&stage.arguments(&[&["list", "--json", "--consistent"], more].concat()));
    let (small, peak_of_small) = read(list(&[]));
    assert_eq!(serde_json::from_str::<Value>(&small).unwrap()["summary"]["held"], 500);
    fill(&client, 500..ROWS).await;

    let done = Arc::new(AtomicBool::new(false));
    let contention = tokio::spawn({
        let (stage, done) = (Arc::clone(&stage), Arc::clone(&done));
        async move {
            let mut rounds = 0;
            while !done.load(Ordering::Relaxed) {
                for key in ["hot:1", "hot:2", "hot:3"] {
                    let mut held = stage.take(key, LEASE).await;
                    stage.renew(key, &mut held).await;
                    stage.release(key, &held).await;
                }
                rounds += 1;
            }
            rounds
        }
    });

    let mut pty = Pty::open();
    let mut command = list(&["--prefix", "orders:"]);
    command.stderr(pty.end());
    let (out, peak) = tokio::task::spawn_blocking(move || read(command)).await.unwrap();
    done.store(true, Ordering::Relaxed);
    assert!(contention.await.unwrap() > 0, "nobody contended");

    let told: Value = serde_json::from_str(&out).unwrap();
    let keys: HashSet<_> = told["rows"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    assert_eq!((keys.len(), &told["summary"]["listed"]), (ROWS, &ROWS.into()));
    // Twenty times the rows take no more memory than a few pages of them.
    assert!(peak > 0 && peak < peak_of_small + 8 * 1_024, "{peak_of_small} kB for 500 rows, {peak} kB for {ROWS}");
    // Progress was told more than once, and taken away at the end.
    let screen = pty.shows("10,000 listed").to_owned();
    assert!(screen.matches("rows looked at").count() > 5, "{screen:?}");
}
