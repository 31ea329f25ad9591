//! The settings that hold, once code and environment are merged and nothing is wrong with them.

use std::path::PathBuf;
use std::time::Duration;

use super::choice::{KeeperChoice, MissingPath, Mode, OnLoss, OnUnavailable, ReleaseWhen};
use crate::key::Namespace;
use crate::session::{OnCrash, PollingMs, Table};

/// What one layer does.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    pub(crate) table: Table,
    pub(crate) namespace: Option<Namespace>,
    pub(crate) lease_duration: Duration,
    pub(crate) reserve: Option<Duration>,
    pub(crate) max_wait: Duration,
    pub(crate) polling: PollingMs,
    pub(crate) release: ReleaseWhen,
    pub(crate) on_crash: OnCrash,
    pub(crate) missing_path: MissingPath,
    pub(crate) on_loss: OnLoss,
    /// Whether a response that was ready when the loss was seen is given all the same.
    pub(crate) keep_finished_response: bool,
    pub(crate) on_unavailable: OnUnavailable,
    pub(crate) server_time: bool,
    pub(crate) max_hold: Duration,
    pub(crate) end_before_deadline: Option<Duration>,
    pub(crate) hold_at_least: Option<Duration>,
    pub(crate) keeper: KeeperChoice,
    pub(crate) socket: PathBuf,
    /// What plays the keeper in a unit test.
    #[cfg(feature = "testing")]
    pub(crate) double: Option<crate::testing::TestKeeper>,
    /// Whether this is Lambda itself, or an emulator that runs extensions.
    pub(crate) on_lambda: bool,
    /// Whether invocations overlap, nothing freezes, and nobody kills a handler at its deadline.
    pub(crate) managed_instances: bool,
}
