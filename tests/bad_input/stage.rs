//! A keeper over the SDK's store, served on a socket, and layers that talk to it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lambda_runtime::{Diagnostic, LambdaEvent};
use leasehold::clock::SystemClock;
use leasehold::keeper::{Keeper, KeeperOptions, Peer, PlainHome};
use leasehold::layer::{KeySource, TemplateText};
use leasehold::protocol::{Answer, Request};
use leasehold::store::{DynamoDb, Lock, Store, StoreUsage};
use leasehold::{KeeperChoice, LeaseLayer, LeaseLayerBuilder, Leasehold};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;
use tower::{Layer as _, Service as _, service_fn};

use crate::support::sdk_config;
use crate::table::Seen;

/// Nobody listens there.
pub const NOWHERE: &str = "http://127.0.0.1:9";

/// A layer's builder before and after something is set.
pub type Builder = LeaseLayerBuilder<Value, TemplateText>;

/// Something to set, told by its name.
pub struct Set(pub &'static str, pub fn(Builder) -> Builder);

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The error's name where there is none.
const NONE: &str = "none";

pub struct Stage {
    dir: TempDir,
    keeper: Keeper,
    store: Arc<DynamoDb>,
    accepting: JoinHandle<()>,
}

impl Stage {
    /// A keeper over the DynamoDB at this address.
    pub fn over(url: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(DynamoDb::with_config(sdk_config(url)));
        let options = KeeperOptions::default();
        let keeper = Keeper::new(Watched(store.clone()), Arc::new(SystemClock::new()), Arc::new(PlainHome), options);
        let listener = UnixListener::bind(dir.path().join("keeper.sock")).unwrap();
        let serving = keeper.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let keeper = serving.clone();
                tokio::spawn(async move { keeper.serve(stream, Peer { pid: 0 }).await });
            }
        });
        Self { dir, keeper, store, accepting }
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("keeper.sock")
    }

    /// What was asked of DynamoDB so far.
    #[allow(dead_code, reason = "not every test that has a stage looks while a call is under way")]
    pub fn usage(&self) -> StoreUsage {
        self.store.usage()
    }

    /// A layer that asks this keeper, once.
    pub fn layer<T>(&self, template: &str) -> LeaseLayerBuilder<T, TemplateText> {
        let variables: [(&str, &str); 0] = [];
        LeaseLayer::builder(template)
            .table("locks")
            .socket(self.socket())
            .keeper(KeeperChoice::Extension)
            .max_wait(Duration::ZERO)
            .environment(variables)
    }

    /// Takes leases of this keeper by hand.
    pub fn by_hand(&self) -> Leasehold {
        let variables: [(&str, &str); 0] = [];
        let builder = Leasehold::builder().table("locks").socket(self.socket()).keeper(KeeperChoice::Extension);
        builder.environment(variables).build().unwrap()
    }

    /// What this layer makes of an event.
    pub async fn call<T, K>(self, layer: &LeaseLayer<T, K>, event: LambdaEvent<Box<RawValue>>) -> Seen
    where
        T: DeserializeOwned,
        K: KeySource<T>,
    {
        let handler = service_fn(|_: LambdaEvent<T>| async { Ok::<_, Diagnostic>(()) });
        let refused = layer.layer(handler).call(event).await.map_err(Diagnostic::from);
        self.end(refused).await
    }

    /// What became of everything, once the keeper has nothing more to do.
    pub async fn end(self, outcome: Result<(), Diagnostic>) -> Seen {
        let drained = self.keeper.drain(Duration::from_secs(20)).await;
        assert_eq!(drained.left, 0, "{drained:?}");
        let usage = self.store.usage();
        let requests = usage.acquires + usage.takeovers + usage.renewals + usage.releases + usage.reads + usage.tickets;
        let requests = usize::try_from(requests).unwrap();
        match outcome {
            Ok(()) => Seen { error: NONE.to_owned(), message: String::new(), requests },
            Err(Diagnostic { error_type, error_message }) => {
                Seen { error: error_type, message: error_message, requests }
            }
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.accepting.abort();
        self.keeper.stop();
    }
}

/// The keeper's store, which can be asked what was sent.
#[derive(Debug)]
struct Watched(Arc<DynamoDb>);

impl Store for Watched {
    async fn send(&self, lock: &Lock, request: Request, limit: Duration) -> Answer {
        self.0.send(lock, request, limit).await
    }

    async fn warm_up(&self) {
        self.0.warm_up().await;
    }

    fn drop_connections(&self) {
        self.0.drop_connections();
    }
}
