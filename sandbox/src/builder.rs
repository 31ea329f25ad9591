//! The settings a user makes, their defaults and their check.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    DynamoDb, Error, InvokeOrder, Overflow, Reinit, Sandbox,
    settings::{DEFAULT_REGION, Settings},
};

/// Settings of a [`Sandbox`]; only the function is required.
#[derive(Debug, Clone)]
pub struct SandboxBuilder {
    function: Option<PathBuf>,
    function_name: String,
    function_version: String,
    extensions: Vec<PathBuf>,
    variables: BTreeMap<String, String>,
    timeout: Duration,
    init_timeout: Duration,
    memory_mb: u32,
    region: String,
    environments: usize,
    managed_instances: Option<usize>,
    freeze: bool,
    order: InvokeOrder,
    overflow: Overflow,
    reinit: Reinit,
    dynamodb: DynamoDb,
    fault_proxy: bool,
}

impl Default for SandboxBuilder {
    fn default() -> Self {
        Self {
            function: None,
            function_name: "sandbox".to_owned(),
            function_version: "$LATEST".to_owned(),
            extensions: Vec::new(),
            variables: BTreeMap::new(),
            timeout: Duration::from_secs(30),
            init_timeout: Duration::from_secs(10),
            memory_mb: 128,
            region: DEFAULT_REGION.to_owned(),
            environments: 1,
            managed_instances: None,
            freeze: true,
            order: InvokeOrder::default(),
            overflow: Overflow::default(),
            reinit: Reinit::default(),
            dynamodb: DynamoDb::default(),
            fault_proxy: false,
        }
    }
}

impl SandboxBuilder {
    /// The function's binary.
    pub fn function(mut self, path: impl Into<PathBuf>) -> Self {
        self.function = Some(path.into());
        self
    }

    /// Adds an extension's binary. Its file name is the name it has to register with.
    pub fn extension(mut self, path: impl Into<PathBuf>) -> Self {
        self.extensions.push(path.into());
        self
    }

    /// An environment variable for function and extensions; it wins over those the sandbox sets.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// The function's name, `sandbox` by default.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.function_name = name.into();
        self
    }

    /// The function's version, `$LATEST` by default.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.function_version = version.into();
        self
    }

    /// The function's timeout, 30 s by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long an initialization may take, 10 s by default.
    pub fn init_timeout(mut self, timeout: Duration) -> Self {
        self.init_timeout = timeout;
        self
    }

    /// The memory size that the function is told, 128 MB by default. It isn't enforced.
    pub fn memory_mb(mut self, memory: u32) -> Self {
        self.memory_mb = memory;
        self
    }

    /// The Region, `us-east-1` by default.
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = region.into();
        self
    }

    /// How many environments may live at once, 1 by default.
    pub fn environments(mut self, limit: usize) -> Self {
        self.environments = limit;
        self
    }

    /// Behaves as Lambda Managed Instances: `concurrency` invocations at once in an environment, no freeze, and a handler
    /// that outlives its deadline is not killed.
    pub fn managed_instances(mut self, concurrency: usize) -> Self {
        self.managed_instances = Some(concurrency);
        self
    }

    /// Whether idle environments are frozen; they are by default.
    pub fn freeze(mut self, freeze: bool) -> Self {
        self.freeze = freeze;
        self
    }

    /// When extensions hear of an invocation, a millisecond after the runtime by default.
    pub fn invoke_order(mut self, order: InvokeOrder) -> Self {
        self.order = order;
        self
    }

    /// What happens to an invocation while all environments are busy; it waits by default.
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// When an environment that was reset is initialized again; with the next invocation by default.
    pub fn reinit(mut self, reinit: Reinit) -> Self {
        self.reinit = reinit;
        self
    }

    /// Which DynamoDB the processes use; an embedded one by default.
    pub fn dynamodb(mut self, dynamodb: DynamoDb) -> Self {
        self.dynamodb = dynamodb;
        self
    }

    /// Puts a [`FaultProxy`](crate::faults::FaultProxy) between the processes and DynamoDB; see [`Sandbox::faults`].
    pub fn fault_proxy(mut self, fault_proxy: bool) -> Self {
        self.fault_proxy = fault_proxy;
        self
    }

    /// Starts the sandbox. No process runs before the first invocation or [`Environment::start`](crate::Environment::start).
    ///
    /// # Errors
    ///
    /// When a program is missing, a setting is wrong, or the embedded DynamoDB, a thread or a directory can't be had.
    pub async fn start(self) -> Result<Sandbox, Error> {
        let function = self.function.as_deref().ok_or(Error::NoFunction)?;
        let function = executable("function", function)?;
        let extensions = self.named_extensions()?;
        self.check_bounds()?;
        let (endpoint, own_credentials) = match &self.dynamodb {
            DynamoDb::Endpoint(url) => (Some(url.clone()), true),
            DynamoDb::Embedded | DynamoDb::None => (None, false),
        };
        let settings = Settings {
            function,
            function_name: self.function_name,
            function_version: self.function_version,
            extensions,
            variables: self.variables,
            timeout: self.timeout,
            init_timeout: self.init_timeout,
            memory_mb: self.memory_mb,
            region: self.region,
            environments: self.environments,
            managed_instances: self.managed_instances,
            freeze: self.freeze && self.managed_instances.is_none(),
            order: self.order,
            overflow: self.overflow,
            reinit: self.reinit,
            endpoint,
            own_credentials,
            fault_proxy: self.fault_proxy,
        };
        Sandbox::launch(settings, self.dynamodb).await
    }

    fn named_extensions(&self) -> Result<Vec<(String, PathBuf)>, Error> {
        let mut names = BTreeSet::new();
        let mut extensions = Vec::new();
        for path in &self.extensions {
            let path = executable("extension", path)?;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !names.insert(name.clone()) {
                let problem = format!("{name} is given twice; extensions are told apart by their file names");
                return Err(Error::Setting { setting: "extension", problem });
            }
            extensions.push((name, path));
        }
        Ok(extensions)
    }

    fn check_bounds(&self) -> Result<(), Error> {
        let wrong = |setting, problem: &str| Err(Error::Setting { setting, problem: problem.to_owned() });
        if self.environments == 0 {
            return wrong("environments", "is 0; at least 1 must be allowed");
        }
        if self.managed_instances == Some(0) {
            return wrong("managed_instances", "is 0; an environment must take at least 1 invocation");
        }
        if self.timeout.is_zero() {
            return wrong("timeout", "is 0; give the function some time");
        }
        if self.init_timeout.is_zero() {
            return wrong("init_timeout", "is 0; give the initialization some time");
        }
        if self.fault_proxy && self.dynamodb == DynamoDb::None {
            return wrong("fault_proxy", "is set, but there is no DynamoDB for it to stand in front of");
        }
        Ok(())
    }
}

/// The absolute path of a program that can be run; links are kept, as they name extensions.
fn executable(role: &'static str, path: &Path) -> Result<PathBuf, Error> {
    let wrong = |problem: String| Error::Program { role, path: path.to_owned(), problem };
    let absolute = std::path::absolute(path).map_err(|error| wrong(format!("has no absolute path: {error}")))?;
    let metadata = std::fs::metadata(&absolute).map_err(|error| wrong(format!("can't be read: {error}")))?;
    if !metadata.is_file() {
        return Err(wrong("is not a file".to_owned()));
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err(wrong("is not executable".to_owned()));
    }
    Ok(absolute)
}
