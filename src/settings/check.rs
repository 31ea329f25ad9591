//! What does not fit together among settings that were read, or lies outside of what the protocol serves.

use std::time::Duration;

use super::choice::{KeeperChoice, Mode};
use super::duration;
use super::reading::too_long;
use super::resolved::Settings;
use crate::protocol::Format;

/// What a row says of its holder, and what lines can well hold.
const LONGEST_NOTE: usize = 1024;
/// DynamoDB's TTL counts whole seconds.
const SHORTEST_RETENTION: Duration = Duration::from_secs(1);
const SHORTEST_LEASE: Duration = Duration::from_millis(500);
const LONGEST_LEASE: Duration = Duration::from_secs(24 * 60 * 60);
/// What a row can be kept for: a ninth more than that is written as a lease.
const LONGEST_MINIMUM: Duration = Duration::from_secs(LONGEST_LEASE.as_secs() * 9 / 10);
/// What the session can say.
const SHORTEST_MINIMUM: Duration = Duration::from_millis(1);

/// What does not fit together, or lies outside of what the protocol serves.
pub(super) fn check(settings: &Settings, problems: &mut Vec<String>) {
    let lease = settings.lease_duration;
    if lease < SHORTEST_LEASE || lease > LONGEST_LEASE {
        problems.push(format!("`lease_duration` is {lease:?}: set {SHORTEST_LEASE:?} to 24h"));
    }
    if settings.max_hold.is_zero() {
        problems.push("`max_hold` is 0, so every lease would be lost at once: set how long work may take".to_owned());
    }
    if settings.max_silence.is_some_and(|silence| silence.as_millis() == 0) {
        problems.push(
            "`max_silence` is 0, so no lease would ever be renewed: set how long the work may go without a word"
                .to_owned(),
        );
    }
    for_people(settings, problems);
    if let Some(retention) = settings.state_retention
        && !(SHORTEST_RETENTION..=duration::LONGEST).contains(&retention)
    {
        problems.push(format!("`state_retention` is {retention:?}: set {SHORTEST_RETENTION:?} to ten years"));
    }
    if let (Some(margin), Some(reserve)) = (settings.end_before_deadline, settings.reserve)
        && margin >= reserve
    {
        problems.push(format!(
            "`end_before_deadline` is {margin:?} and `reserve` {reserve:?}: a handler that begins with its reserve left \
             would be ended at once; raise `reserve` or lower `end_before_deadline`"
        ));
    }
    if settings.keeper == KeeperChoice::InProcess && !cfg!(feature = "in-process") && settings.mode != Mode::Off {
        problems.push("the keeper is to run in-process: build `leasehold` with the feature `in-process`".to_owned());
    }
}

/// What people are told by the row, and what a row has no place for.
fn for_people(settings: &Settings, problems: &mut Vec<String>) {
    problems.extend(settings.table.misplaced(&settings.attributes).map(|problem| format!("`attribute`: {problem}")));
    problems.extend(too_long("`holder_note`", &settings.holder_note, LONGEST_NOTE));
    let Ok(format) = settings.table.format.parse::<Format>() else { return };
    let told = [
        ("attribute", format.abilities().notes || settings.attributes.is_empty()),
        ("holder_note", format.abilities().notes || settings.holder_note.is_empty()),
        ("state_retention", format.abilities().state || settings.state_retention.is_none()),
    ];
    for (setting, _) in told.into_iter().filter(|(_, fits)| !fits) {
        problems.push(format!("`{setting}` is set, and the row format `{format}` has no place for it: leave it out"));
    }
}

pub(super) fn check_minimum(settings: &Settings, per_record: bool, problems: &mut Vec<String>) {
    let Some(minimum) = settings.hold_at_least else { return };
    if minimum < SHORTEST_MINIMUM || minimum > LONGEST_MINIMUM {
        problems.push(format!("`hold_at_least` is {minimum:?}: set {SHORTEST_MINIMUM:?} to 21h 36min, or take it out"));
    }
    if per_record {
        problems.push(
            "`hold_at_least` is set for a layer that locks single records: the next record of a key would find it busy; take it out, or lock the whole batch"
                .to_owned(),
        );
    }
}
