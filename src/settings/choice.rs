//! The settings that are one of a few words, and how each is spelled in the environment.

use crate::session::OnCrash;

/// A setting that the environment spells as one of a few words.
pub(super) trait Choice: Copy + Sized + 'static {
    /// How each value is spelled.
    const SPELLINGS: &'static [&'static str];

    /// The values, in the order of their spellings.
    const VALUES: &'static [Self];

    /// Reads a value, or tells which there are.
    fn parse(text: &str) -> Result<Self, String> {
        let at = position(text, Self::SPELLINGS)?;
        Self::VALUES.get(at).copied().ok_or_else(|| unknown(text, Self::SPELLINGS))
    }
}

/// Which of the spellings it is. Apart from the trait, so that it is compiled once and not for each setting.
#[inline(never)]
fn position(text: &str, spellings: &[&str]) -> Result<usize, String> {
    spellings.iter().position(|spelling| *spelling == text).ok_or_else(|| unknown(text, spellings))
}

#[cold]
fn unknown(text: &str, spellings: &[&str]) -> String {
    let words: Vec<_> = spellings.iter().map(|spelling| format!("`{spelling}`")).collect();
    format!("{text:?} is not known: write {}", words.join(" or "))
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
            const SPELLINGS: &'static [&'static str] = &[$($spelling),+];
            const VALUES: &'static [Self] = &[$(Self::$variant),+];
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
    const SPELLINGS: &'static [&'static str] = &["release", "expire"];
    const VALUES: &'static [Self] = &[Self::Release, Self::Expire];
}

/// A switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Switch(pub(super) bool);

impl Choice for Switch {
    const SPELLINGS: &'static [&'static str] = &["true", "false", "1", "0"];
    const VALUES: &'static [Self] = &[Self(true), Self(false), Self(true), Self(false)];
}
