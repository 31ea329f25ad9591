//! Looks at rows for a session: each one consistent read, which takes nothing and holds up nobody.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::outbox::Outbox;
use super::shared::{Shared, set};
use super::subject::{check_key, check_table, subject};
use super::wording::{self, cut_holder, failed, millis, millis_up};
use crate::protocol::{HeldRow, HolderInfo, Look, Outcome, Request, Row, Standing};
use crate::session::{FailKind, FromKeeper, Inspect, Inspected, RowState};
use crate::store::Lock;

/// How many looks one session may have under way.
pub(super) const MAX_LOOKS: usize = 64;
/// How long a look may take: as long as a contender's.
const WITHIN: Duration = Duration::from_secs(5);

/// The looks of one session; dropping this ends them.
#[derive(Debug, Default)]
pub(super) struct Looks(JoinSet<()>);

impl Looks {
    /// Begins a look, which tells the outbox what it showed.
    ///
    /// # Errors
    ///
    /// When a field can't be served, or too many are under way.
    pub(super) fn begin(&mut self, shared: &Arc<Shared>, outbox: &Arc<Outbox>, inspect: Inspect) -> Result<(), String> {
        while self.0.try_join_next().is_some() {}
        if self.0.len() >= MAX_LOOKS {
            return Err(format!("a session may have at most {MAX_LOOKS} looks under way"));
        }
        check_key(&inspect.key)?;
        check_table(&inspect.table)?;
        let (shared, outbox) = (shared.clone(), outbox.clone());
        self.0.spawn(async move {
            let mut closing = shared.closing.subscribe();
            let id = inspect.id;
            let line = tokio::select! {
                biased;
                () = set(&mut closing) => failed(id, FailKind::ShuttingDown, "the keeper is shutting down"),
                line = look(&shared, inspect) => line,
            };
            outbox.tell(&line);
        });
        Ok(())
    }
}

async fn look(shared: &Shared, inspect: Inspect) -> FromKeeper {
    let Inspect { id, key, table, server_time } = inspect;
    let look = shared.with_context(|cx| Look::new(subject(&table, &key), cx));
    let lock = Lock { table, key, holder: HolderInfo::default(), attributes: Default::default() };
    let answer = shared.wire.send(&lock, Request::Read, WITHIN, None, None, std::future::pending()).await;
    let standing = shared.with_context(|cx| look.handle_answer(cx, &answer, server_time));
    let row = match answer.outcome {
        Outcome::Read { row: Row::Absent } => RowState::Absent,
        Outcome::Read { row: Row::Free { version, .. } } => RowState::Free { version },
        Outcome::Read { row: Row::Held(held) } => state(held, standing),
        Outcome::Read { row: Row::Unusable(unusable) } => {
            return wording::unusable(id, &unusable, &lock.table.name);
        }
        Outcome::Failed(failure) => return wording::failure(id, &failure),
        Outcome::Written { .. } | Outcome::Refused { .. } | Outcome::Numbered { .. } => {
            return failed(id, FailKind::Server, "the store answered a read with something else");
        }
    };
    FromKeeper::Inspected(Box::new(Inspected { id, row }))
}

fn state(held: HeldRow, standing: Option<Standing>) -> RowState {
    let HeldRow { owner, version, lease, holder, .. } = held;
    let Standing { unchanged_for, retry_after } =
        standing.unwrap_or(Standing { unchanged_for: Duration::ZERO, retry_after: lease });
    RowState::Held {
        owner,
        version: version.counter(),
        lease_ms: millis(lease),
        unchanged_for_ms: millis(unchanged_for),
        retry_after_ms: millis_up(retry_after),
        holder: holder.map(|holder| cut_holder(*holder)),
    }
}
