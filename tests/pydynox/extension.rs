//! A function with the extension, as real processes of a local Lambda, and pydynox at the same table.

use std::time::Duration;

use leasehold_sandbox::{Sandbox, SandboxBuilder};
use serde_json::{Value, json};

use crate::python::Python;
use crate::stage::{TABLE, function, is_held, said, start};

const ROUNDS: usize = 3;

/// A sandbox whose function speaks pydynox's format, and a pydynox over its table.
async fn both(builder: SandboxBuilder) -> (Sandbox, Python, tempfile::TempDir) {
    let builder = builder.env("LEASEHOLD_FORMAT", "pydynox/1").env("LEASEHOLD_MAX_WAIT", "50s");
    let sandbox = start(builder.timeout(Duration::from_secs(120))).await;
    let witnesses = tempfile::tempdir().unwrap();
    let python = Python::start(sandbox.endpoint_url().unwrap(), witnesses.path()).await;
    (sandbox, python, witnesses)
}

#[tokio::test]
#[ignore = "needs pydynox: set LEASEHOLD_PYDYNOX_PYTHON"]
async fn a_killed_handler_frees_the_key_for_pydynox_and_a_finished_one_does() {
    // A lease that is not over while this test lasts: only a release frees the key.
    let (sandbox, python, _witnesses) = both(function("locked").await.env("LEASEHOLD_LEASE_DURATION", "10m")).await;
    let environment = sandbox.environment(0);
    for _ in 0..ROUNDS {
        let outcome = environment.invoke(json!({ "id": "a" })).await;
        let answer = outcome.json().unwrap_or_else(|| panic!("{outcome:?}\n{}", sandbox.log().timeline()));
        assert_eq!(answer, json!({ "key": "jobs:a", "token": Value::Null }));
        environment.wait_until_idle().await.unwrap();
        assert_eq!(sandbox.tables().rows(TABLE).await.unwrap(), []);

        let killed = environment.start_invocation(json!({ "id": "a", "sleep_ms": 100_000 }));
        said(&sandbox, "work began", killed.request_id()).await;
        python.acquire("jobs:a", 3.0, 0.0).expect("LockNotAcquired").await;
        let mut waiting = python.acquire("jobs:a", 3.0, 60.0);
        waiting.expect("waiting").await;
        environment.kill_runtime().await.unwrap();
        said(&sandbox, "released", killed.request_id()).await;
        waiting.expect("held").await;
        python.free(&waiting);
        waiting.expect("freed").await;
        assert!(!killed.outcome().await.is_success());
    }
}

#[tokio::test]
#[ignore = "needs pydynox: set LEASEHOLD_PYDYNOX_PYTHON"]
async fn pydynox_takes_over_from_an_environment_that_vanished_and_a_function_from_pydynox_killed() {
    let builder = function("locked").await.environments(ROUNDS + 1).env("LEASEHOLD_LEASE_DURATION", "3s");
    let (sandbox, mut python, witnesses) = both(builder).await;
    let survivor = sandbox.environment(ROUNDS);
    for round in 0..ROUNDS {
        let environment = sandbox.environment(round);
        let vanished = environment.start_invocation(json!({ "id": "a", "sleep_ms": 100_000 }));
        said(&sandbox, "work began", vanished.request_id()).await;
        let mut waiting = python.acquire("jobs:a", 3.0, 60.0);
        waiting.expect("waiting").await;
        environment.vanish().await.unwrap();
        assert!(is_held(&sandbox, "jobs:a").await, "nobody was left to free it");
        waiting.expect("held").await;

        let next = survivor.start_invocation(json!({ "id": "a" }));
        said(&sandbox, "waiting", next.request_id()).await;
        python.kill();
        let (_, taken) = said(&sandbox, "acquired", next.request_id()).await;
        assert!(taken.took_over(), "a killed pydynox can't have freed its lock");
        let outcome = next.outcome().await;
        assert!(outcome.is_success(), "{outcome:?}\n{}", sandbox.log().timeline());
        survivor.wait_until_idle().await.unwrap();
        python = Python::start(sandbox.endpoint_url().unwrap(), witnesses.path()).await;
    }
}
