//! What the metrics say that leases and their states consumed is what the service's own answers said.
//!
//! Between the keeper and the proxy stands a wire that copies the bytes of both directions: the sums are made from these,
//! and not by the code that is tested.

use std::sync::{Arc, Mutex};

use leasehold::keeper::{MetricLines, Occasion};
use leasehold_sandbox::faults::{End, Fault, FaultProxy, Step};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use crate::session::{Ask, Session};
use crate::stage::Stage;

/// What went over one connection: the requests' bytes, and the answers'.
type Copied = Arc<Mutex<(Vec<u8>, Vec<u8>)>>;

/// The wire.
struct Wire {
    url: String,
    connections: Arc<Mutex<Vec<Copied>>>,
}

/// Capacity units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Units {
    writes: f64,
    reads: f64,
}

impl Wire {
    async fn to(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = format!("http://{}", listener.local_addr().unwrap());
        let there = url.trim_start_matches("http://").to_owned();
        let connections = Arc::new(Mutex::new(Vec::new()));
        let copied = connections.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(&there).await else { continue };
                let bytes = Copied::default();
                copied.lock().unwrap().push(bytes.clone());
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                let requests = bytes.clone();
                tokio::spawn(copy(from_client, to_server, move |part| {
                    requests.lock().unwrap().0.extend_from_slice(part);
                }));
                tokio::spawn(copy(from_server, to_client, move |part| bytes.lock().unwrap().1.extend_from_slice(part)));
            }
        });
        Self { url: here, connections }
    }

    /// What all answers said.
    fn units(&self) -> Units {
        let mut sum = Units::default();
        for copied in self.connections.lock().unwrap().iter() {
            let (requests, answers) = copied.lock().unwrap().clone();
            // On one connection answers come in the order of their requests.
            for (operation, body) in operations(&requests).into_iter().zip(bodies(&answers)) {
                sum.add(&operation, &body["ConsumedCapacity"]);
            }
        }
        sum
    }
}

impl Units {
    fn add(&mut self, operation: &str, consumed: &Value) {
        match operation {
            "GetItem" => self.reads += consumed["CapacityUnits"].as_f64().unwrap_or(0.0),
            "UpdateItem" => self.writes += consumed["CapacityUnits"].as_f64().unwrap_or(0.0),
            "TransactWriteItems" => {
                for of_table in consumed.as_array().into_iter().flatten() {
                    self.writes += of_table["WriteCapacityUnits"].as_f64().unwrap_or(0.0);
                    self.reads += of_table["ReadCapacityUnits"].as_f64().unwrap_or(0.0);
                }
            }
            other => panic!("{other} was not expected"),
        }
    }
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, note: impl Fn(&[u8])) {
    let mut buffer = vec![0; 16 * 1024];
    // However the connection ends, it is over.
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        // Noted first: what the keeper knows is in the copy.
        note(&buffer[..read]);
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

/// The operations of the requests on one connection.
fn operations(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes).to_lowercase();
    let names = ["GetItem", "UpdateItem", "TransactWriteItems"];
    let targets = text.split("x-amz-target: dynamodb_20120810.").skip(1);
    let named = targets.map(|rest| rest.lines().next().unwrap().trim().to_owned());
    named
        .map(|name| names.iter().find(|known| known.to_lowercase() == name).map_or(name, |known| known.to_string()))
        .collect()
}

/// The bodies of the answers on one connection.
fn bodies(mut bytes: &[u8]) -> Vec<Value> {
    let mut bodies = Vec::new();
    while let Some(head) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
        let (headers, rest) = bytes.split_at(head + 4);
        let headers = String::from_utf8_lossy(headers).to_lowercase();
        let length = headers.split("content-length:").nth(1).expect("a length").lines().next().unwrap();
        let length: usize = length.trim().parse().unwrap();
        let Some((body, rest)) = rest.split_at_checked(length) else { break };
        bodies.push(serde_json::from_slice(body).unwrap());
        bytes = rest;
    }
    bodies
}

/// Units as they stand in the lines of metrics.
fn told(lines: &[Value]) -> Units {
    let sum = |member: &str| lines.iter().filter_map(|line| line[member].as_f64()).sum();
    Units { writes: sum("WriteUnits"), reads: sum("ReadUnits") }
}

#[tokio::test]
async fn the_metrics_say_what_the_answers_said_of_leases_and_of_states() {
    let stage = Stage::new().await;
    let proxy = FaultProxy::start(stage.url()).unwrap();
    let wire = Wire::to(proxy.url()).await;
    let keeper = Stage::keeper(&wire.url);
    let meter = keeper.meter(MetricLines::Full, None, "extension");

    let mut holder = Session::begin(&keeper, "r-holder").await;
    holder.ask(Ask::patient().lease(6_000)).await;
    holder.granted().await;
    assert_eq!(holder.load_state().await, None);
    holder.save_state(1, "1", false).await;
    holder.state_saved(1).await;
    // It is carried out, sent again, and answered the second time: then it consumes reads.
    proxy.inject(Step::SaveState, 1, Fault::LoseReply(End::Close));
    let large = format!("\"{}\"", "x".repeat(5_000));
    holder.save_state(2, &large, false).await;
    holder.state_saved(2).await;
    assert_eq!(holder.load_state().await, Some(large));

    let mut contender = Session::begin(&keeper, "r-contender").await;
    contender.ask(Ask::patient().wait(50)).await;
    contender.busy().await;

    let counted = holder.counted().await;
    let of_contender = contender.counted().await;
    let sum = |a: Option<u64>, b: Option<u64>| (a.unwrap_or(0) + b.unwrap_or(0)) as f64 / 1e6;
    let units = Units {
        writes: sum(counted.write_unit_millionths, of_contender.write_unit_millionths),
        reads: sum(counted.read_unit_millionths, of_contender.read_unit_millionths),
    };
    assert_eq!(units, wire.units(), "as `Lease::metrics` tells it");
    // The state's two items are counted twice each, and its five kilobytes are six units: 1 + (2 + 2), and a replay's
    // reads of (1 + 2) × 2 beside those that were asked for.
    assert!(units.writes >= 5.0 && units.reads >= 6.0, "{units:?}");
    assert_eq!((counted.write_requests, counted.read_requests), (4, 2), "{counted:?}");

    holder.save_state(3, "3", true).await;
    holder.state_saved(3).await;
    holder.release().await;
    let mut lines = Vec::new();
    meter.write(Occasion::End, |line| {
        lines.push(serde_json::from_slice(&line).unwrap());
        true
    });
    assert_eq!(told(&lines), wire.units(), "{lines:#?}");
    assert!(told(&lines).writes >= units.writes + 4.0, "the release's transaction is in it: {lines:#?}");
}
