//! How far a model goes: who takes part, with which clocks, for how long, and what may go wrong how often.

use std::fmt;

use crate::protocol::Hints;
use crate::protocol::simulation::clock::{DAY, FASTEST, Freeze, Micros, PPM, SECOND, SLOWEST};

/// An environment's clocks, and what DynamoDB's answers tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// What it is called in a trace.
    pub name: &'static str,
    /// How fast its monotonic clock runs, in millionths.
    pub(super) mono: u64,
    /// How fast its wall clock runs, in millionths.
    pub(super) wall: u64,
    /// How far its wall clock is ahead of true time, in microseconds.
    pub(super) ahead: i64,
    /// How far the clock of the front end it talks to is ahead, in microseconds.
    pub(super) skew: i64,
    /// Whether its answers carry a `Date` that serves.
    pub(super) dated: bool,
    /// Whether its contenders and holders use server time.
    pub(super) server_time: bool,
}

impl Kind {
    /// Right clocks, no server time.
    pub(super) const RIGHT: Self =
        Self { name: "right", mono: PPM, wall: PPM, ahead: 0, skew: 0, dated: false, server_time: false };
    /// The slowest clocks that may be: who has them believes the longest.
    pub(super) const SLOW: Self = Self { name: "slow", mono: SLOWEST, wall: SLOWEST, ..Self::RIGHT };
    /// The fastest clocks that may be: who has them takes over the soonest.
    pub(super) const FAST: Self = Self { name: "fast", mono: FASTEST, wall: FASTEST, ..Self::RIGHT };
    /// Right clocks and server time.
    pub(super) const DATED: Self = Self { name: "dated", dated: true, server_time: true, ..Self::RIGHT };
}

/// Room for one environment at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// How many sessions there are, one after another.
    pub sessions: u8,
    /// How many of them at once.
    pub lanes: u8,
    /// The environments that it may be.
    pub kinds: Vec<Kind>,
}

/// One thing that may go wrong. Each time costs one of the faults that a model has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A request is not carried out and answered at once: anything from there to a write that lands after its timeout,
    /// an answer that never comes or comes when nobody waits for it.
    Slow,
    /// The connection breaks: the request failed, and may be carried out all the same.
    Broken,
    /// The service turns a request away.
    Throttled,
    /// An answer has no `Date` that serves.
    Dateless,
    /// Nothing that an environment sends arrives any more, until that ends.
    Cut,
    /// An environment stands still for one of the bounds' lengths, and its clocks do so.
    Freeze(Freeze),
    /// A wall clock is set forward, or back, by one of the bounds' sizes.
    Step,
    /// An environment vanishes without a word.
    Vanish,
    /// A handler dies, and its row is to end by itself.
    Abandon,
    /// Who asked for a lease no longer wants it.
    Cancel,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slow => f.write_str("slow, late or lost request or answer"),
            Self::Broken => f.write_str("broken connection"),
            Self::Throttled => f.write_str("throttling"),
            Self::Dateless => f.write_str("answer without Date"),
            Self::Cut => f.write_str("cut off"),
            Self::Freeze(how) => write!(f, "freeze ({how:?})"),
            Self::Step => f.write_str("wall clock step"),
            Self::Vanish => f.write_str("environment vanishes"),
            Self::Abandon => f.write_str("handler dies, row left"),
            Self::Cancel => f.write_str("cancel"),
        }
    }
}

/// Who takes part, for how long, and what may go wrong how often. Times are true microseconds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Where the environments are. Neighbours that are alike begin in their order: which is which makes no difference.
    pub places: Vec<Place>,
    /// The length of every lease.
    pub(super) lease: Micros,
    /// How long a contender waits.
    pub(super) wait: Micros,
    /// After which time a grant no longer counts.
    pub(super) latest: Option<Micros>,
    /// How long after its beginning a session's holder renews.
    pub(super) hold: Micros,
    /// For how long after its acquisition a key stays held where a handler comes to its end; `None` frees it.
    pub(super) minimum: Option<Micros>,
    /// When the run begins, within a second.
    pub(super) begins: Micros,
    /// How many faults there are.
    pub faults: u8,
    /// What they may be.
    pub kinds: Vec<Fault>,
    /// How long freezes may be.
    pub(super) frozen_for: Vec<Micros>,
    /// By how much wall clocks may be stepped.
    pub(super) steps: Vec<i64>,
    /// How often there may be nobody until the free row's `ttl` is over.
    pub(super) quiet: u8,
    /// With tickets, what the row says for those who wait when the run begins; `None` where they wait by the clock.
    pub(super) hints: Option<Hints>,
    /// Moments at which things may happen although nothing is due: every multiple of this.
    pub grain: Option<Micros>,
}

impl Bounds {
    /// Contenders that come once each, right clocks, leases of six seconds, nothing goes wrong.
    pub(super) fn calm(contenders: usize) -> Self {
        let place = Place { sessions: 1, lanes: 1, kinds: vec![Kind::RIGHT] };
        Self {
            places: vec![place; contenders],
            lease: 6 * SECOND,
            wait: 7 * SECOND,
            latest: None,
            hold: 5 * SECOND,
            minimum: None,
            begins: 0,
            faults: 0,
            kinds: Vec::new(),
            frozen_for: Vec::new(),
            steps: Vec::new(),
            quiet: 0,
            hints: None,
            grain: None,
        }
    }

    /// For the one contender after everything.
    pub(super) fn recovery(lease: Micros) -> Self {
        Self { lease, hold: 0, ..Self::calm(0) }
    }

    /// Whether there is only that one.
    pub(super) const fn is_recovery(&self) -> bool {
        self.hold == 0
    }

    /// Whether a wall clock is wrong by more than a day.
    pub(super) fn has_wrong_clocks(&self) -> bool {
        self.places.iter().flat_map(|place| &place.kinds).any(|kind| kind.ahead.unsigned_abs() > DAY)
    }

    pub(super) fn allows(&self, fault: Fault) -> bool {
        self.kinds.contains(&fault)
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |micros: Micros| micros as f64 / 1e6;
        let sessions: u32 = self.places.iter().map(|place| u32::from(place.sessions)).sum();
        write!(f, "{} places, {sessions} sessions, leases of {} s", self.places.len(), seconds(self.lease))?;
        match self.faults {
            0 => f.write_str(", no faults")?,
            faults => {
                let kinds: Vec<String> = self.kinds.iter().map(Fault::to_string).collect();
                write!(f, ", up to {faults} of these faults: {}", kinds.join("; "))?;
            }
        }
        self.grain.map_or(Ok(()), |grain| write!(f, ", every {} s", seconds(grain)))
    }
}
