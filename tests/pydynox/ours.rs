//! Our side: the layer around a handler, and a keeper behind a socket as the extension serves it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lambda_runtime::tower::{Layer as _, Service as _, service_fn};
use lambda_runtime::{Context, Diagnostic, LambdaEvent};
use leasehold::clock::SystemClock;
use leasehold::keeper::{Keeper, KeeperCounts, KeeperOptions, Peer, PlainHome};
use leasehold::store::DynamoDb;
use leasehold::{Error, KeeperChoice, LeaseLayer, Polling, Release};
use serde_json::{Value, json, value::to_raw_value};

use crate::support::sdk_config;

/// Our leases' length: long enough that renewals on a busy machine are never the reason why one ends.
const LEASE: Duration = Duration::from_secs(4);

/// A keeper over a DynamoDB with the table `locks`, in pydynox's row format.
#[derive(Clone, Debug)]
pub struct Ours {
    keeper: Keeper,
    socket: PathBuf,
    _dir: Arc<tempfile::TempDir>,
}

impl Ours {
    pub fn over(url: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("keeper.sock");
        let listener = tokio::net::UnixListener::bind(&socket).unwrap();
        let store = DynamoDb::with_config(sdk_config(url));
        let clock = Arc::new(SystemClock::new());
        let keeper = Keeper::new(store, clock, Arc::new(PlainHome), KeeperOptions::default());
        let serving = keeper.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let keeper = serving.clone();
                tokio::spawn(async move { keeper.serve(stream, Peer { pid: 0 }).await });
            }
        });
        Self { keeper, socket, _dir: Arc::new(dir) }
    }

    /// Waits until this many requests were sent: a contender's first one is an attempt, and one that looks again waits.
    pub async fn until_requests(&self, count: u64) {
        while self.counts().requests < count {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub fn counts(&self) -> KeeperCounts {
        self.keeper.counts()
    }

    /// Works under a lease on this key, waiting for it this long at most. The row is free before this returns.
    pub async fn under<F: Future>(&self, key: &str, max_wait: Duration, work: F) -> Result<F::Output, Diagnostic> {
        let layer = LeaseLayer::<Value>::builder("{key}")
            .table("locks")
            .format("pydynox/1")
            .lease_duration(LEASE)
            .max_wait(max_wait)
            .polling(Polling::backoff(Duration::from_millis(5), Duration::from_millis(20)))
            .release(Release::BeforeResponse)
            .keeper(KeeperChoice::Extension)
            .socket(&self.socket)
            .environment::<String, String>([])
            .build()
            .unwrap();
        let work = Arc::new(Mutex::new(Some(work)));
        let mut service = layer.layer(service_fn(move |_: LambdaEvent<Value>| {
            let work = work.lock().unwrap().take().expect("one invocation");
            async { Ok::<_, Error>(work.await) }
        }));
        let event = to_raw_value(&json!({ "key": key })).unwrap();
        service.call(LambdaEvent::new(event, Context::default())).await.map_err(Diagnostic::from)
    }
}
