//! The sandbox itself: it owns the executor, the environments, the DynamoDB and the files, and ends them all.

use std::{path::Path, sync::Arc};

use tempfile::TempDir;

use crate::{
    DynamoDb, Environment, EnvironmentId, Error, EventKind, Invocation, InvocationHandle, Outcome, SandboxBuilder,
    dynamodb::{EmbeddedDynamoDb, Tables},
    faults::FaultProxy,
    invocation::Job,
    log::Log,
    pool::Pool,
    process::Registry,
    settings::Settings,
    task::OwnedRuntime,
};

/// A local Lambda. Dropping it kills every process it started, children included, even when a test panics.
///
/// It runs on threads of its own: a test that blocks, or pauses Tokio's clock, delays no timeout and no freeze in here.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use leasehold_sandbox::{EventKind, Sandbox};
/// use serde_json::json;
///
/// # async fn example() -> Result<(), leasehold_sandbox::Error> {
/// let sandbox = Sandbox::builder()
///     .function("target/debug/my-function")
///     .extension("target/debug/leasehold")
///     .env("LEASEHOLD_TABLE", "locks")
///     .timeout(Duration::from_secs(3))
///     .environments(4)
///     .start()
///     .await?;
/// sandbox.tables().create_lock_table("locks").await?;
///
/// let outcome = sandbox.invoke(json!({ "orderId": "123" })).await;
/// assert!(outcome.is_success(), "{}", sandbox.log().timeline());
///
/// let invocation = sandbox.start_invocation(json!({ "orderId": "123", "sleep": 60 }));
/// let begun = |event: &leasehold_sandbox::Event| matches!(event.kind, EventKind::RuntimeInvoked { .. });
/// sandbox.log().wait_for(begun, Duration::from_secs(5)).await?;
/// sandbox.environment(0).kill_runtime().await?;
/// assert_eq!(invocation.outcome().await.error_type(), Some("Runtime.ExitError"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Sandbox {
    // Dropped in this order, after `drop` has killed the processes.
    pool: Arc<Pool>,
    _executor: OwnedRuntime,
    faults: Option<FaultProxy>,
    /// DynamoDB itself, without the proxy.
    dynamodb_url: Option<String>,
    _dynamodb: Option<EmbeddedDynamoDb>,
    registry: Registry,
    settings: Arc<Settings>,
    log: Log,
    root: TempDir,
}

impl Sandbox {
    /// Settings to start from.
    pub fn builder() -> SandboxBuilder {
        SandboxBuilder::default()
    }

    pub(crate) async fn launch(mut settings: Settings, dynamodb: DynamoDb) -> Result<Self, Error> {
        let log = Log::new();
        let dynamodb = match dynamodb {
            DynamoDb::Embedded => Some(EmbeddedDynamoDb::start()?),
            DynamoDb::Endpoint(_) | DynamoDb::None => None,
        };
        if let Some(embedded) = &dynamodb {
            let url = embedded.url().to_owned();
            log.push(None, 0, EventKind::DynamoDbStarted { url: url.clone() });
            settings.endpoint = Some(url);
        }
        let dynamodb_url = settings.endpoint.clone();
        let faults = match (&dynamodb_url, settings.fault_proxy) {
            (Some(url), true) => Some(FaultProxy::start(url)?),
            _ => None,
        };
        if let Some(faults) = &faults {
            settings.endpoint = Some(faults.url().to_owned());
        }
        let root = short_directory().map_err(Error::io("create a temporary directory"))?;
        let executor = OwnedRuntime::new("sandbox").map_err(Error::io("start the sandbox's threads"))?;
        let handle = executor.handle().cloned();
        let handle = handle.ok_or_else(|| std::io::Error::other("no executor"));
        let handle = handle.map_err(Error::io("start the sandbox's threads"))?;
        let settings = Arc::new(settings);
        let registry = Registry::new();
        let pool = Pool::new(settings.clone(), log.clone(), registry.clone(), root.path().to_owned(), handle);
        Ok(Self {
            pool: Arc::new(pool),
            _executor: executor,
            faults,
            dynamodb_url,
            _dynamodb: dynamodb,
            registry,
            settings,
            log,
            root,
        })
    }

    /// Invokes the function and waits for the outcome.
    ///
    /// # Cancellation
    ///
    /// Dropping the future doesn't end the invocation.
    pub async fn invoke(&self, invocation: impl Into<Invocation>) -> Outcome {
        self.start_invocation(invocation).outcome().await
    }

    /// Invokes the function; the handle waits for the outcome.
    pub fn start_invocation(&self, invocation: impl Into<Invocation>) -> InvocationHandle {
        let (job, handle) = Job::new(invocation.into());
        self.pool.submit(job);
        handle
    }

    /// A handle on one environment, counted from 0 in the order of their creation.
    pub fn environment(&self, index: usize) -> Environment {
        Environment::new(EnvironmentId(index), self.pool.clone())
    }

    /// The environments that live at the moment.
    pub fn environments(&self) -> Vec<Environment> {
        self.pool.living().into_iter().map(|id| Environment::new(id, self.pool.clone())).collect()
    }

    /// Everything that has happened.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The DynamoDB endpoint that the processes are given.
    pub fn endpoint_url(&self) -> Option<&str> {
        self.settings.endpoint.as_deref()
    }

    /// The proxy in front of DynamoDB, if the sandbox was started with
    /// [`SandboxBuilder::fault_proxy`](crate::SandboxBuilder::fault_proxy).
    pub fn faults(&self) -> Option<&FaultProxy> {
        self.faults.as_ref()
    }

    /// Tables and rows of that DynamoDB, to prepare and to look into; never through the proxy.
    pub fn tables(&self) -> Tables {
        Tables::new(self.dynamodb_url.clone(), &self.settings.region, self.settings.own_credentials)
    }

    /// The folder with all environments' files. It goes with the sandbox.
    pub fn directory(&self) -> &Path {
        self.root.path()
    }

    /// Shuts every environment down in good order, all at once. A busy one ends its invocation first.
    pub async fn shutdown(&self) {
        let mut ending = tokio::task::JoinSet::new();
        for environment in self.environments() {
            ending.spawn(async move { environment.shutdown().await });
        }
        while let Some(ended) = ending.join_next().await {
            if let Ok(Err(error)) = ended {
                tracing::debug!(%error, "an environment had ended before");
            }
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.registry.kill_all();
        self.pool.close();
    }
}

/// Unix sockets' paths are short, and the usual temporary directory's isn't everywhere.
fn short_directory() -> std::io::Result<TempDir> {
    let builder = |directory: &Path| tempfile::Builder::new().prefix("lh").rand_bytes(5).tempdir_in(directory);
    builder(Path::new("/tmp")).or_else(|_| builder(&std::env::temp_dir()))
}
