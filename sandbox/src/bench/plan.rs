//! What to measure, and how thoroughly.

use std::{fmt, str::FromStr, time::Duration};

/// A part of the bench, by itself to be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// Requests and time of an invocation that nobody is in the way of, and `ensure_held` in it.
    Invocation,
    /// The layer's and the session's own cost, without DynamoDB.
    Own,
    /// From a handler's end by force to the next holder's grant.
    Endings,
    /// From an environment's end to the grant in a fresh one.
    Vanished,
    /// Renewals in long holds, in virtual time.
    Renewals,
    /// Memory and processor time of an extension with many leases.
    Leases,
    /// Many who want one key.
    Contention,
    /// What the sandbox itself adds to all of these.
    Sandbox,
}

impl Section {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 8] = [
        Self::Invocation,
        Self::Own,
        Self::Endings,
        Self::Vanished,
        Self::Renewals,
        Self::Leases,
        Self::Contention,
        Self::Sandbox,
    ];

    /// Its name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Invocation => "invocation",
            Self::Own => "own",
            Self::Endings => "endings",
            Self::Vanished => "vanished",
            Self::Renewals => "renewals",
            Self::Leases => "leases",
            Self::Contention => "contention",
            Self::Sandbox => "sandbox",
        }
    }

    /// What the table says above its rows.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Invocation => "An uncontended invocation",
            Self::Own => "Without DynamoDB",
            Self::Endings => "A handler's end by force",
            Self::Vanished => "An environment that vanished whole",
            Self::Renewals => "Long holds, in virtual time",
            Self::Leases => "An extension with many leases",
            Self::Contention => "Contention for one key",
            Self::Sandbox => "The sandbox's own share",
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Section {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|section| section.name() == text);
        found.ok_or_else(|| {
            format!("there is no section {text:?}; take some of {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

/// How contenders wait for a key that is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Polling {
    /// By a ticket's place in the queue, as the library does where nothing is set.
    #[default]
    Tickets,
    /// A delay that doubles, with jitter.
    Backoff,
}

impl Polling {
    /// Its name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tickets => "tickets",
            Self::Backoff => "backoff",
        }
    }

    /// The delays that ask for it in a session's `acquire`, where it is not what a keeper does anyway.
    pub(super) fn delays(self) -> Option<serde_json::Value> {
        (self == Self::Backoff).then(|| serde_json::json!({ "first": 50, "max": 500 }))
    }
}

/// What a bench does.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What is measured.
    pub sections: Vec<Section>,
    /// What is drawn is drawn from this.
    pub seed: u64,
    /// Few repetitions, short leases: to see that it works.
    pub quick: bool,
    /// How much later each request reaches DynamoDB.
    pub latency: Duration,
    /// How many contend for one key, one run each.
    pub contenders: Vec<usize>,
    /// How they wait.
    pub polling: Polling,
}

impl Plan {
    /// A number of repetitions, or that for a quick run.
    pub(super) const fn times(&self, usual: usize, quick: usize) -> usize {
        if self.quick { quick } else { usual }
    }
}
