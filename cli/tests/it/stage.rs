//! A table with locks in it, and the program that looks at them.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use aws_sdk_dynamodb::types::AttributeValue;
use leasehold::clock::Wall;
use leasehold::protocol::{Format, HolderInfo, Outcome, OwnerId, Request, Version};
use leasehold::session::Table;
use leasehold::store::{DynamoDb, Lock, Store as _};
use leasehold_sandbox::{EmbeddedDynamoDb, LockTable, Row};
use serde_json::Value;

/// Longer than anything takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// What a run of the program came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { status: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// The status is this one; otherwise all of it is shown.
    pub(crate) fn ended(self, status: i32) -> Self {
        assert_eq!(self.status, status, "{}\n{}", self.out, self.err);
        self
    }

    /// Standard output as one JSON document.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}:\n{}\n{}", self.out, self.err))
    }

    pub(crate) fn says(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.out.contains(text), "{text:?} is missing in\n{}\n{}", self.out, self.err);
        }
        self
    }
}

/// The program with credentials for nobody's account and nothing else of this machine's environment.
pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leaseholdctl"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").env("AWS_SECRET_ACCESS_KEY", "not a secret");
    command.env("AWS_REGION", "us-east-1").env("HOME", "/nonexistent").env("TERM", "xterm-256color");
    command
}

pub(crate) fn run(arguments: &[&str]) -> Ran {
    Ran::of(program(arguments).output().unwrap())
}

pub(crate) fn run_with_input(arguments: &[&str], input: &str) -> Ran {
    let mut command = program(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Ran::of(child.wait_with_output().unwrap())
}

/// A DynamoDB and a view on one table of it.
pub(crate) struct Stage {
    pub(crate) dynamodb: EmbeddedDynamoDb,
    pub(crate) store: DynamoDb,
    pub(crate) table: Table,
}

impl Stage {
    /// One with the lock table `locks`.
    pub(crate) async fn new() -> Self {
        Self::with(LockTable::new("locks"), Table::new("locks")).await
    }

    /// One whose table speaks this format.
    pub(crate) async fn speaking(format: Format) -> Self {
        Self::with(LockTable::new("locks"), Table::new("locks").speaking(format)).await
    }

    pub(crate) async fn with(lock_table: LockTable, table: Table) -> Self {
        let stage = Self::without_tables(table);
        stage.dynamodb.tables().create_lock_table(lock_table).await.unwrap();
        stage
    }

    pub(crate) fn without_tables(table: Table) -> Self {
        let dynamodb = EmbeddedDynamoDb::start(0).unwrap();
        let store = DynamoDb::with_config(sdk_config(dynamodb.url()));
        Self { dynamodb, store, table }
    }

    pub(crate) async fn client(&self) -> aws_sdk_dynamodb::Client {
        self.dynamodb.tables().client().await
    }

    /// Runs the program on the table of this stage.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        run(&self.arguments(arguments))
    }

    /// The arguments with this stage's endpoint and table.
    pub(crate) fn arguments<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        let mut all = arguments.to_vec();
        all.extend(["--endpoint-url", self.dynamodb.url(), "--table", self.table.name.as_str()]);
        if self.table.format != "leasehold/1" {
            all.extend(["--format", self.table.format.as_str()]);
        }
        all
    }

    pub(crate) fn lock(&self, key: &str) -> Lock {
        let holder = HolderInfo {
            function: "ship-orders".into(),
            version: "7".into(),
            request_id: "c0ffee-1".into(),
            template: "orders:{detail.orderId}".into(),
            acquired_at: None,
            ..HolderInfo::default()
        };
        Lock { table: self.table.clone(), key: key.to_owned(), holder, attributes: Default::default() }
    }

    /// Takes a lock with a lease of this length, as a keeper does; answers its owner and version.
    pub(crate) async fn take(&self, key: &str, lease: Duration) -> Held {
        let owner = OwnerId::random();
        let version = (self.table.format == "pydynox/1").then(|| Version::Opaque(OwnerId::random().bits()));
        let at = Wall::from_millis(1_700_000_000_000);
        let request = Request::Acquire { owner, version, at, lease, expires_at: None, unknown: vec![], served: None };
        let version = self.written(key, request).await;
        Held { owner, version }
    }

    pub(crate) async fn renew(&self, key: &str, held: &mut Held) {
        let new_version = match held.version {
            Version::Counter(counter) => Version::Counter(counter + 1),
            Version::Opaque(_) => Version::Opaque(OwnerId::random().bits()),
        };
        let request = Request::Renew { owner: held.owner, version: held.version, new_version, expires_at: None };
        held.version = self.written(key, request).await;
    }

    /// What a release leaves where `hold_at_least` is not over.
    pub(crate) async fn park(&self, key: &str, held: &Held, lease: Duration) -> Held {
        let (parked, at) = (OwnerId::random(), Wall::from_millis(1_700_000_000_000));
        let Version::Counter(counter) = held.version else { panic!("only counted versions") };
        let new_version = Version::Counter(counter + 1);
        let (owner, version) = (held.owner, held.version);
        let park = Request::Park { owner, version, parked, new_version, at, lease, expires_at: None };
        Held { owner: parked, version: self.written(key, park).await }
    }

    pub(crate) async fn release(&self, key: &str, held: &Held) {
        self.written(key, Request::Release { owners: vec![held.owner], ttl: Some(4_000_000_000), hold: None }).await;
    }

    pub(crate) async fn take_over(&self, key: &str, held: &Held, lease: Duration) -> Held {
        let owner = OwnerId::random();
        let request = Request::TakeOver {
            owner,
            version: None,
            at: Wall::from_millis(1_700_000_001_000),
            lease,
            expires_at: None,
            seen_owner: held.owner,
            seen_version: held.version,
            served: None,
        };
        Held { owner, version: self.written(key, request).await }
    }

    async fn written(&self, key: &str, request: Request) -> Version {
        match self.store.send(&self.lock(key), request, LONG).await.outcome {
            Outcome::Written { version, .. } => version,
            other => panic!("{other:?}"),
        }
    }

    /// Writes a row of anybody's.
    pub(crate) async fn put(&self, attributes: &[(&str, AttributeValue)]) {
        let row: Row = attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        self.dynamodb.tables().put(&self.table.name, row).await.unwrap();
    }

    pub(crate) async fn rows(&self) -> Vec<Row> {
        self.dynamodb.tables().rows(&self.table.name).await.unwrap()
    }
}

/// Whose a row is, and at which version.
pub(crate) struct Held {
    pub(crate) owner: OwnerId,
    pub(crate) version: Version,
}

pub(crate) fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

pub(crate) fn n(number: u64) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

fn sdk_config(url: &str) -> SdkConfig {
    let credentials = Credentials::new("AKIDEXAMPLE", "not a secret", None, None, "tests");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("us-east-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .endpoint_url(url)
        .build()
}
