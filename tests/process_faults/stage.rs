//! A sandbox for the function that can be held at every step, and questions about what happened in it.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use leasehold_sandbox::{
    Environment, Event, Process, Sandbox, SandboxBuilder,
    demo::{Said, cargo_build},
    faults::FaultProxy,
};
use tokio::sync::OnceCell;

/// How long a step may take that should come at once: machines are slow at times.
pub(crate) const SOON: Duration = Duration::from_secs(60);
pub(crate) const TABLE: &str = "locks";
pub(crate) const KEY: &str = "jobs:k";

static BUILT: OnceCell<BTreeMap<String, PathBuf>> = OnceCell::const_new();

/// A program of this workspace, built once.
pub(crate) async fn program(name: &str) -> PathBuf {
    // The same packages as the other tests of processes: Cargo then finds them compiled.
    let packages = ["leasehold-extension", "leasehold-sample", "leasehold-test-functions"];
    let built = BUILT.get_or_init(|| async move { cargo_build(&packages).await.map_err(|e| e.to_string()).unwrap() });
    built.await[name].clone()
}

/// A sandbox for one of the test functions, with an extension, two environments, and a proxy in front of DynamoDB. Idle
/// environments are not frozen unless a test is about that: a line that an extension still has to write would wait for
/// the next invocation.
pub(crate) async fn with_extension(function: &str, extension: &str, lease: Duration) -> SandboxBuilder {
    Sandbox::builder()
        .function(program("test-function").await)
        .extension(program(extension).await)
        .name("tested")
        .environments(2)
        .fault_proxy(true)
        .freeze(false)
        .timeout(Duration::from_secs(120))
        .init_timeout(SOON)
        .env("TEST_FUNCTION", function)
        .env("LEASEHOLD_TABLE", TABLE)
        .env("LEASEHOLD_LEASE_DURATION", format!("{}ms", lease.as_millis()))
        .env("LEASEHOLD_MAX_WAIT", "60s")
        .env("AWS_LAMBDA_LOG_FORMAT", "JSON")
        .env("AWS_LAMBDA_LOG_LEVEL", "INFO")
}

/// The same, with the function that can be held and the extension that ships.
pub(crate) async fn staged(lease: Duration) -> SandboxBuilder {
    with_extension("staged", "leasehold", lease).await
}

/// What the row says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    Absent,
    Free,
    Held { owner: String },
}

/// A running sandbox.
pub(crate) struct Stage {
    pub(crate) sandbox: Sandbox,
}

impl Stage {
    /// Starts it, with its lock table.
    pub(crate) async fn set(builder: SandboxBuilder) -> Self {
        let sandbox = builder.start().await.unwrap();
        sandbox.tables().create_lock_table(TABLE).await.unwrap();
        Self { sandbox }
    }

    /// Starts it, with environment 0 initialized.
    pub(crate) async fn warm(builder: SandboxBuilder) -> Self {
        let stage = Self::set(builder).await;
        stage.environment(0).start().await.unwrap();
        stage
    }

    pub(crate) fn environment(&self, index: usize) -> Environment {
        self.sandbox.environment(index)
    }

    pub(crate) fn faults(&self) -> &FaultProxy {
        self.sandbox.faults().unwrap()
    }

    /// Opens a gate of the invocation that is called so in this environment.
    pub(crate) fn open(&self, environment: usize, name: &str, gate: &str) {
        let tmp = self.environment(environment).tmp().unwrap();
        std::fs::write(tmp.join(format!("{name}.{gate}")), b"").unwrap();
    }

    /// Waits until a process says this of that invocation.
    pub(crate) async fn said(&self, message: &str, request_id: &str) -> Said {
        let event = self.sandbox.log().wait_for(says(message, request_id), SOON).await.unwrap();
        Said::in_event(&event).unwrap()
    }

    /// When a process said this of that invocation, in microseconds of wall time.
    pub(crate) async fn said_at(&self, message: &str, request_id: &str) -> u64 {
        self.said(message, request_id).await.at_us().unwrap()
    }

    /// What was said so far with this message of that invocation.
    pub(crate) fn has_said(&self, message: &str, request_id: &str) -> Option<Said> {
        self.sandbox.log().find(says(message, request_id)).and_then(|event| Said::in_event(&event))
    }

    /// The row as it is now.
    pub(crate) async fn row(&self) -> Row {
        self.row_of(KEY).await
    }

    /// Some key's row as it is now.
    pub(crate) async fn row_of(&self, key: &str) -> Row {
        match self.sandbox.tables().row(TABLE, key).await.unwrap() {
            None => Row::Absent,
            Some(row) => match row.get("owner") {
                None => Row::Free,
                Some(owner) => Row::Held { owner: owner.as_s().unwrap().clone() },
            },
        }
    }

    /// The row's version: the highest fencing token so far.
    pub(crate) async fn version(&self) -> Option<u64> {
        let row = self.sandbox.tables().row(TABLE, KEY).await.unwrap()?;
        Some(row["version"].as_n().unwrap().parse().unwrap())
    }

    /// Waits until both of the environment's processes have called Next, and looks at the row.
    pub(crate) async fn row_when_idle(&self, environment: usize) -> Row {
        self.environment(environment).wait_until_idle().await.unwrap();
        self.row().await
    }

    pub(crate) fn timeline(&self) -> String {
        self.sandbox.log().timeline().to_string()
    }

    /// Waits until the kernel shows this process as stopped.
    pub(crate) async fn stopped(&self, environment: usize, process: Process) {
        let pid = self.environment(environment).pid(process).await.unwrap();
        let stopped = async {
            while state(pid) != Some('T') {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(SOON, stopped).await.expect("a process that SIGSTOP was sent to is not stopped");
    }
}

/// Whether a process said this of that invocation.
pub(crate) fn says<'a>(message: &'a str, request_id: &'a str) -> impl Fn(&Event) -> bool + 'a {
    move |event| Said::in_event(event).is_some_and(|said| said.message == message && said.is_about(request_id))
}

/// The extension's process.
pub(crate) fn extension() -> Process {
    Process::Extension("leasehold".to_owned())
}

/// A process's state letter as the kernel shows it; none if there is no such process.
fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}
