//! The settings of a sandbox, after they were checked.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// When the extensions hear of an invocation, seen from the runtime.
///
/// Lambda promises no order: the INVOKE event comes within a millisecond of the runtime's invocation, before or after,
/// and sometimes after the handler has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InvokeOrder {
    /// The runtime gets the invocation, the extensions their INVOKE a millisecond later.
    #[default]
    RuntimeFirst,
    /// The extensions get INVOKE, the runtime its invocation a millisecond later.
    ExtensionFirst,
    /// The extensions get INVOKE once the handler has answered.
    AfterHandler,
}

/// What happens to an invocation while all environments are busy and no further one may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// It waits for an environment, as asynchronous invocations do.
    #[default]
    Queue,
    /// It is refused with `TooManyRequestsException`, as a synchronous caller of a throttled function would see.
    Throttle,
}

/// When an environment that was reset is initialized again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reinit {
    /// With the next invocation, as on Lambda.
    #[default]
    NextInvocation,
    /// At once.
    AtOnce,
}

/// The Region where none is set.
pub(crate) const DEFAULT_REGION: &str = "us-east-1";

/// Which DynamoDB the processes are pointed to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DynamoDb {
    /// One of the sandbox's own, in memory, on a port of the loopback interface.
    #[default]
    Embedded,
    /// This endpoint. Credentials and Region come from the sandbox's own environment variables, if they are set there.
    Endpoint(String),
    /// None: the processes are told no endpoint.
    None,
}

/// What environments are made of.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) function: PathBuf,
    pub(crate) function_name: String,
    pub(crate) function_version: String,
    pub(crate) extensions: Vec<(String, PathBuf)>,
    pub(crate) variables: BTreeMap<String, String>,
    pub(crate) timeout: Duration,
    pub(crate) init_timeout: Duration,
    pub(crate) memory_mb: u32,
    pub(crate) region: String,
    pub(crate) environments: usize,
    /// `None` on a classic function: one invocation at a time; else how many an environment takes at once.
    pub(crate) managed_instances: Option<usize>,
    pub(crate) freeze: bool,
    pub(crate) order: InvokeOrder,
    pub(crate) overflow: Overflow,
    pub(crate) reinit: Reinit,
    pub(crate) endpoint: Option<String>,
    /// Credentials are the caller's own where the endpoint is.
    pub(crate) own_credentials: bool,
    /// Whether the processes reach DynamoDB through a proxy that injects faults.
    pub(crate) fault_proxy: bool,
}

impl Settings {
    /// How many invocations an environment takes at once.
    pub(crate) fn capacity(&self) -> usize {
        self.managed_instances.unwrap_or(1)
    }

    pub(crate) fn is_managed(&self) -> bool {
        self.managed_instances.is_some()
    }

    pub(crate) fn arn(&self) -> String {
        format!("arn:aws:lambda:{}:{ACCOUNT}:function:{}", self.region, self.function_name)
    }
}

/// The account of every sandbox.
pub(crate) const ACCOUNT: &str = "123456789012";

/// How long ending the processes may take, from the start of a reset or shutdown.
pub(crate) const SHUTDOWN_LIMIT: Duration = Duration::from_secs(2);

/// The runtime's share of it, between SIGTERM and SIGKILL.
pub(crate) const RUNTIME_LIMIT: Duration = Duration::from_millis(600);

/// How long the kernel may take to end what SIGKILL was sent to.
pub(crate) const KILL_LIMIT: Duration = Duration::from_secs(9);
