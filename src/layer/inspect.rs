//! A key that is looked at without being taken.

use std::future::poll_fn;
use std::time::Duration;

use tokio::time::timeout;

use super::acquisition::gone;
use super::core::Core;
use crate::error::{Error, KeeperGone, refused};
use crate::key::LockKey;
use crate::protocol::{HolderInfo, OwnerId};
use crate::session::{Inspect, RowState};

/// How long the keeper gets for it: longer than it gives DynamoDB.
const WITHIN: Duration = Duration::from_secs(7);

/// How a key stands, as one consistent read showed it; see [`Leasehold::inspect`](crate::Leasehold::inspect).
///
/// It was so at the moment of the read, and may be otherwise by now: to be sure of a key, take its lease. No host's clock
/// is compared with another's in it. What is told of time is measured by the keeper that looked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyState {
    /// The key has no row: it was never locked, it was free for a week and swept, or its row format keeps no free rows.
    Absent,
    /// Nobody holds it.
    #[non_exhaustive]
    Free {
        /// The row's version: the next holder's fencing token is higher.
        version: u64,
    },
    /// Somebody holds it, or held it and vanished.
    #[non_exhaustive]
    Held {
        /// The identity of the holder's acquisition.
        owner: OwnerId,
        /// The row's version, which grows with every renewal: the holder's fencing token is not higher. `None` in a row
        /// format that does not count.
        version: Option<u64>,
        /// What the row says about its holder; `acquired_at` in it is by the holder's own clock.
        holder: Option<Box<HolderInfo>>,
        /// How long the lease lasts when it is not renewed.
        lease: Duration,
        /// For how long this keeper has seen it unchanged, at least. That takes two looks: at the first it is zero. A
        /// living holder renews every third of its lease, so what stays unchanged for longer is probably abandoned.
        unchanged_for: Duration,
        /// When the lease can end, if it is not renewed: somebody who waits can have the key by then.
        retry_after: Duration,
    },
}

impl KeyState {
    /// Whether somebody holds the key, or its last holder's lease is not over yet.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        matches!(self, Self::Held { .. })
    }
}

impl From<RowState> for KeyState {
    fn from(row: RowState) -> Self {
        match row {
            RowState::Absent => Self::Absent,
            RowState::Free { version } => Self::Free { version },
            RowState::Held { owner, version, lease_ms, unchanged_for_ms, retry_after_ms, holder } => Self::Held {
                owner,
                version,
                holder: holder.map(Box::new),
                lease: Duration::from_millis(lease_ms),
                unchanged_for: Duration::from_millis(unchanged_for_ms),
                retry_after: Duration::from_millis(retry_after_ms),
            },
        }
    }
}

/// Looks, over a session of its own.
pub(super) async fn inspect(core: &Core, context: &lambda_runtime::Context, key: LockKey) -> Result<KeyState, Error> {
    let hold = core.begin(context)?;
    let session = hold.session();
    let looking = async {
        poll_fn(|cx| session.poll_version(cx)).await.map_err(gone)?;
        session.inspect(Box::new(Inspect {
            // The session gives it its own.
            id: 0,
            key: key.as_str().to_owned(),
            table: core.settings.table.clone(),
            server_time: core.settings.server_time,
        }));
        match poll_fn(|cx| session.poll_inspected(cx)).await.map_err(gone)? {
            Ok(row) => Ok(KeyState::from(row)),
            Err((kind, message)) => Err(refused(key.clone(), kind, message)),
        }
    };
    timeout(WITHIN, looking).await.unwrap_or_else(|_| {
        session.look();
        Err(KeeperGone { reason: "it did not answer in time".to_owned() }.into())
    })
}
