//! A machine's verdict as a line of the session.

use std::time::Duration;

use crate::protocol::{Busy, Failure, FailureKind, HolderInfo, Unusable, Verdict};
use crate::session::{FailKind, FromKeeper};

/// Other programs write the rows that these texts come from; a line has to hold them all.
const LONGEST_TEXT: usize = 2048;

/// The line that tells a verdict about a row of this table.
pub(super) fn verdict(id: u64, verdict: Verdict, table: &str) -> FromKeeper {
    match verdict {
        Verdict::Busy(busy) => self::busy(id, busy),
        Verdict::Failed(failure) => self::failure(id, &failure),
        Verdict::Unusable(unusable) => self::unusable(id, &unusable, table),
        Verdict::TooLate => {
            let message = "no lease was there by the latest moment at which the work could have begun; what comes after it is freed";
            failed(id, FailKind::TooLate, message)
        }
        Verdict::Cancelled => failed(id, FailKind::Cancelled, "the acquisition was cancelled"),
    }
}

/// The line that tells of a row in this table that is not ours to touch.
pub(super) fn unusable(id: u64, unusable: &Unusable, table: &str) -> FromKeeper {
    let kind = match unusable {
        Unusable::Foreign { .. } => FailKind::ForeignRow,
        Unusable::Malformed { .. } => FailKind::MalformedRow,
    };
    failed(id, kind, format!("in table `{table}` {unusable}"))
}

/// The line that tells a store's failure.
pub(super) fn failure(id: u64, failure: &Failure) -> FromKeeper {
    failed(id, kind(failure.kind), failure.to_string())
}

/// The line that tells any failure.
pub(super) fn failed(id: u64, kind: FailKind, message: impl Into<String>) -> FromKeeper {
    FromKeeper::Failed { id, kind, message: cut(message.into()) }
}

fn busy(id: u64, busy: Busy) -> FromKeeper {
    FromKeeper::Busy {
        id,
        holder: busy.holder.map(|holder| cut_holder(*holder)),
        waited_ms: millis(busy.waited),
        attempts: busy.attempts,
        retry_after_ms: millis_up(busy.retry_after),
    }
}

pub(super) const fn kind(kind: FailureKind) -> FailKind {
    match kind {
        FailureKind::Throttled => FailKind::Throttled,
        FailureKind::TransactionConflict => FailKind::TransactionConflict,
        FailureKind::Server => FailKind::Server,
        FailureKind::Timeout => FailKind::Timeout,
        FailureKind::Connection => FailKind::Connection,
        FailureKind::MissingTable => FailKind::MissingTable,
        FailureKind::WrongKeySchema => FailKind::WrongKeySchema,
        FailureKind::AccessDenied => FailKind::AccessDenied,
        // What is out of date is a credential's use; the message names the clock.
        FailureKind::Credentials | FailureKind::Clock => FailKind::Credentials,
        FailureKind::MalformedRow | FailureKind::BrokenVersion => FailKind::MalformedRow,
        FailureKind::Rejected => FailKind::Rejected,
    }
}

/// Whole milliseconds, rounded down.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Whole milliseconds, rounded up: who tries again after this does not come too early.
pub(super) fn millis_up(duration: Duration) -> u64 {
    millis(duration.saturating_add(Duration::from_nanos(999_999)))
}

/// The text, cut where it is too long for a line.
pub(super) fn cut(mut text: String) -> String {
    if text.len() > LONGEST_TEXT {
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
        text.push('…');
    }
    text
}

/// What people are told, cut to what a line and a row can well hold.
pub(super) fn cut_holder(holder: HolderInfo) -> HolderInfo {
    HolderInfo {
        function: cut(holder.function),
        version: cut(holder.version),
        request_id: cut(holder.request_id),
        template: cut(holder.template),
        note: cut(holder.note),
        acquired_at: holder.acquired_at,
        parked: holder.parked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Format;
    use crate::session::encode;

    #[test]
    fn a_busy_line_fits_whatever_the_row_says() {
        // Every character of it is escaped to six bytes.
        let text = "\u{1}".repeat(100_000);
        let holder = HolderInfo {
            function: text.clone(),
            version: text.clone(),
            request_id: text,
            template: "é".repeat(100_000),
            note: String::new(),
            acquired_at: Some(u64::MAX),
            parked: true,
        };
        let busy = Busy {
            holder: Some(Box::new(holder)),
            waited: Duration::MAX / 2,
            attempts: 3,
            retry_after: Duration::from_micros(1),
        };
        let line = verdict(7, Verdict::Busy(busy), "locks");
        assert!(matches!(line, FromKeeper::Busy { id: 7, attempts: 3, retry_after_ms: 1, .. }));
        encode(&line).unwrap();
    }

    #[test]
    fn foreign_and_malformed_rows_are_told_apart() {
        let kind_of = |unusable| match verdict(1, Verdict::Unusable(unusable), "locks") {
            FromKeeper::Failed { kind, .. } => kind,
            line => panic!("{line:?}"),
        };
        assert_eq!(kind_of(Unusable::Foreign { expected: Format::default(), format: None }), FailKind::ForeignRow);
        let malformed = Unusable::Malformed { attribute: "version".to_owned(), found: "is a string".to_owned() };
        assert_eq!(kind_of(malformed), FailKind::MalformedRow);
    }
}
