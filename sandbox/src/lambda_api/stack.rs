//! What is served: functions, and the stack that they belong to.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use serde::Deserialize;

use crate::settings::DEFAULT_REGION;

/// A stack as CloudFormation would tell it, and its functions.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stack {
    name: String,
    #[serde(default = "usual_region")]
    region: String,
    functions: Vec<StackFunction>,
    #[serde(default)]
    outputs: BTreeMap<String, String>,
}

/// A function of a [`Stack`].
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackFunction {
    pub(super) name: String,
    pub(super) program: PathBuf,
    #[serde(default)]
    pub(super) extensions: Vec<PathBuf>,
    #[serde(default)]
    pub(super) variables: BTreeMap<String, String>,
    #[serde(default = "usual_timeout")]
    pub(super) timeout_s: u32,
    #[serde(default = "usual_memory")]
    pub(super) memory_mb: u32,
    #[serde(default = "usual_concurrency")]
    pub(super) concurrency: usize,
    #[serde(default)]
    pub(super) pending_ms: u64,
}

fn usual_region() -> String {
    DEFAULT_REGION.to_owned()
}

fn usual_timeout() -> u32 {
    3
}

fn usual_memory() -> u32 {
    128
}

fn usual_concurrency() -> usize {
    10
}

impl Stack {
    /// A stack without functions and outputs, in the Region `us-east-1`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), region: usual_region(), functions: Vec::new(), outputs: BTreeMap::new() }
    }

    /// Adds a function.
    pub fn function(mut self, function: StackFunction) -> Self {
        self.functions.push(function);
        self
    }

    /// Adds an output.
    pub fn output(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.outputs.insert(key.into(), value.into());
        self
    }

    /// Takes an output away.
    pub fn without_output(mut self, key: &str) -> Self {
        self.outputs.remove(key);
        self
    }

    /// Its functions, to be changed before they start.
    pub fn functions_mut(&mut self) -> &mut [StackFunction] {
        &mut self.functions
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn region(&self) -> &str {
        &self.region
    }

    pub(super) fn functions(&self) -> &[StackFunction] {
        &self.functions
    }

    pub(super) fn outputs(&self) -> &BTreeMap<String, String> {
        &self.outputs
    }
}

impl StackFunction {
    /// A function with Lambda's defaults: 3 s, 128 MB, and up to 10 environments at once.
    pub fn new(name: impl Into<String>, program: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            program: program.into(),
            extensions: Vec::new(),
            variables: BTreeMap::new(),
            timeout_s: usual_timeout(),
            memory_mb: usual_memory(),
            concurrency: usual_concurrency(),
            pending_ms: 0,
        }
    }

    /// Adds an extension's binary; for people who ask about the function it is a layer of that name.
    pub fn extension(mut self, path: impl Into<PathBuf>) -> Self {
        self.extensions.push(path.into());
        self
    }

    /// Takes every extension away.
    pub fn without_extensions(mut self) -> Self {
        self.extensions.clear();
        self
    }

    /// Sets an environment variable.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// The function's timeout, in whole seconds as Lambda has it.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout_s = u32::try_from(timeout.as_secs()).unwrap_or(u32::MAX);
        self
    }

    /// The function's memory in MB. Who takes more is killed.
    pub fn memory_mb(mut self, memory: u32) -> Self {
        self.memory_mb = memory;
        self
    }

    /// How many environments may live at once; an invocation beyond them is throttled.
    pub fn concurrency(mut self, environments: usize) -> Self {
        self.concurrency = environments;
        self
    }

    /// For how long after the start it is `Pending` and can't be invoked, as a function is that was just created.
    pub fn pending_for(mut self, time: Duration) -> Self {
        self.pending_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}
