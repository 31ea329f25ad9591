//! The names of our variables, and the one that a misspelt name may have meant.

/// Every variable that some part of `leasehold` reads.
pub(super) const NAMES: &[&str] = &[
    "LEASEHOLD_TABLE",
    "LEASEHOLD_KEY_ATTRIBUTE",
    "LEASEHOLD_SORT_KEY",
    "LEASEHOLD_FORMAT",
    "LEASEHOLD_NAMESPACE",
    "LEASEHOLD_HASHED_KEYS",
    "LEASEHOLD_KEY_SECRET",
    "LEASEHOLD_LEASE_DURATION",
    "LEASEHOLD_RESERVE",
    "LEASEHOLD_MAX_WAIT",
    "LEASEHOLD_POLLING",
    "LEASEHOLD_POLL_FIRST",
    "LEASEHOLD_POLL_MAX",
    "LEASEHOLD_RELEASE",
    "LEASEHOLD_ON_CRASH",
    "LEASEHOLD_MISSING_PATH",
    "LEASEHOLD_ON_LOSS",
    "LEASEHOLD_KEEP_FINISHED_RESPONSE",
    "LEASEHOLD_MODE",
    "LEASEHOLD_ON_UNAVAILABLE",
    "LEASEHOLD_SERVER_TIME",
    "LEASEHOLD_MAX_HOLD",
    "LEASEHOLD_MAX_SILENCE",
    "LEASEHOLD_END_BEFORE_DEADLINE",
    "LEASEHOLD_STATE_RETENTION",
    "LEASEHOLD_HOLD_AT_LEAST",
    "LEASEHOLD_KEEPER",
    "LEASEHOLD_SOCKET",
    "LEASEHOLD_STRICT",
    // Read by the extension, which shares the function's environment.
    "LEASEHOLD_LOG",
    "LEASEHOLD_METRICS",
];

/// Read by the local Lambda, for itself and for what it runs.
const FOREIGN_PREFIX: &str = "LEASEHOLD_SANDBOX_";

/// The more letters differ, the less a name was meant by another.
const FARTHEST: usize = 6;

/// What to say about a name of ours that nothing reads; `None` if something does.
pub(super) fn complaint(name: &str) -> Option<String> {
    if NAMES.contains(&name) || name.starts_with(FOREIGN_PREFIX) {
        return None;
    }
    let nearest = NAMES.iter().map(|known| (distance(name, known), known)).min();
    Some(match nearest {
        Some((steps, known)) if steps <= FARTHEST => format!("nothing reads {name}: did you mean {known}?"),
        _ => format!("nothing reads {name}: take it out"),
    })
}

/// How many letters have to be put in, left out or changed.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, to) in row.iter_mut().skip(1).zip(&b) {
            let changed = diagonal + usize::from(from != *to);
            diagonal = *cell;
            left = changed.min(*cell + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_the_number_of_letters_to_change() {
        for (a, b, steps) in [("", "", 0), ("a", "", 1), ("", "ab", 2), ("kitten", "sitting", 3), ("mode", "mdoe", 2)] {
            assert_eq!(distance(a, b), steps, "{a} {b}");
            assert_eq!(distance(b, a), steps, "{b} {a}");
        }
    }

    #[test]
    fn a_misspelt_name_is_told_the_nearest() {
        assert_eq!(complaint("LEASEHOLD_TABLE"), None);
        assert!(complaint("LEASEHOLD_TABEL").unwrap().contains("LEASEHOLD_TABLE?"));
        assert!(complaint("LEASEHOLD_MAXWAIT").unwrap().contains("LEASEHOLD_MAX_WAIT?"));
        assert!(complaint("LEASEHOLD_QUITE_ANOTHER_THING").unwrap().contains("take it out"));
    }
}
