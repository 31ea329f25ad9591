//! The settings as they are being collected: each may be unset, and everything that is wrong is kept until the end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::check::{check, check_minimum};
use super::choice::{KeeperChoice, MetricLines, MissingPath, OnLoss, OnUnavailable, Release};
use super::duration;
use super::environment::Environment;
use super::keys::Secret;
use super::polling::Polling;
use super::reading::{CodeWins as _, Reading};
use super::resolved::Settings;
use crate::budget::DEFAULT_MAX_WAIT;
use crate::session::OnCrash;

const DEFAULT_LEASE: Duration = Duration::from_secs(30);
const DEFAULT_MAX_HOLD: Duration = Duration::from_secs(15 * 60);

/// What the code set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) table: Option<String>,
    pub(crate) key_attribute: Option<String>,
    pub(crate) sort_key: Option<(String, String)>,
    pub(crate) format: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) hashed_keys: Option<bool>,
    pub(crate) key_secret: Option<Secret>,
    pub(crate) also: Option<String>,
    pub(crate) lease_duration: Option<Duration>,
    pub(crate) reserve: Option<Duration>,
    pub(crate) max_wait: Option<Duration>,
    pub(crate) polling: Option<Polling>,
    pub(crate) release: Option<Release>,
    pub(crate) on_crash: Option<OnCrash>,
    pub(crate) missing_path: Option<MissingPath>,
    pub(crate) on_loss: Option<OnLoss>,
    pub(crate) keep_finished_response: Option<bool>,
    pub(crate) on_unavailable: Option<OnUnavailable>,
    pub(crate) server_time: Option<bool>,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) max_silence: Option<Duration>,
    pub(crate) end_before_deadline: Option<Duration>,
    pub(crate) state_retention: Option<Duration>,
    pub(crate) holder_note: Option<String>,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) hold_at_least: Option<Duration>,
    /// Whether each record of a batch is locked by itself.
    pub(crate) per_record: bool,
    pub(crate) keeper: Option<KeeperChoice>,
    pub(crate) socket: Option<PathBuf>,
    #[cfg(feature = "testing")]
    pub(crate) double: Option<crate::testing::TestKeeper>,
}

impl Draft {
    /// Merges in the environment and checks the whole, adding to `problems`; answers what holds if nothing is wrong with
    /// it, and what to warn about.
    pub(crate) fn resolve(self, environment: &Environment, problems: &mut Vec<String>) -> (Settings, Vec<String>) {
        let mut read = Reading { environment, problems };
        let initialization = environment.get("AWS_LAMBDA_INITIALIZATION_TYPE");
        let on_lambda = initialization.is_some_and(|kind| !kind.is_empty());
        let mode = read.choice("MODE").unwrap_or_default();
        let default_keeper = if on_lambda { KeeperChoice::Extension } else { KeeperChoice::Auto };

        let settings = Settings {
            table: read.table(self.table, self.key_attribute, self.sort_key, self.format, mode),
            namespace: read.namespace(self.namespace),
            key_hash: read.key_hash(self.hashed_keys, self.key_secret),
            also: read.also(self.also),
            lease_duration: read.duration_or("LEASE_DURATION", self.lease_duration, DEFAULT_LEASE),
            reserve: read.duration("RESERVE").unless_set(self.reserve),
            max_wait: read.duration_or("MAX_WAIT", self.max_wait, DEFAULT_MAX_WAIT),
            polling: read.polling(self.polling),
            release: read.choice_or("RELEASE", self.release),
            on_crash: read.choice_or("ON_CRASH", self.on_crash),
            missing_path: read.choice_or("MISSING_PATH", self.missing_path),
            on_loss: read.choice_or("ON_LOSS", self.on_loss),
            keep_finished_response: read.switch("KEEP_FINISHED_RESPONSE", self.keep_finished_response, false),
            on_unavailable: read.choice_or("ON_UNAVAILABLE", self.on_unavailable),
            server_time: read.switch("SERVER_TIME", self.server_time, true),
            max_hold: read.duration_or("MAX_HOLD", self.max_hold, DEFAULT_MAX_HOLD),
            max_silence: read.duration("MAX_SILENCE").unless_set(self.max_silence),
            end_before_deadline: read.duration("END_BEFORE_DEADLINE").unless_set(self.end_before_deadline),
            state_retention: read.value("STATE_RETENTION", duration::parse_long).unless_set(self.state_retention),
            holder_note: self.holder_note.unwrap_or_default(),
            attributes: self.attributes,
            hold_at_least: read.duration("HOLD_AT_LEAST").unless_set(self.hold_at_least),
            keeper: read.choice("KEEPER").unless_set(self.keeper).unwrap_or(default_keeper),
            socket: read.socket(self.socket),
            #[cfg(feature = "testing")]
            double: self.double,
            on_lambda,
            managed_instances: initialization == Some("lambda-managed-instances"),
            mode,
        };
        // The keeper's affair; but a value that it would not take is told where somebody looks.
        let _keepers: Option<MetricLines> = read.choice("METRICS");
        check(&settings, read.problems);
        check_minimum(&settings, self.per_record, read.problems);
        let warnings = read.unknown_names();
        (settings, warnings)
    }
}
