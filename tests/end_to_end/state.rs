//! A state from one holder to the next, as the example leaves it.

use std::{path::PathBuf, time::Duration};

use leasehold_sandbox::{Event, Sandbox, demo::Said};
use serde_json::{Value, json};

use crate::stage::{SOON, TABLE, is_held, program, start};

const KEY: &str = "imports:2026/03/invoice-A-1004.pdf";

fn event() -> Value {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("events/s3-upload.json");
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

async fn import(timeout: Duration) -> Sandbox {
    let builder = Sandbox::builder()
        .function(program("checkpointed-import").await)
        .name("import")
        .extension(program("leasehold").await)
        .env("LEASEHOLD_TABLE", TABLE)
        .env("AWS_LAMBDA_LOG_FORMAT", "JSON")
        .env("AWS_LAMBDA_LOG_LEVEL", "INFO");
    start(builder.timeout(timeout)).await
}

/// The chunks that were imported so far, in the function's own order.
fn imported(sandbox: &Sandbox) -> Vec<u64> {
    let chunk = |event: &Event| {
        let said = Said::in_event(event).filter(|said| said.message == "imported")?;
        said.field("chunk")?.parse().ok()
    };
    sandbox.log().events().iter().filter_map(chunk).collect()
}

async fn state(sandbox: &Sandbox) -> Option<String> {
    let item = sandbox.tables().row(TABLE, &format!("{KEY}#state")).await.unwrap()?;
    item.get("value").map(|value| value.as_s().unwrap().clone())
}

#[tokio::test]
async fn an_import_that_is_killed_midway_is_resumed_and_no_chunk_is_done_twice_but_the_one_in_flight() {
    let sandbox = import(Duration::from_secs(60)).await;
    let environment = sandbox.environment(0);
    let handle = environment.start_invocation(event());
    let third = |event: &Event| {
        Said::in_event(event)
            .is_some_and(|said| said.message == "checkpoint saved" && said.field("chunk").as_deref() == Some("2"))
    };
    sandbox.log().wait_for(third, SOON).await.unwrap();
    environment.kill_runtime().await.unwrap();
    assert!(!handle.outcome().await.is_success());
    let first = imported(&sandbox);
    let saved: Value = serde_json::from_str(&state(&sandbox).await.expect("a checkpoint")).unwrap();
    let saved = saved["chunks"].as_u64().unwrap();
    assert!((3..=first.len() as u64 + 1).contains(&saved), "{saved} after {first:?}");

    let outcome = environment.invoke(event()).await;
    let response = outcome.json().unwrap_or_else(|| panic!("{outcome:?}\n{}", sandbox.log().timeline()));
    assert_eq!(response, json!({ "resumed_at": saved, "chunks": 12 }));
    environment.wait_until_idle().await.unwrap();
    assert!(!is_held(&sandbox, KEY).await);
    let mut all = imported(&sandbox);
    assert_eq!(all[first.len()..], (saved..12).collect::<Vec<_>>(), "from the checkpoint to the end");
    all.sort_unstable();
    let done = all.len();
    all.dedup();
    assert_eq!(all, (0..12).collect::<Vec<_>>(), "every chunk");
    assert!(done - all.len() <= 1, "{done} chunks were imported");
    assert_eq!(state(&sandbox).await, None, "the next upload begins anew");
}
