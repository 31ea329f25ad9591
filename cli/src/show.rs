//! `show`: one lock, and by a second look whether its holder still renews it.

use std::time::{Duration, Instant};

use clap::Args;
use leasehold::protocol::{HeldRow, Row};
use leasehold::store::{DynamoDb, FoundRow, Look};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::asking;
use crate::ended::{Ended, STATUS, Stop};
use crate::lock::{self, millis};
use crate::options::{Chosen, TableOptions};
use crate::output::{self, Progress};
use crate::text::{cut, moment, quoted, safe, shown_key, span};

/// How often the row is looked at.
const EVERY: Duration = Duration::from_millis(500);
/// The longest that is watched for a renewal unless more is asked for.
const LONGEST: Duration = Duration::from_secs(15);

/// Show one lock: who holds it, since when, in which invocation, and whether it is still renewed.
///
/// A renewal changes the row's version. So the row is looked at again and again until that happens, for a little longer
/// than a third of its lease, which is when a renewal is due, and 15 s at most: how long ago it was renewed is told by this
/// machine's own clock alone. A holder whose lease reaches beyond its deadline renews no more and is alive all the same.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  leaseholdctl show orders:17 --table locks
  leaseholdctl show orders:17 --table locks --watch-for 60s
  leaseholdctl show orders:17 --table locks --once --json

{STATUS}
A malformed or foreign row is a problem; a free or absent one is none."))]
pub(crate) struct Show {
    /// The key, without its namespace.
    #[arg(value_name = "KEY")]
    key: String,

    /// Look once and don't wait for a renewal.
    #[arg(long)]
    once: bool,

    /// Watch for a renewal this long; a third of the lease and a little more, at most 15s, unless given.
    #[arg(long, value_name = "TIME", value_parser = crate::options::duration, conflicts_with = "once")]
    watch_for: Option<Duration>,

    #[command(flatten)]
    pub(crate) table: TableOptions,
}

/// What became of a held row while it was watched.
struct Observed {
    watched: Duration,
    came: Came,
}

enum Came {
    /// Its version changed between two looks this far from the end.
    Renewed {
        within: Duration,
    },
    Unchanged,
    /// Somebody else's, or nobody's.
    Passed(Box<FoundRow>),
}

impl Show {
    pub(crate) async fn run(&self, json: bool) -> Result<Ended, Stop> {
        let (chosen, store, _) = self.table.open().await?;
        let key = chosen.key_of_lock(&self.key)?;
        let first = asking::look(&store, &chosen.table, &key).await?;
        let observed = match &first.found.row {
            Row::Held(held) if !self.once => {
                let longest = self.watch_for.unwrap_or_else(|| renewal_due(held).min(LONGEST));
                Some(observe(&store, &chosen, &key, held, longest).await?)
            }
            _ => None,
        };
        if json {
            let mut told = lock::json(&first.found, first.date);
            if let Some(object) = told.as_object_mut() {
                object.insert("table".to_owned(), json!(chosen.table.name));
                object.insert("observed".to_owned(), observed.map_or(Value::Null, |observed| observed.json()));
                if matches!(first.found.row, Row::Unusable(_)) {
                    let attributes: serde_json::Map<_, _> = lock::attributes(&first.found.attributes)
                        .into_iter()
                        .map(|(name, value)| (name, json!(value)))
                        .collect();
                    object.insert("attributes".to_owned(), json!(attributes));
                }
            }
            output::document(&told)?;
        } else {
            self.tell(&chosen, &key, &first, observed.as_ref())?;
        }
        Ok(if matches!(first.found.row, Row::Unusable(_)) { Ended::Problem } else { Ended::Fine })
    }

    fn tell(&self, chosen: &Chosen, key: &str, look: &Look, observed: Option<&Observed>) -> Result<(), Stop> {
        output::line(&format!(
            "{} in table {} ({})",
            shown_key(key, usize::MAX),
            safe(&chosen.table.name),
            chosen.format
        ))?;
        let field = |name: &str, told: &str| output::line(&format!("  {name:<11} {told}"));
        match &look.found.row {
            Row::Absent if chosen.format.abilities().release_deletes => {
                field("free", "there is no row: nobody holds it")?
            }
            Row::Absent => {
                field("free", "there is no row: it was never locked, or was swept a week after its last use")?
            }
            Row::Free { version, .. } => {
                field("free", "nobody holds it")?;
                field("version", &format!("{version}: no token so far was higher, the next one will be"))?;
            }
            Row::Held(held) => {
                self.tell_held(held, look)?;
                if let Some(observed) = observed {
                    field("renewed", &observed.told(held))?;
                }
                // A version that is past by now frees nothing.
                if observed.is_none_or(|observed| matches!(observed.came, Came::Unchanged)) {
                    let free = format!(
                        "leaseholdctl free {} --if-version {} {}",
                        quoted(&self.key),
                        held.version,
                        chosen.as_options()
                    );
                    field("to free it", &safe(&free))?;
                }
            }
            Row::Unusable(unusable) => {
                field(lock::state(&look.found.row), &safe(&unusable.to_string()))?;
                for (name, value) in lock::attributes(&look.found.attributes) {
                    field("", &format!("{name}  {value}"))?;
                }
            }
        }
        Ok(())
    }

    fn tell_held(&self, held: &HeldRow, look: &Look) -> Result<(), Stop> {
        let field = |name: &str, told: &str| output::line(&format!("  {name:<11} {told}"));
        match &held.holder {
            Some(holder) => {
                field("held by", &format!("{} (version {})", cut(&holder.function, 160), cut(&holder.version, 80)))?;
                field("invocation", &cut(&holder.request_id, 160))?;
                field("template", &cut(&holder.template, 160))?;
                if !holder.note.is_empty() {
                    field("note", &cut(&holder.note, 160))?;
                }
                if let Some(at) = holder.acquired_at {
                    let ago = lock::age(&look.found.row, look.date)
                        .map_or_else(String::new, |age| format!(", {} ago if the holder's clock is right", span(age)));
                    field("acquired", &format!("{}{ago}", moment(at)))?;
                }
            }
            None => field("held by", "the row does not say by whom")?,
        }
        if lock::is_parked(held) {
            field(
                "parked",
                &format!("its work is done; `hold_at_least` keeps the key, for at most {}", span(held.lease)),
            )?;
        } else {
            field("lease", &format!("{}, a renewal is due every {}", span(held.lease), span(held.lease / 3)))?;
        }
        if let Some(at) = held.expires_at {
            field("ends", &format!("{} by DynamoDB's clock, unless it is renewed", moment(at.as_millis())))?;
        }
        field("version", &held.version.to_string())?;
        field("owner", &held.owner.to_string())?;
        Ok(())
    }
}

/// When a renewal should have been seen: one is due every third of the lease, and a failed one is sent again soon.
fn renewal_due(held: &HeldRow) -> Duration {
    held.lease / 3 + held.lease / 12 + Duration::from_secs(1)
}

async fn observe(
    store: &DynamoDb,
    chosen: &Chosen,
    key: &str,
    first: &HeldRow,
    longest: Duration,
) -> Result<Observed, Stop> {
    let begun = Instant::now();
    let mut progress = Progress::new();
    loop {
        let since_unchanged = Instant::now();
        sleep(EVERY.min(longest.saturating_sub(begun.elapsed()))).await;
        let seen = asking::look(store, &chosen.table, key).await?.found;
        let watched = begun.elapsed();
        match &seen.row {
            Row::Held(held) if held.owner == first.owner && held.version == first.version => {
                if watched >= longest {
                    return Ok(Observed { watched, came: Came::Unchanged });
                }
                progress.tell(&format!("waiting for a renewal, for {} of {}", span(watched), span(longest)));
            }
            Row::Held(held) if held.owner == first.owner => {
                return Ok(Observed { watched, came: Came::Renewed { within: since_unchanged.elapsed() } });
            }
            _ => return Ok(Observed { watched, came: Came::Passed(Box::new(seen)) }),
        }
    }
}

impl Observed {
    fn told(&self, held: &HeldRow) -> String {
        let watched = span(self.watched);
        match &self.came {
            Came::Renewed { within } => {
                format!("yes, at most {} ago: its version changed while it was watched, for {watched}", span(*within))
            }
            Came::Unchanged if lock::is_parked(held) => "no, and it will not be: nobody holds it any more".to_owned(),
            Came::Unchanged if self.watched < renewal_due(held) => {
                format!("not in the {watched} that it was watched; one is due every {}", span(held.lease / 3))
            }
            Came::Unchanged => format!(
                "not in the {watched} that it was watched, though one is due every {}: its holder is gone or frozen, or its \
                 deadline comes before the lease's end; who wants the key takes it over once the lease is over",
                span(held.lease / 3)
            ),
            Came::Passed(now) => match &now.row {
                Row::Held(next) => {
                    let holder = next
                        .holder
                        .as_ref()
                        .map_or("another holder".to_owned(), |holder| cut(&holder.to_string(), 160));
                    format!("no: it went to {holder} within {watched}")
                }
                _ => format!("no: it was given back within {watched}"),
            },
        }
    }

    fn json(&self) -> Value {
        let (came, within) = match &self.came {
            Came::Renewed { within } => ("renewed", Some(millis(*within))),
            Came::Unchanged => ("unchanged", None),
            Came::Passed(now) if matches!(now.row, Row::Held(_)) => ("handed_on", None),
            Came::Passed(_) => ("given_back", None),
        };
        json!({ "came": came, "watched_ms": millis(self.watched), "renewed_within_ms": within })
    }
}
