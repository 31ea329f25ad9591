//! Where the keeper is, that it may not be there, and that it may speak another version.

use lambda_runtime::tower::{Layer as _, Service as _, service_fn};
use lambda_runtime::{Diagnostic, LambdaEvent};
use leasehold::{KeeperChoice, LeaseLayer};
use serde_json::{Value, json};

use crate::support::{Keeper, order};

async fn answer(_: LambdaEvent<Value>) -> Result<&'static str, Diagnostic> {
    Ok("done")
}

#[tokio::test]
async fn on_lambda_a_missing_extension_is_an_error_that_says_to_add_it() {
    let dir = tempfile::tempdir().unwrap();
    let layer = LeaseLayer::builder("orders:{id}")
        .table("locks")
        .socket(dir.path().join("nobody.sock"))
        .environment([("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand")])
        .build()
        .unwrap();
    let error = Diagnostic::from(layer.layer(service_fn(answer)).call(order()).await.unwrap_err());
    assert_eq!(error.error_type, "KeeperMissing");
    assert!(error.error_message.contains("nobody.sock"), "{}", error.error_message);
    assert!(error.error_message.contains("extension's layer"), "{}", error.error_message);
}

#[cfg(not(feature = "in-process"))]
#[tokio::test]
async fn elsewhere_a_missing_keeper_names_the_feature() {
    let dir = tempfile::tempdir().unwrap();
    let layer = LeaseLayer::builder("orders:{id}")
        .table("locks")
        .socket(dir.path().join("nobody.sock"))
        .environment::<String, String>([])
        .build()
        .unwrap();
    let error = Diagnostic::from(layer.layer(service_fn(answer)).call(order()).await.unwrap_err());
    assert_eq!(error.error_type, "KeeperMissing");
    assert!(error.error_message.contains("feature `in-process`"), "{}", error.error_message);
}

#[tokio::test]
async fn a_dead_socket_is_a_missing_keeper() {
    let keeper = Keeper::bind();
    let layer = keeper.layer("orders:{id}").build().unwrap();
    let _dir = keeper.die();
    let error = Diagnostic::from(layer.layer(service_fn(answer)).call(order()).await.unwrap_err());
    assert_eq!(error.error_type, "KeeperMissing");
}

#[tokio::test]
async fn auto_takes_the_extension_that_answers() {
    let keeper = Keeper::bind();
    let layer = keeper.layer("orders:{id}").keeper(KeeperChoice::Auto).build().unwrap();
    let mut service = layer.layer(service_fn(answer));
    let keeper = std::thread::spawn(move || {
        keeper.accept_hello();
        let mut peer = keeper.accept_session();
        peer.hear_acquire();
        peer.grant();
        peer.free();
    });
    assert_eq!(service.call(order()).await.unwrap(), "done");
    keeper.join().unwrap();
}

#[tokio::test]
async fn a_keeper_of_another_version_is_told_apart_from_a_gone_one() {
    let answers = [
        (json!({ "type": "error", "message": "no session version in common: 1 to 1, 3 to 4" }), "VersionMismatch"),
        (json!({ "type": "began", "version": 2 }), "VersionMismatch"),
    ];
    for (line, name) in answers {
        let keeper = Keeper::bind();
        let mut service = keeper.layer("orders:{id}").build().unwrap().layer(service_fn(answer));
        let keeper = std::thread::spawn(move || {
            keeper.accept_hello();
            let mut peer = keeper.accept();
            peer.hear("begin");
            peer.say(line);
        });
        let error = Diagnostic::from(service.call(order()).await.unwrap_err());
        assert_eq!(error.error_type, name);
        keeper.join().unwrap();
    }
}

#[tokio::test]
async fn a_keeper_that_goes_while_the_lease_is_asked_for_is_gone() {
    for asked in [true, false] {
        let keeper = Keeper::bind();
        let mut service = keeper.layer("orders:{id}").build().unwrap().layer(service_fn(answer));
        let keeper = std::thread::spawn(move || {
            keeper.accept_hello();
            if asked {
                keeper.accept_session().hear_acquire();
            } else {
                keeper.accept().hear("begin");
            }
        });
        let error = Diagnostic::from(service.call(order()).await.unwrap_err());
        assert_eq!(error.error_type, "KeeperGone");
        keeper.join().unwrap();
    }
}

#[cfg(feature = "in-process")]
#[tokio::test]
async fn elsewhere_a_thread_of_this_process_takes_the_missing_extensions_place() {
    // No DynamoDB is there to be asked: what counts is that a keeper of this process says so.
    let dir = tempfile::tempdir().unwrap();
    let layer = LeaseLayer::builder("orders:{id}")
        .table("locks")
        .socket(dir.path().join("nobody.sock"))
        .max_wait(std::time::Duration::ZERO)
        .environment::<String, String>([])
        .build()
        .unwrap();
    let error = Diagnostic::from(layer.layer(service_fn(answer)).call(order()).await.unwrap_err());
    assert_ne!(error.error_type, "KeeperMissing", "{}", error.error_message);
    assert!(["MissingCredentials", "StoreUnavailable"].contains(&error.error_type.as_str()), "{error:?}");
}
