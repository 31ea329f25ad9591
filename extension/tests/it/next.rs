//! What the extension makes of what Next answers.

use crate::extension::{Extension, Place};
use crate::fake_api::FakeApi;
use crate::now_ms;

#[tokio::test]
async fn whatever_next_answers_it_is_called_again_until_shutdown() {
    let (mut api, place) = (FakeApi::start().await, Place::new());
    let mut extension = Extension::start(&place, api.address(), &[]);
    let mut connections = vec![];
    let call = api.ready().await;
    connections.push(call.connection);
    call.reply(500, "", r#"{"errorType":"Extension.Internal","errorMessage":"no"}"#);
    let call = api.next().await;
    connections.push(call.connection);
    call.reset();
    let call = api.next().await;
    connections.push(call.connection);
    call.say("this is not HTTP\r\n\r\n");
    let call = api.next().await;
    connections.push(call.connection);
    call.say("");
    let call = api.next().await;
    connections.push(call.connection);
    call.say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"eventType\":");
    let call = api.next().await;
    connections.push(call.connection);
    call.reply(200, "", "neither");
    let call = api.next().await;
    connections.push(call.connection);
    assert!(connections.is_sorted_by(|a, b| a < b), "each on a new connection: {connections:?}");
    let kept = call.connection;
    call.reply(200, "", r#"{"eventType":"RESTORE","deadlineMs":1}"#);
    let call = api.next().await;
    call.invoke("r1", now_ms() + 3_000);
    let call = api.next().await;
    call.invoke("r2", 0);
    let call = api.next().await;
    assert_eq!(call.connection, kept, "what works is kept");
    call.shutdown();
    assert_eq!(extension.exited().await.code(), Some(0));
    assert!(api.is_quiet(), "after SHUTDOWN Next is not called again");
    extension.said("RESTORE").await;
}

#[tokio::test]
async fn without_a_layer_an_invocation_is_let_go_at_once() {
    let (mut api, place) = (FakeApi::start().await, Place::new());
    let _extension = Extension::start(&place, api.address(), &[]);
    let mut call = api.ready().await;
    for n in 0..20 {
        call.invoke(&format!("r{n}"), now_ms() + 3_000);
        call = api.next().await;
    }
}
