//! The settings that are one of a few words, and how each is spelled in the environment.

use crate::session::OnCrash;

/// A setting that the environment spells as one of a few words.
pub(super) trait Choice: Copy + Sized + 'static {
    /// Each value and its spelling.
    const SPELLINGS: &'static [(&'static str, Self)];

    /// Reads a value, or tells which there are.
    fn parse(text: &str) -> Result<Self, String> {
        Self::SPELLINGS.iter().find(|(spelling, _)| *spelling == text).map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<_> = Self::SPELLINGS.iter().map(|(spelling, _)| format!("`{spelling}`")).collect();
            format!("{text:?} is not known: write {}", words.join(" or "))
        })
    }
}

macro_rules! choice {
    (
        $(#[$doc:meta])*
        pub enum $name:ident {
            $($(#[$variant_doc:meta])* $variant:ident = $spelling:literal,)+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl Choice for $name {
            const SPELLINGS: &'static [(&'static str, Self)] = &[$(($spelling, Self::$variant)),+];
        }
    };
}

choice! {
    /// What a layer does with what it finds out; set by `LEASEHOLD_MODE` only.
    pub enum Mode {
        /// The handler runs with the lease or not at all. `enforce`
        #[default]
        Enforce = "enforce",
        /// Leases are taken, renewed and freed in the background, and what would have been waited for or refused is
        /// counted and logged; no invocation is delayed or refused. `observe`
        Observe = "observe",
        /// The layer does nothing at all. `off`
        Off = "off",
    }
}

choice! {
    /// What happens to a handler whose lease is lost.
    pub enum OnLoss {
        /// Its future is dropped and the invocation fails with `LeaseLost`. `cancel`
        #[default]
        Cancel = "cancel",
        /// It goes on: `Lease::lost` and `Lease::ensure_held` tell it, and its answer stands. `signal`
        Signal = "signal",
    }
}

choice! {
    /// When the row is freed.
    pub enum Release {
        /// Behind the response, before the environment can freeze: the caller does not wait for it. `after`
        #[default]
        AfterResponse = "after",
        /// Before the response: whoever has the answer finds the key free. `before`
        BeforeResponse = "before",
    }
}

choice! {
    /// What happens to an event that has no value at a path of the key template.
    pub enum MissingPath {
        /// It is refused with `KeyNotFound`. `error`
        #[default]
        Error = "error",
        /// The handler runs without a lock. `unlocked`
        RunUnlocked = "unlocked",
    }
}

choice! {
    /// What happens when DynamoDB throttles, fails or can't be reached throughout the budget.
    ///
    /// A missing table, permission or credential is an error in any case: it would not get better.
    pub enum OnUnavailable {
        /// The invocation fails with `StoreThrottled` or `StoreUnavailable`. `fail`
        #[default]
        Fail = "fail",
        /// The handler runs without a lock. `unlocked`
        RunUnlocked = "unlocked",
    }
}

choice! {
    /// Where the keeper lives.
    ///
    /// On Lambda itself the default is the extension, so that a lost layer is noticed; elsewhere it is `auto`. Lambda
    /// itself is where `AWS_LAMBDA_INITIALIZATION_TYPE` is set: Lambda and the emulators that run extensions set it,
    /// `cargo lambda watch` does not.
    pub enum KeeperChoice {
        /// The extension: a process of its own. `extension`
        Extension = "extension",
        /// A thread of this process; needs the feature `in-process`. `in-process`
        InProcess = "in-process",
        /// The extension where one answers, else a thread of this process. `auto`
        #[default]
        Auto = "auto",
    }
}

choice! {
    /// Which of what a keeper counts become metrics; set by `LEASEHOLD_METRICS` only.
    pub enum MetricLines {
        /// No lines are written. `off`
        Off = "off",
        /// The few that alarms and a dashboard need; the rest are properties of the same lines. `on`
        #[default]
        On = "on",
        /// All of them. `full`
        Full = "full",
    }
}

impl MetricLines {
    /// Reads the variable's value.
    ///
    /// # Errors
    ///
    /// With what may be written, when it is none.
    pub fn read(text: &str) -> Result<Self, String> {
        Self::parse(text)
    }
}

impl Choice for OnCrash {
    const SPELLINGS: &'static [(&'static str, Self)] = &[("release", Self::Release), ("expire", Self::Expire)];
}

/// A switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Switch(pub(super) bool);

impl Choice for Switch {
    const SPELLINGS: &'static [(&'static str, Self)] =
        &[("true", Self(true)), ("false", Self(false)), ("1", Self(true)), ("0", Self(false))];
}
