//! The span of a traced invocation's wait, as whoever collects spans sees it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io;
use std::sync::{Arc, Mutex};

use lambda_runtime::tower::{Layer as _, Service as _, service_fn};
use lambda_runtime::{Error, LambdaEvent};
use leasehold::LeaseLayer;
use leasehold::testing::TestKeeper;
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;

const TRACED: &str = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
const UNTRACED: &str = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0";

/// What was written so far.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    /// The spans that were closed, each as an object.
    fn take_closed(&self) -> Vec<Value> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        let lines = String::from_utf8(bytes).unwrap();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["fields"]["message"] == "close").map(|line| line["span"].clone()).collect()
    }
}

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Written {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

async fn work(_: LambdaEvent<Value>) -> Result<Value, Error> {
    Ok(json!("done"))
}

#[tokio::test]
async fn the_wait_of_a_traced_invocation_is_a_span_and_others_have_none() {
    let written = Written::default();
    let subscriber =
        tracing_subscriber::fmt().json().with_span_events(FmtSpan::CLOSE).with_writer(written.clone()).finish();
    let _here = tracing::subscriber::set_default(subscriber);
    let keeper = TestKeeper::new();
    let layer = LeaseLayer::builder("orders:{id}").table("locks").test_keeper(&keeper).build().unwrap();
    let mut service = layer.layer(service_fn(work));
    let mut invoke = async |header: Option<&str>| {
        let mut event = keeper.event(json!({ "id": 17 }));
        event.context.xray_trace_id = header.map(str::to_owned);
        service.call(event).await
    };

    for header in [None, Some(UNTRACED)] {
        invoke(header).await.unwrap();
        assert_eq!(written.take_closed(), [Value::Null; 0]);
    }
    invoke(Some(TRACED)).await.unwrap();
    let [granted] = &written.take_closed()[..] else { panic!("one span") };
    let fields = json!({
        "name": "lease wait", "otel.kind": "client", "db.system": "dynamodb",
        "aws.xray.trace_id": "1-5759e988-bd862e3fe1be46a994272793", "aws.xray.parent_id": "53995c3f42cd8ad8",
        "lease.template": "orders:{id}", "lease.table": "locks", "lease.outcome": "granted", "lease.attempts": 1,
    });
    for (name, value) in fields.as_object().unwrap() {
        assert_eq!(granted[name], *value, "{name}");
    }
    assert!(!granted.to_string().contains("orders:17"), "never the key");

    keeper.hold_elsewhere("orders:17");
    invoke(Some(TRACED)).await.unwrap_err();
    let [busy] = &written.take_closed()[..] else { panic!("one span") };
    assert_eq!((&busy["lease.outcome"], &busy["otel.status_code"]), (&json!("LeaseBusy"), &json!("ERROR")));
    assert!(busy["lease.waited_ms"].is_number());
}
