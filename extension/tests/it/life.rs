//! That the extension lives, and ends only when it is told to.

use std::process::Stdio;

use rustix::process::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::Command;

use crate::extension::{Extension, Place, binary};
use crate::fake_api::FakeApi;
use crate::soon;

#[tokio::test]
async fn a_socket_that_cannot_be_bound_ends_nothing() {
    let (mut api, place) = (FakeApi::start().await, Place::new());
    std::fs::create_dir_all(place.socket()).unwrap();
    let mut extension = Extension::start(&place, api.address(), &[]);
    let call = api.ready().await;
    extension.said("is not a socket").await;
    call.invoke("r", 0);
    let call = api.next().await;
    // What was in the way goes, and handlers are served after all.
    std::fs::remove_dir(place.socket()).unwrap();
    while UnixStream::connect(place.socket()).await.is_err() {
        assert!(extension.is_running());
        tokio::task::yield_now().await;
    }
    call.shutdown();
    assert_eq!(extension.exited().await.code(), Some(0));
}

#[tokio::test]
async fn another_keepers_socket_is_left_to_it() {
    let (mut api, place) = (FakeApi::start().await, Place::new());
    let mut first = Extension::start(&place, api.address(), &[]);
    let waiting = api.ready().await;
    let mut second = Extension::start(&place, api.address(), &[]);
    second.said("another process is listening").await;
    let call = api.ready().await;
    call.shutdown();
    assert_eq!(second.exited().await.code(), Some(0));
    UnixStream::connect(place.socket()).await.unwrap();
    waiting.shutdown();
    assert_eq!(first.exited().await.code(), Some(0));
}

#[tokio::test]
async fn the_socket_of_a_killed_extension_is_taken_over() {
    let (mut api, place) = (FakeApi::start().await, Place::new());
    let killed = Extension::start(&place, api.address(), &[]);
    let _ = api.ready().await;
    killed.kill().await;
    assert!(place.socket().exists());
    let _extension = Extension::start(&place, api.address(), &[]);
    let _next = api.ready().await;
    UnixStream::connect(place.socket()).await.unwrap();
}

#[tokio::test]
async fn running_out_of_descriptors_passes() {
    let (mut api, place) = (FakeApi::start().await, Place::new());
    let mut extension = Extension::start(&place, api.address(), &[]);
    let _next = api.ready().await;
    extension.limit_descriptors(24);
    let mut connections = Vec::new();
    for _ in 0..40 {
        connections.push(UnixStream::connect(place.socket()).await.unwrap());
    }
    extension.said("descriptors run short").await;
    let mut layer = UnixStream::connect(place.socket()).await.unwrap();
    layer.write_all(b"{\"type\":\"hello\",\"versions\":{\"min\":1,\"max\":1}}\n").await.unwrap();
    assert_eq!(soon(layer.read_u8()).await.unwrap(), b'{');
}

#[tokio::test]
async fn a_layer_that_begins_no_session_is_told_what_that_costs_and_what_to_do() {
    let (mut api, place) = (FakeApi::start().await, Place::new());
    let mut extension = Extension::start(&place, api.address(), &[]);
    let mut call = api.ready().await;
    let mut layer = UnixStream::connect(place.socket()).await.unwrap();
    layer.write_all(b"{\"type\":\"hello\",\"versions\":{\"min\":1,\"max\":1}}\n").await.unwrap();
    assert_eq!(soon(layer.read_u8()).await.unwrap(), b'{');
    for request_id in ["r-1", "r-2"] {
        call.invoke(request_id, 0);
        call = api.next().await;
    }
    extension.said("put `RouteLayer::session()` around the whole router").await;
    call.shutdown();
    assert_eq!(extension.exited().await.code(), Some(0));
}

#[tokio::test]
async fn a_bad_api_address_is_told_and_ends_nothing() {
    let place = Place::new();
    let mut extension = Extension::start(&place, "not an address", &[]);
    extension.said("AWS_LAMBDA_RUNTIME_API is neither").await;
    UnixStream::connect(place.socket()).await.unwrap();
    assert!(extension.is_running());
    extension.signal(Signal::TERM);
    assert_eq!(extension.exited().await.code(), Some(0));
}

#[tokio::test]
async fn signals_end_it_in_good_order() {
    for signal in [Signal::TERM, Signal::INT] {
        let (mut api, place) = (FakeApi::start().await, Place::new());
        let mut extension = Extension::start(&place, api.address(), &[]);
        let _next = api.ready().await;
        extension.signal(signal);
        assert_eq!(extension.exited().await.code(), Some(0));
    }
}

#[tokio::test]
async fn the_log_follows_lambdas_controls() {
    let (mut api, place) = (FakeApi::start().await, Place::new());
    std::fs::create_dir_all(place.socket()).unwrap();
    let mut extension = Extension::start(&place, api.address(), &[("AWS_LAMBDA_LOG_FORMAT", "JSON")]);
    let _next = api.ready().await;
    let line = extension.said("is not a socket").await;
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["level"], "ERROR");
    assert_eq!(line["message"], "no handler can reach this keeper");
    assert!(line["error"].as_str().unwrap().contains("LEASEHOLD_SOCKET"), "{line}");
    assert!(line["timestamp"].is_string());
}

#[tokio::test]
async fn a_person_is_told_what_it_is() {
    let ask = async |arguments: &[&str]| {
        let mut command = Command::new(binary());
        let command = command.env_remove("AWS_LAMBDA_RUNTIME_API").args(arguments).stdin(Stdio::null());
        let output = command.output().await.unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, output, complaint) = ask(&["--help"]).await;
    assert!(code == Some(0) && output.contains("extensions/leasehold") && complaint.is_empty());
    let (code, output, complaint) = ask(&["--version"]).await;
    assert_eq!((code, output, complaint.as_str()), (Some(0), format!("leasehold {}\n", env!("CARGO_PKG_VERSION")), ""));
    let (code, output, complaint) = ask(&[]).await;
    assert!(code == Some(2) && output.is_empty() && complaint.contains("AWS_LAMBDA_RUNTIME_API"));
}
