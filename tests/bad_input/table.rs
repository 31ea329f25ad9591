//! A row of the table, and the comparison of what a row says with what was seen.

use std::fmt::{self, Debug};

/// In what way an input is bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Empty,
    Truncated,
    Oversized,
    WrongType,
    WrongVersion,
    /// Bytes that are not UTF-8, or what stands for them where only text can come in.
    NotUtf8,
    Other,
}

impl Kind {
    /// Those that each place must have a row for.
    const EVERYWHERE: [Self; 6] =
        [Self::Empty, Self::Truncated, Self::Oversized, Self::WrongType, Self::WrongVersion, Self::NotUtf8];
}

/// Bytes, told in a way that people can read.
#[derive(Clone)]
pub struct Bytes(pub Vec<u8>);

impl Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// One row.
#[derive(Debug)]
pub struct Case<I> {
    pub kind: Kind,
    pub input: I,
    /// The error's stable name.
    pub error: &'static str,
    /// What its message contains.
    pub says: &'static str,
    /// How many requests were sent; each place tells to whom.
    pub requests: usize,
}

pub const fn case<I>(kind: Kind, input: I, error: &'static str, says: &'static str, requests: usize) -> Case<I> {
    Case { kind, input, error, says, requests }
}

/// However long what came in is, what is said about it can be read.
const LONGEST_MESSAGE: usize = 4_096;

/// What came of an input.
#[derive(Debug)]
pub struct Seen {
    pub error: String,
    pub message: String,
    pub requests: usize,
}

/// Runs every row of a place and tells all that are not as they say.
pub async fn check<I: Debug>(place: &str, cases: Vec<Case<I>>, run: impl AsyncFn(I) -> Seen) {
    for kind in Kind::EVERYWHERE {
        assert!(cases.iter().any(|case| case.kind == kind), "{place} has no row for {kind:?}");
    }
    let mut wrong = Vec::new();
    for Case { kind, input, error, says, requests } in cases {
        let mut shown = format!("{input:?}");
        shown.truncate(shown.floor_char_boundary(200));
        let seen = run(input).await;
        let fits = seen.error == error && seen.message.contains(says) && seen.requests == requests;
        if !fits || seen.message.len() > LONGEST_MESSAGE {
            let mut seen = format!("{seen:?}");
            seen.truncate(seen.floor_char_boundary(LONGEST_MESSAGE));
            wrong.push(format!(
                "{place}, {kind:?}, {shown}\n  expected: {error}, {requests} requests, {says:?}\n  seen: {seen}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
