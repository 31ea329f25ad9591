//! `free`: a lock given back by hand, on the condition that it is still the one that was looked at.

use std::time::SystemTime;

use clap::Args;
use leasehold::clock::Wall;
use leasehold::protocol::{Format, HeldRow, Outcome, Row, Version};
use serde_json::json;

use crate::asking;
use crate::aws::PATIENCE;
use crate::ended::{Ended, STATUS, Stop};
use crate::lock;
use crate::options::{Chosen, TableOptions};
use crate::output;
use crate::text::{cut, safe, shown_key, span};

/// Free a lock by hand, if it is still at the version that `show` told.
///
/// A lock whose holder died frees itself: who wants it takes it over once its lease is over. This is for leases that are too
/// long to be waited for, and for holders that must not go on. The write is conditional on the version and the owner that are
/// on the row. A holder that still runs renews and so has another version by then: nothing is freed. Where it is freed
/// under a holder, that one notices with its next renewal, and works on until then beside the next holder.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  leaseholdctl free orders:17 --if-version 1764453600123 --table locks
  leaseholdctl free sync:7 --if-version 0a1b2c3d-0000-4000-8000-0123456789ab --table locks --format pydynox/1

{STATUS}
1 if nothing was freed. After 3 it may have been: look with `leaseholdctl show`."))]
pub(crate) struct Free {
    /// The key, without its namespace.
    #[arg(value_name = "KEY")]
    key: String,

    /// The version that the row must still have, as `show` and `list` tell it.
    #[arg(long, value_name = "VERSION")]
    if_version: String,

    #[command(flatten)]
    pub(crate) table: TableOptions,
}

impl Free {
    pub(crate) async fn run(&self, json: bool) -> Result<Ended, Stop> {
        let (chosen, store, _) = self.table.open().await?;
        let key = chosen.key_of_lock(&self.key)?;
        let seen = asking::look(&store, &chosen.table, &key).await?.found.row;
        let held = match &seen {
            Row::Held(held) if held.version.to_string() == self.if_version => held,
            other => return self.tell(&chosen, json, None, other),
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        match store.free(&chosen.table, &key, held, Wall::from_epoch(now), PATIENCE).await {
            Outcome::Written { .. } => self.tell(&chosen, json, Some(held), &seen),
            Outcome::Refused { row } => self.tell(&chosen, json, None, &row),
            Outcome::Failed(failure) if failure.kind.may_have_landed() => Err(Stop::Aws(format!(
                "it is not known whether `{}` was freed: {failure}; look with `leaseholdctl show`",
                self.key
            ))),
            Outcome::Failed(failure) => Err(failure.into()),
            Outcome::Read { row } | Outcome::Numbered { row } => self.tell(&chosen, json, None, &row),
        }
    }

    /// Tells what was freed, or what the row is instead.
    fn tell(&self, chosen: &Chosen, json: bool, freed: Option<&HeldRow>, row: &Row) -> Result<Ended, Stop> {
        let told = freed.map_or_else(|| self.why_not(row), |held| consequences(held, chosen.format));
        if json {
            let holder = lock::holder(row);
            output::document(&json!({
                "table": chosen.table.name,
                "key": chosen.full_key(&self.key),
                "freed": freed.is_some(),
                "state": if freed.is_some() { "free" } else { lock::state(row) },
                "version": lock::version(row).map(|version| version.to_string()),
                "function": holder.map(|holder| &holder.function),
                "request_id": holder.map(|holder| &holder.request_id),
                "told": told,
            }))?;
        } else {
            let done = if freed.is_some() { "freed" } else { "nothing was freed" };
            output::line(&format!("{}: {done}", shown_key(&chosen.full_key(&self.key), usize::MAX)))?;
            for line in told.lines() {
                output::line(&format!("  {}", safe(line)))?;
            }
        }
        Ok(if freed.is_some() { Ended::Fine } else { Ended::Problem })
    }

    fn why_not(&self, row: &Row) -> String {
        match row {
            Row::Absent => "there is no row: nobody holds it".to_owned(),
            Row::Free { .. } => "nobody holds it".to_owned(),
            Row::Held(held) => self.why_not_at(held),
            Row::Unusable(unusable) => unusable.to_string(),
        }
    }
}

impl Free {
    fn why_not_at(&self, held: &HeldRow) -> String {
        let (is, given) = (held.version, cut(&self.if_version, 64));
        let again = "look again with `leaseholdctl show`";
        match (is, self.if_version.parse::<u64>()) {
            // A version never falls.
            (Version::Counter(is), Ok(given)) if given > is => format!(
                "the row is at version {is}, and never was at {given}: is this the key, the table, the Region and the account \
                 that were looked at? {again}"
            ),
            (Version::Counter(_), Err(_)) => format!(
                "the row is at version {is}; {given:?} is no version of this format, which is a whole number: {again}"
            ),
            _ => format!(
                "the row is at version {is}, not {given}: it was renewed, so its holder is alive, or has another holder by \
                 now; {again}"
            ),
        }
    }
}

/// What a holder that still runs is in for.
fn consequences(held: &HeldRow, format: Format) -> String {
    let holder = held.holder.as_ref().map_or("its holder".to_owned(), |holder| cut(&holder.to_string(), 160));
    if lock::is_parked(held) {
        return "nobody worked under it any more; the late duplicate that `hold_at_least` was for may run now"
            .to_owned();
    }
    let (lease, renewal) = (span(held.lease), span(held.lease / 3));
    let notices = match format {
        Format::PydynoxV1 => format!(
            "if {holder} still runs, it notices with its next renewal, within about {renewal} (a Rust holder as `LeaseLost`; \
             pydynox by its own rules)"
        ),
        _ => format!(
            "if {holder} still runs, it notices with its next renewal, within about {renewal}: its lease is lost (\"the row was \
             freed by somebody else\"), `ensure_held` fails from then on, and its handler is dropped with `LeaseLost` unless \
             `on_loss` says `signal`"
        ),
    };
    format!(
        "{notices}\nuntil then two may work on the key: that one, and who takes it now; where it is frozen, until it notices that \
         its lease of {lease} is over"
    )
}
