//! What everything is measured on: an embedded DynamoDB, and before it a proxy that counts every request and adds the latency.

use std::{collections::BTreeMap, fmt, time::Duration};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::{
    Client,
    config::{Credentials, SharedCredentialsProvider, retry::RetryConfig},
};
use rustix::time::{ClockId, clock_gettime};

use super::{BenchPrograms, INIT_TIMEOUT};
use crate::{
    DynamoDb, EmbeddedDynamoDb, Error, Log, Sandbox, SandboxBuilder,
    faults::{Fault, FaultProxy, Step},
};

pub(super) const TABLE: &str = "locks";
/// What the key of every lock that is measured begins with.
pub(super) const KEYS: &str = "bench:";

/// DynamoDB, its proxy, and what came by.
#[derive(Debug)]
pub(super) struct Ground {
    dynamodb: EmbeddedDynamoDb,
    proxy: FaultProxy,
}

impl Ground {
    /// With a lock table, and with this latency for every request.
    pub(super) async fn start(latency: Duration) -> Result<Self, Error> {
        let dynamodb = EmbeddedDynamoDb::start(0)?;
        dynamodb.tables().create_lock_table(TABLE).await?;
        let proxy = FaultProxy::start(dynamodb.url())?;
        if !latency.is_zero() {
            proxy.inject_where(usize::MAX, move |_| Some(Fault::DelayRequest(latency)));
        }
        Ok(Self { dynamodb, proxy })
    }

    /// Where the proxy is, or DynamoDB itself.
    pub(super) fn url(&self, past_the_proxy: bool) -> &str {
        if past_the_proxy { self.dynamodb.url() } else { self.proxy.url() }
    }

    /// Settings for a client of its own, through the proxy.
    pub(super) fn config(&self) -> SdkConfig {
        config(self.url(false))
    }

    /// A sandbox of this function with the extension, over this DynamoDB.
    pub(super) fn sandbox(&self, programs: &BenchPrograms) -> SandboxBuilder {
        self.bare(programs).extension(&programs.extension)
    }

    /// The same without the extension.
    pub(super) fn bare(&self, programs: &BenchPrograms) -> SandboxBuilder {
        Sandbox::builder()
            .function(&programs.function)
            .name("bench")
            .dynamodb(DynamoDb::Endpoint(self.proxy.url().to_owned()))
            .init_timeout(INIT_TIMEOUT)
            .env("AWS_ACCESS_KEY_ID", "AKIDBENCH")
            .env("AWS_SECRET_ACCESS_KEY", "bench")
            .env("LEASEHOLD_TABLE", TABLE)
            .env("AWS_LAMBDA_LOG_FORMAT", "JSON")
            .env("AWS_LAMBDA_LOG_LEVEL", "INFO")
    }

    /// How many requests have come.
    pub(super) fn mark(&self) -> usize {
        self.proxy.seen().len()
    }

    /// The requests since, for keys that are wanted.
    pub(super) fn since(&self, mark: usize, wanted: impl Fn(&str) -> bool) -> Counts {
        let seen = self.proxy.seen();
        let passed = seen.get(mark..).unwrap_or_default().iter();
        passed.filter(|passing| passing.key.as_deref().is_some_and(&wanted)).map(|passing| (passing.step, 1)).collect()
    }
}

/// Settings of a client that sends each request once.
pub(super) fn config(url: &str) -> SdkConfig {
    let credentials = Credentials::new("AKIDBENCH", "bench", None, None, "bench");
    SdkConfig::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new(crate::settings::DEFAULT_REGION))
        .endpoint_url(url)
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .retry_config(RetryConfig::disabled())
        .build()
}

/// The floor's client, its connection made and its row there.
pub(super) async fn client(url: &str) -> Result<Client, Error> {
    let client = Client::new(&config(url));
    for _ in 0..5 {
        super::floor::pair(&client).await?;
    }
    Ok(client)
}

/// Requests by what they do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts(BTreeMap<Step, usize>);

impl FromIterator<(Step, usize)> for Counts {
    fn from_iter<I: IntoIterator<Item = (Step, usize)>>(counted: I) -> Self {
        let mut counts = BTreeMap::new();
        for (step, count) in counted {
            *counts.entry(step).or_default() += count;
        }
        counts.retain(|_, count| *count > 0);
        Self(counts)
    }
}

impl Counts {
    pub(super) fn of(&self, step: Step) -> usize {
        self.0.get(&step).copied().unwrap_or(0)
    }

    pub(super) fn all(&self) -> usize {
        self.0.values().sum()
    }

    /// Those that only read.
    pub(super) fn reads(&self) -> usize {
        self.of(Step::Read) + self.of(Step::ReadState)
    }

    /// All others.
    pub(super) fn writes(&self) -> usize {
        self.all() - self.reads()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        for (place, (step, count)) in self.0.iter().enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            write!(f, "{comma}{count} {step:?}")?;
        }
        Ok(())
    }
}

/// Nanoseconds of the machine's monotonic clock, which the functions read as well.
pub(super) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// When that was by the machine's monotonic clock, which a sandbox's log noted at this time of its own.
pub(super) fn machine_ns(log: &Log, at: Duration) -> u64 {
    let ago = log.elapsed().saturating_sub(at);
    now_ns().saturating_sub(u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_reads_or_writes() {
        let counted = [(Step::Acquire, 1), (Step::Read, 2), (Step::Release, 1), (Step::Acquire, 1), (Step::Renew, 0)];
        let counts: Counts = counted.into_iter().collect();
        assert_eq!((counts.of(Step::Acquire), counts.reads(), counts.writes(), counts.all()), (2, 2, 3, 5));
        assert_eq!(counts.to_string(), "2 Acquire, 1 Release, 2 Read");
        assert_eq!(Counts::default().to_string(), "none");
    }
}
