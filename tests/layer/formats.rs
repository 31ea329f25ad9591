//! The table's row format: what goes to the keeper, and what a handler is told whose lease has no fencing token.

use std::convert::Infallible;

use lambda_runtime::LambdaEvent;
use lambda_runtime::tower::{Layer as _, Service as _, service_fn};
use leasehold::error::Tokenless;
use leasehold::{Error, Lease};
use serde_json::{Value, json};

use crate::support::{Keeper, OWNER, order};

/// Asks for the token in each way, under a lease of a table in this format; answers with the `acquire` line as well.
async fn tokens(format: Option<&'static str>, token: Option<u64>) -> (Value, Option<u64>, Result<u64, Error>) {
    let keeper = Keeper::bind();
    let builder = keeper.layer::<Value>("orders:{id}");
    let builder = if let Some(format) = format { builder.format(format) } else { builder };
    let layer = builder.build().unwrap();
    let keeper = std::thread::spawn(move || {
        keeper.accept_hello();
        let mut peer = keeper.accept_session();
        let acquire = peer.hear_acquire();
        let mut granted = json!({
            "type": "granted", "id": 1, "owner": OWNER, "valid_for_ms": 27_000, "waited_ms": 0, "attempts": 1,
        });
        if let Some(token) = token {
            granted["token"] = json!(token);
        }
        peer.say(granted);
        peer.free();
        peer.hear_end();
        acquire
    });
    let asked = service_fn(|_: LambdaEvent<Value>| async {
        let lease = Lease::current().unwrap();
        let get = leasehold::FencingToken::get;
        Ok::<_, Infallible>((lease.token().map(get), lease.fencing_token().map(get)))
    });
    let Ok((token, fencing_token)) = layer.layer(asked).call(order()).await else { panic!("no answer") };
    (keeper.join().unwrap(), token, fencing_token)
}

#[tokio::test]
async fn a_format_without_fencing_tokens_is_asked_for_by_name_and_asking_for_a_token_is_a_typed_error() {
    let (acquire, token, fencing_token) = tokens(Some("pydynox/1"), None).await;
    assert_eq!(acquire["table"], json!({ "name": "locks", "key_attribute": "key", "format": "pydynox/1" }));
    assert_eq!(token, None);
    let error = fencing_token.unwrap_err();
    assert_eq!(error.error_type(), "NoFencingToken");
    let told = error.to_string();
    assert!(told.contains("`orders:A-17`") && told.contains("`pydynox/1` has none"), "{told}");
}

#[tokio::test]
async fn the_usual_format_goes_without_saying_and_has_tokens() {
    for format in [None, Some("leasehold/1")] {
        let (acquire, token, fencing_token) = tokens(format, Some(7)).await;
        assert_eq!(acquire["table"], json!({ "name": "locks", "key_attribute": "key" }));
        assert_eq!((token, fencing_token.unwrap()), (Some(7), 7));
    }
}

#[tokio::test]
async fn where_nothing_is_granted_there_is_no_fencing_token_either() {
    let keeper = Keeper::bind();
    let layer = keeper.layer_under::<Value>("orders:{id}", &[("LEASEHOLD_MODE", "off")]).build().unwrap();
    let asked =
        service_fn(|_: LambdaEvent<Value>| async { Ok::<_, Infallible>(Lease::current().unwrap().fencing_token()) });
    let Ok(answer) = layer.layer(asked).call(order()).await else { panic!("no answer") };
    match answer {
        Err(Error::NoFencingToken(error)) => assert_eq!(error.tokenless, Tokenless::NotGranted),
        other => panic!("{other:?}"),
    }
}
