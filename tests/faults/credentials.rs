//! Credentials that DynamoDB says have run out are asked for anew before the next request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_credential_types::provider::future;
use aws_sdk_dynamodb::config::{Credentials, ProvideCredentials, SharedCredentialsProvider};
use leasehold::protocol::{FailureKind, Outcome, Request};
use leasehold::store::{DynamoDb, Store};
use leasehold_sandbox::faults::{Answer, Fault, Step};

use crate::KEY;
use crate::stage::Stage;
use crate::support::{lock, sdk_config};

const SOON: Duration = Duration::from_secs(30);

/// Gives credentials without an end and counts how often.
#[derive(Clone, Debug, Default)]
struct Counted(Arc<AtomicUsize>);

impl ProvideCredentials for Counted {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        let given = self.0.fetch_add(1, Ordering::SeqCst);
        let credentials = Credentials::new(format!("AKID{given}"), "not a secret", None, None, "counted");
        future::ProvideCredentials::ready(Ok(credentials))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_are_asked_for_anew() {
    let stage = Stage::new().await;
    let counted = Counted::default();
    let provider = SharedCredentialsProvider::new(counted.clone());
    let config = sdk_config(stage.proxy.url()).into_builder().credentials_provider(provider).build();
    let store = DynamoDb::with_config(config);
    let asked = || counted.0.load(Ordering::SeqCst);
    let lock = lock(KEY);
    for _ in 0..2 {
        store.send(&lock, Request::Read, SOON).await;
    }
    assert_eq!(asked(), 1, "they are kept as long as they serve");

    // Another request that is under way meanwhile is not given up for it.
    let held = stage.proxy.inject(Step::Read, 1, Fault::HoldRequest);
    let under_way = store.send(&lock, Request::Read, SOON);
    let meanwhile = async {
        held.reached(SOON).await.unwrap();
        stage.proxy.inject(Step::Read, 1, Fault::Answer(Answer::expired_token()));
        let answer = store.send(&lock, Request::Read, SOON).await;
        assert!(
            matches!(&answer.outcome, Outcome::Failed(failure) if failure.kind == FailureKind::Credentials),
            "{answer:?}"
        );
        let answer = store.send(&lock, Request::Read, SOON).await;
        assert!(matches!(answer.outcome, Outcome::Read { .. }), "{answer:?}");
        assert_eq!(asked(), 2);
        held.open();
    };
    let (answer, ()) = tokio::join!(under_way, meanwhile);
    assert!(matches!(answer.outcome, Outcome::Read { .. }), "{answer:?}");
}
