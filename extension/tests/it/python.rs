//! A client in another language, written from `docs/session.md` alone, against the real extension and a DynamoDB.

use std::process::Stdio;

use tokio::process::Command;

use crate::extension::{Extension, Place};
use crate::fake_api::FakeApi;
use crate::session::Rows;
use crate::soon;

#[tokio::test]
#[ignore = "needs Python 3, which the other tests do not; the gate runs it"]
async fn a_python_client_takes_holds_checks_and_gives_back() {
    let (mut api, place, rows) = (FakeApi::start().await, Place::new(), Rows::new().await);
    let _extension = Extension::start(&place, api.address(), &rows.variables());
    let _next = api.ready().await;
    let client = Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/session_client.py"))
        .args(["locks", "orders:1", "3000"])
        .env("LEASEHOLD_SOCKET", place.socket())
        .stdin(Stdio::null())
        .output();
    let output = soon(client).await.unwrap();
    let (said, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{complaint}");
    // Another session finds the key busy; longer than the lease it is held; given back, it is free.
    let steps: Vec<_> = said.lines().filter(|line| !matches!(*line, "at_risk" | "secured")).collect();
    let expected = ["granted", "busy", "checked held", "released", "checked unknown", "granted", "released"];
    assert_eq!(steps, expected);
    assert!(!rows.is_held("orders:1").await);
}
