//! Keys of personal data: nothing that the layer tells or hands on has them in clear text.

use std::time::Duration;

use lambda_runtime::tower::{Layer as _, service_fn};
use lambda_runtime::{Diagnostic, Error, LambdaEvent};
use leasehold::key::{KeyHash, LockKey};
use leasehold::testing::TestKeeper;
use leasehold::{Lease, LeaseLayer, Leasehold};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{asked_and_released, layer, refusal};

const ALICE: &str = "alice@example.com";

fn hashed(text: &str) -> String {
    KeyHash::plain().of(&LockKey::new(text).unwrap()).to_string()
}

async fn key(_: LambdaEvent<Value>) -> Result<Value, Error> {
    Ok(json!(Lease::current()?.key().as_str()))
}

#[tokio::test]
async fn the_hash_takes_the_keys_place_behind_the_namespace() {
    let keeper = TestKeeper::new();
    let template = layer("customers:{email}", &keeper).namespace("crm").hashed_keys(true);
    let mut service = template.build().unwrap().layer(service_fn(key));
    let expected = format!("crm/{}", hashed("customers:alice@example.com"));
    assert_eq!(keeper.invoke(&mut service, json!({ "email": ALICE })).await.unwrap(), json!(expected));

    let closure = LeaseLayer::keyed_by(|event: &LambdaEvent<Value>| {
        let email = event.payload["email"].as_str().unwrap_or_default();
        Ok::<_, Error>(format!("customers:{email}"))
    });
    let closure = closure.reserve(Duration::from_secs(5)).namespace("crm").hashed_keys(true).test_keeper(&keeper);
    let mut service = closure.build().unwrap().layer(service_fn(key));
    assert_eq!(keeper.invoke(&mut service, json!({ "email": ALICE })).await.unwrap(), json!(expected));

    let locks = Leasehold::builder().namespace("crm").hashed_keys(true).test_keeper(&keeper).build().unwrap();
    let lease = locks.acquire("customers:alice@example.com", Duration::ZERO).await.unwrap();
    assert_eq!(lease.key().as_str(), expected);
    drop(lease);
    assert!(asked_and_released(&keeper).iter().all(|line| line.ends_with(&expected)), "{:?}", keeper.happened());
}

#[tokio::test]
async fn a_secret_goes_into_the_hash() {
    let keeper = TestKeeper::new();
    let secret = "0123456789abcdef";
    let secretly = layer("customers:{email}", &keeper).hashed_keys(true).key_secret(secret).build().unwrap();
    let mut service = secretly.layer(service_fn(key));
    let answer = keeper.invoke(&mut service, json!({ "email": ALICE })).await.unwrap();
    let expected = KeyHash::with_secret(secret).of(&LockKey::new("customers:alice@example.com").unwrap());
    assert_eq!(answer, json!(expected.as_str()));
    assert!(!format!("{:?}", layer("x", &keeper).key_secret(secret)).contains(secret));
}

#[tokio::test]
async fn errors_name_the_hash_only() {
    let keeper = TestKeeper::new();
    let mut service = layer("customers:{email}", &keeper).hashed_keys(true).build().unwrap().layer(service_fn(key));
    let hash = hashed("customers:alice@example.com");
    keeper.hold_elsewhere(hash.as_str());
    let error = refusal(keeper.invoke(&mut service, json!({ "email": ALICE })).await);
    assert_eq!(error.error_type(), "LeaseBusy");
    assert!(error.to_string().contains(&hash) && !error.to_string().contains("alice"), "{error}");
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "it is never made")]
struct Numbered {
    email: u64,
}

#[tokio::test]
async fn errors_about_the_event_do_not_tell_what_stands_in_it() {
    let keeper = TestKeeper::new();
    let typed = LeaseLayer::<Numbered>::builder("customers:{email}").reserve(Duration::from_secs(5)).hashed_keys(true);
    let mut service = typed
        .test_keeper(&keeper)
        .build()
        .unwrap()
        .layer(service_fn(|_: LambdaEvent<Numbered>| async { Ok::<_, Error>(Value::Null) }));
    let error = refusal(keeper.invoke(&mut service, json!({ "email": ALICE })).await);
    assert_eq!(error.error_type(), "EventNotDeserialized");
    let told = Diagnostic::from(error).error_message;
    assert!(told.contains("at `email`") && told.contains("`hashed_keys`") && !told.contains("alice"), "{told}");

    let mut service = layer("customers:{phone}", &keeper).hashed_keys(true).build().unwrap().layer(service_fn(key));
    let error = refusal(keeper.invoke(&mut service, json!({ "phone": 491_700_000.5 })).await);
    assert_eq!(error.error_type(), "KeyInvalid");
    let told = error.to_string();
    assert!(told.contains("`phone`") && !told.contains("4917"), "{told}");
}

#[test]
fn misuse_is_told_when_the_layer_is_built() {
    let builder = || LeaseLayer::<Value>::builder("customers:{email}").table("locks");
    let error = builder().key_secret("0123456789abcdef").build().unwrap_err();
    assert!(error.to_string().contains("set `hashed_keys`"), "{error}");
    let error = builder().hashed_keys(true).key_secret("short").build().unwrap_err();
    assert!(error.to_string().contains("`key_secret` has 5 bytes: take 16 random ones or more"), "{error}");
    assert!(!error.to_string().contains("short"), "{error}");
}
