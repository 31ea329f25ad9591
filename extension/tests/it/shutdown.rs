//! SHUTDOWN with many leases held: each goes back, at the same time as the others.

use std::time::Duration;

use leasehold_sandbox::demo::Said;
use leasehold_sandbox::faults::{Answer, Fault, Step};
use leasehold_sandbox::{Event, EventKind, Process, Sandbox, Stream};

use crate::extension::{Extension, Place};
use crate::fake_api::FakeApi;
use crate::session::{Client, Rows, TABLE};

const LEASES: usize = 50;
/// The one whose release DynamoDB never carries out.
const FAILS: &str = "k7";

/// When a line was written, by the extension's own clock.
fn written_at(line: &str) -> Option<(String, u64)> {
    let kind = EventKind::Output { process: Process::Runtime, stream: Stream::Stdout, line: line.to_owned() };
    let said = Said::in_event(&Event { index: 0, at: Duration::ZERO, environment: None, init: 0, kind })?;
    let at = said.at_us()?;
    Some((said.message, at))
}

#[tokio::test]
async fn fifty_leases_go_back_at_once_and_one_that_fails_holds_up_none() {
    let sandbox = Sandbox::builder().function("/bin/true").fault_proxy(true).start().await.unwrap();
    sandbox.tables().create_lock_table(TABLE).await.unwrap();
    let (mut api, place, rows) = (FakeApi::start().await, Place::new(), Rows { sandbox });
    let variables = [rows.variables()[0], ("AWS_LAMBDA_LOG_FORMAT", "JSON")];
    let mut extension = Extension::start(&place, api.address(), &variables);
    let next = api.ready().await;
    let mut clients = Vec::new();
    for number in 0..LEASES {
        clients.push(Client::hold(&place.socket(), &format!("r{number}"), &format!("k{number}")).await);
    }
    let releases = rows.sandbox.faults().unwrap().inject_where(usize::MAX, |passing| {
        let fails = passing.key.as_deref() == Some(FAILS);
        let fault = if fails {
            Fault::Answer(Answer::server_error(500))
        } else {
            Fault::DelayRequest(Duration::from_millis(50))
        };
        (passing.step == Step::Release).then_some(fault)
    });

    next.shutdown();
    assert_eq!(extension.exited().await.code(), Some(0));
    for number in 0..LEASES {
        let key = format!("k{number}");
        assert_eq!(rows.is_held(&key).await, key == FAILS, "{key}");
    }
    let lines: Vec<_> = extension.said_to_the_end().await.iter().filter_map(|line| written_at(line)).collect();
    let at =
        |message: &str| -> Vec<u64> { lines.iter().filter(|(said, _)| said == message).map(|(_, at)| *at).collect() };
    let (began, released) = (at("shutdown"), at("released"));
    assert_eq!((began.len(), released.len()), (1, LEASES - 1), "{lines:?}");
    let took = Duration::from_micros(released.into_iter().max().unwrap() - began[0]);
    assert!(took <= Duration::from_millis(1_200), "the last one was freed {took:?} after SHUTDOWN");
    assert!(releases.met().len() > LEASES, "the one that fails is tried again");
}
