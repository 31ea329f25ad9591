//! The settings that hold, once code and environment are merged and nothing is wrong with them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::choice::{KeeperChoice, MissingPath, Mode, OnLoss, OnUnavailable, Release};
use super::polling::Polling;
use crate::key::{KeyHash, Namespace, Template};
use crate::session::{OnCrash, Table};

/// What one layer does.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    pub(crate) table: Table,
    pub(crate) namespace: Option<Namespace>,
    /// What takes a key's place, behind the namespace.
    pub(crate) key_hash: Option<KeyHash>,
    /// What makes the key that is locked beside the layer's own.
    pub(crate) also: Option<Template>,
    pub(crate) lease_duration: Duration,
    pub(crate) reserve: Option<Duration>,
    pub(crate) max_wait: Duration,
    pub(crate) polling: Polling,
    pub(crate) release: Release,
    pub(crate) on_crash: OnCrash,
    pub(crate) missing_path: MissingPath,
    pub(crate) on_loss: OnLoss,
    /// Whether a response that was ready when the loss was seen is given all the same.
    pub(crate) keep_finished_response: bool,
    pub(crate) on_unavailable: OnUnavailable,
    pub(crate) server_time: bool,
    pub(crate) max_hold: Duration,
    pub(crate) max_silence: Option<Duration>,
    pub(crate) end_before_deadline: Option<Duration>,
    /// For how long a state is kept; without end unless set.
    pub(crate) state_retention: Option<Duration>,
    /// What people are told by the row.
    pub(crate) holder_note: String,
    pub(crate) attributes: BTreeMap<String, String>,
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
