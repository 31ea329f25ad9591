//! The layer with the real keeper, on a thread of this process and behind a socket, over an embedded DynamoDB.
#![cfg(feature = "in-process")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, Put, ScalarAttributeType,
    TransactWriteItem,
};
use lambda_runtime::tower::{Layer as _, Service as _, service_fn};
use lambda_runtime::{Context, Diagnostic, LambdaEvent};
use leasehold::clock::SystemClock;
use leasehold::keeper::{InProcess, Keeper, KeeperOptions, Peer, PlainHome};
use leasehold::layer::TemplateText;
use leasehold::store::DynamoDb;
use leasehold::{Error, KeeperChoice, Lease, LeaseLayer, LeaseLayerBuilder, Leasehold};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// One embedded DynamoDB with a lock table for this process, on an executor that outlives each test's.
fn config() -> SdkConfig {
    static CONFIG: OnceLock<SdkConfig> = OnceLock::new();
    CONFIG.get_or_init(|| std::thread::spawn(start).join().unwrap()).clone()
}

fn start() -> SdkConfig {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        executor.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let database = dynoxide::Database::memory().unwrap();
            dynoxide::server::serve_with_shutdown(listener, database, std::future::pending()).await.unwrap();
        });
    });
    let config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("eu-central-1"))
        .endpoint_url(url)
        .credentials_provider(SharedCredentialsProvider::new(Credentials::new("AKID", "secret", None, None, "test")))
        .build();
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    executor.block_on(create_table(&Client::new(&config)));
    config
}

async fn create_table(client: &Client) {
    let key = KeySchemaElement::builder().attribute_name("key").key_type(KeyType::Hash).build().unwrap();
    let text = ScalarAttributeType::S;
    let definition = AttributeDefinition::builder().attribute_name("key").attribute_type(text).build().unwrap();
    let request = client.create_table().table_name("locks").billing_mode(BillingMode::PayPerRequest);
    request.key_schema(key).attribute_definitions(definition).send().await.unwrap();
}

/// Where the keeper is in a test.
struct Place {
    keeper: KeeperChoice,
    socket: PathBuf,
    _dir: tempfile::TempDir,
}

impl Place {
    fn in_process() -> Self {
        InProcess::shared_with(|| async { Ok(DynamoDb::with_config(config())) }).unwrap();
        let dir = tempfile::tempdir().unwrap();
        Self { keeper: KeeperChoice::InProcess, socket: dir.path().join("none.sock"), _dir: dir }
    }

    /// As the extension serves, without its life cycle.
    fn socket() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("keeper.sock");
        let listener = tokio::net::UnixListener::bind(&socket).unwrap();
        let store = DynamoDb::with_config(config());
        let clock = Arc::new(SystemClock::new());
        let keeper = Keeper::new(store, clock, Arc::new(PlainHome), KeeperOptions::default());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let keeper = keeper.clone();
                tokio::spawn(async move { keeper.serve(stream, Peer { pid: 0 }).await });
            }
        });
        Self { keeper: KeeperChoice::Extension, socket, _dir: dir }
    }

    fn layer<T>(&self) -> LeaseLayerBuilder<T, TemplateText> {
        LeaseLayer::builder("orders:{id}")
            .table("locks")
            .socket(&self.socket)
            .keeper(self.keeper)
            .environment::<String, String>([])
    }
}

fn event(id: &str) -> LambdaEvent<Box<RawValue>> {
    let mut context = Context::default();
    context.request_id = format!("r-{id}");
    LambdaEvent::new(serde_json::value::to_raw_value(&json!({ "id": id })).unwrap(), context)
}

async fn owner_on_the_row(id: &str) -> Option<String> {
    let key = AttributeValue::S(format!("orders:{id}"));
    let client = Client::new(&config());
    let got = client.get_item().table_name("locks").key("key", key).consistent_read(true).send().await.unwrap();
    got.item.unwrap_or_default().get("owner").map(|owner| owner.as_s().unwrap().clone())
}

async fn token(_: LambdaEvent<Value>) -> Result<u64, Error> {
    let lease = Lease::current()?;
    lease.ensure_held()?;
    assert_eq!(
        owner_on_the_row(lease.key().as_str().strip_prefix("orders:").unwrap()).await,
        lease.owner().map(|o| o.to_string())
    );
    Ok(lease.token().unwrap().get())
}

async fn one_after_the_other(place: Place, id: &str) {
    let mut service =
        place.layer().release(leasehold::Release::BeforeResponse).build().unwrap().layer(service_fn(token));
    let first = service.call(event(id)).await.unwrap();
    assert_eq!(owner_on_the_row(id).await, None, "free before the response");
    let second = service.call(event(id)).await.unwrap();
    assert!(second > first, "{second} {first}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_after_the_other_in_process() {
    one_after_the_other(Place::in_process(), "in-process").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_after_the_other_behind_a_socket() {
    one_after_the_other(Place::socket(), "socket").await;
}

async fn at_the_same_time(place: Place, id: &'static str) {
    let slow = service_fn(|_: LambdaEvent<Value>| async {
        tokio::time::sleep(Duration::from_millis(600)).await;
        Ok::<_, Diagnostic>("slow")
    });
    let mut slow = place.layer().build().unwrap().layer(slow);
    let mut impatient = place.layer().max_wait(Duration::ZERO).build().unwrap().layer(service_fn(token));
    let mut patient = place.layer().max_wait(Duration::from_secs(10)).build().unwrap().layer(service_fn(token));
    let began = Instant::now();
    let holding = tokio::spawn(slow.call(event(id)));
    while owner_on_the_row(id).await.is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let busy = Diagnostic::from(impatient.call(event(id)).await.unwrap_err());
    assert_eq!(busy.error_type, "LeaseBusy");
    assert!(busy.error_message.contains(&format!("request r-{id}")), "{}", busy.error_message);
    patient.call(event(id)).await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(600), "{:?}", began.elapsed());
    assert_eq!(holding.await.unwrap().unwrap(), "slow");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_same_time_in_process() {
    at_the_same_time(Place::in_process(), "crowd").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_same_time_behind_a_socket() {
    at_the_same_time(Place::socket(), "queue").await;
}

#[tokio::test]
async fn a_handler_that_blocks_its_only_thread_keeps_its_lease() {
    let place = Place::in_process();
    let blocking = service_fn(|_: LambdaEvent<Value>| async {
        let lease = Lease::current()?;
        for _ in 0..4 {
            std::thread::sleep(Duration::from_millis(300));
            lease.ensure_held()?;
            assert!(lease.valid_for()? <= Duration::from_millis(450));
        }
        Ok::<_, Error>("done")
    });
    let mut service = place.layer().lease_duration(Duration::from_millis(500)).build().unwrap().layer(blocking);
    assert_eq!(service.call(event("blocking")).await.unwrap(), "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_invocation_frees_the_row() {
    let place = Place::socket();
    let endless = service_fn(|_: LambdaEvent<Value>| std::future::pending::<Result<(), Diagnostic>>());
    let mut service = place.layer().build().unwrap().layer(endless);
    let dropped = tokio::time::timeout(Duration::from_millis(300), service.call(event("dropped"))).await;
    assert!(dropped.is_err());
    let began = Instant::now();
    while owner_on_the_row("dropped").await.is_some() {
        assert!(began.elapsed() < Duration::from_secs(2));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_rows_of_two_keys_are_held_checked_and_freed() {
    let place = Place::socket();
    let guarded = service_fn(|_: LambdaEvent<Value>| async {
        let lease = Lease::current()?;
        lease.ensure_held()?;
        let client = Client::new(&config());
        let put = Put::builder().table_name("locks").item("key", AttributeValue::S("work".to_owned())).build().unwrap();
        let work = client.transact_write_items().transact_items(TransactWriteItem::builder().put(put).build());
        lease.guard_transaction(work.clone())?.send().await.unwrap();
        // The old version's row goes to somebody else, and the write is refused though the layer's own row is held.
        let key = AttributeValue::S("legacy-two".to_owned());
        client.delete_item().table_name("locks").key("key", key).send().await.unwrap();
        let refused = lease.guard_transaction(work)?.send().await.unwrap_err();
        Ok::<_, Error>(refused.to_string())
    });
    let layer = place.layer().also("legacy-{id}").on_loss(leasehold::OnLoss::Signal);
    let mut service = layer.release(leasehold::Release::BeforeResponse).build().unwrap().layer(guarded);
    let refused = service.call(event("two")).await.unwrap();
    assert!(refused.contains("the lease on `legacy-two` was lost"), "{refused}");
    assert_eq!(owner_on_the_row("two").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_row_is_a_loss_that_cancels_the_handler() {
    let place = Place::socket();
    let endless = service_fn(|_: LambdaEvent<Value>| async {
        let key = AttributeValue::S("orders:deleted".to_owned());
        Client::new(&config()).delete_item().table_name("locks").key("key", key).send().await.unwrap();
        std::future::pending::<Result<(), Diagnostic>>().await
    });
    let mut service = place.layer().lease_duration(Duration::from_millis(600)).build().unwrap().layer(endless);
    let error = Diagnostic::from(service.call(event("deleted")).await.unwrap_err());
    assert_eq!(error.error_type, "LeaseLost");
    assert!(error.error_message.contains("deleted"), "{}", error.error_message);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_condition_lets_a_transaction_through_only_while_the_lease_is_held() {
    let place = Place::in_process();
    let giving = service_fn(|_: LambdaEvent<Value>| async {
        let lease = Lease::current()?;
        write_under(&lease).await.unwrap();
        Ok::<_, Error>(lease)
    });
    let layer = place.layer().release(leasehold::Release::BeforeResponse).build().unwrap();
    let lease = layer.layer(giving).call(event("fenced")).await.unwrap();
    assert!(write_under(&lease).await.is_err(), "the lease was given back");
}

async fn write_under(lease: &Lease) -> Result<(), String> {
    let put = Put::builder().table_name("locks").item("key", AttributeValue::S("the work".to_owned())).build().unwrap();
    let items = [
        TransactWriteItem::builder().condition_check(lease.condition_check().unwrap()).build(),
        TransactWriteItem::builder().put(put).build(),
    ];
    let request = Client::new(&config()).transact_write_items().set_transact_items(Some(items.into()));
    request.send().await.map(drop).map_err(|error| format!("{error:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_table_is_told_at_once() {
    let place = Place::socket();
    let mut service = place.layer().table("nowhere").build().unwrap().layer(service_fn(token));
    let error = Diagnostic::from(service.call(event("x")).await.unwrap_err());
    assert_eq!(error.error_type, "TableNotFound");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_taken_by_hand_is_on_its_row_until_it_is_released() {
    for (place, id) in [(Place::socket(), "by-hand-socket"), (Place::in_process(), "by-hand-thread")] {
        let builder = Leasehold::builder().table("locks").socket(&place.socket).keeper(place.keeper);
        let locks = builder.environment::<String, String>([]).build().unwrap();
        let key = format!("orders:{id}");
        let lease = locks.acquire(&key, Duration::from_secs(2)).await.unwrap();
        lease.ensure_held().unwrap();
        assert_eq!(owner_on_the_row(id).await, lease.owner().map(|owner| owner.to_string()));
        assert!(locks.try_acquire(&key).await.unwrap().is_none());
        let token = lease.fencing_token().unwrap();
        lease.release().await.unwrap();
        assert_eq!(owner_on_the_row(id).await, None, "free when `release` returns");
        let next = locks.try_acquire(&key).await.unwrap().unwrap();
        assert!(next.fencing_token().unwrap() > token);
    }
}
