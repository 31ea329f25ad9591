//! How the extension registers: as what, for what, and how often it tries.

use crate::extension::{Extension, Place, binary};
use crate::fake_api::FakeApi;

#[tokio::test]
async fn it_registers_under_its_file_name_and_the_socket_is_there_before() {
    let (mut api, place) = (FakeApi::start().await, Place::new());
    let _extension = Extension::start(&place, api.address(), &[]);
    let call = api.call().await;
    assert!(call.is_registration(), "{call:?}");
    assert_eq!(call.headers["lambda-extension-name"], binary().file_name().unwrap().to_str().unwrap());
    assert_eq!(call.body, r#"{"events":["INVOKE","SHUTDOWN"]}"#);
    tokio::net::UnixStream::connect(place.socket()).await.unwrap();
    call.register();
    api.next().await;
}

#[tokio::test]
async fn a_registration_that_fails_is_tried_again() {
    let (mut api, place) = (FakeApi::start().await, Place::new());
    let mut extension = Extension::start(&place, api.address(), &[]);
    api.call().await.reply(500, "", r#"{"errorType":"Extension.Internal"}"#);
    api.call().await.reset();
    let call = api.call().await;
    assert!(call.is_registration(), "{call:?}");
    call.register();
    api.next().await.shutdown();
    assert_eq!(extension.exited().await.code(), Some(0));
}

#[tokio::test]
async fn on_managed_instances_it_asks_for_the_end_only() {
    let (mut api, place) = (FakeApi::start().await, Place::new());
    let kind = [("AWS_LAMBDA_INITIALIZATION_TYPE", "lambda-managed-instances")];
    let mut extension = Extension::start(&place, api.address(), &kind);
    let call = api.call().await;
    assert_eq!(call.body, r#"{"events":["SHUTDOWN"]}"#);
    call.register();
    api.next().await.shutdown();
    assert_eq!(extension.exited().await.code(), Some(0));
}

#[tokio::test]
async fn an_api_behind_a_url_with_a_path_is_found_there() {
    let (mut api, place) = (FakeApi::start().await, Place::new());
    let url = format!("http://{}/.rt/function", api.address());
    let mut extension = Extension::start(&place, &url, &[]);
    let call = api.call().await;
    assert_eq!(call.path, "/.rt/function/2020-01-01/extension/register");
    call.register();
    let call = api.next().await;
    assert_eq!(call.path, "/.rt/function/2020-01-01/extension/event/next");
    call.invoke("r", 0);
    api.next().await.shutdown();
    assert_eq!(extension.exited().await.code(), Some(0));
}
