//! What a seed's world is like: each profile makes one kind of hazard likely, so that rare ones are met often.

use super::clock::{DAY, Drift, HOUR, MS, Micros, SECOND};
use super::random::Random;

/// How often things happen. Chances are per mille: of a request, or of a session.
#[derive(Clone, Debug)]
pub(super) struct Weather {
    pub(super) profile: &'static str,
    pub(super) keys: u64,
    pub(super) keepers: u64,
    /// How many sessions a keeper has one after another, and how many at once.
    pub(super) sessions: u64,
    pub(super) lanes: u64,
    pub(super) lease: (Micros, Micros),
    /// How long handlers work, in tenths of their lease.
    pub(super) hold: (u64, u64),
    /// The longest pause between two sessions.
    pub(super) gap: Micros,
    pub(super) drift: Drift,
    /// How far wall clocks are ahead or behind at most, and how far they are stepped.
    pub(super) wall: (Micros, Micros),
    pub(super) step_size: Micros,
    /// Wall clocks that are behind, of those that are off.
    pub(super) behind: u32,
    /// Keepers that use server time.
    pub(super) server_time: u32,
    /// Whether the service's front ends disagree about the time, by up to a second.
    pub(super) skew: bool,

    pub(super) latency: (Micros, Micros),
    pub(super) latest_write: Micros,
    pub(super) lost: u32,
    pub(super) late: u32,
    pub(super) answer_lost: u32,
    pub(super) answer_late: u32,
    pub(super) refused: u32,
    pub(super) server_error: u32,
    pub(super) broken: u32,
    /// Answers whose `Date` does not serve, and sessions that have no other.
    pub(super) no_date: u32,
    pub(super) dateless: u32,
    /// Attempts that seem to fail at once and get through later.
    pub(super) stray: u32,

    pub(super) cut: u32,
    pub(super) freeze: u32,
    pub(super) freeze_between: u32,
    /// How long an environment is frozen between sessions.
    pub(super) frozen_for: (Micros, Micros),
    pub(super) step: u32,
    pub(super) vanish: u32,
    pub(super) abandon: u32,
    /// Handlers whose key is to stay held for a while after their acquisition.
    pub(super) park: u32,
    pub(super) cancel: u32,
    pub(super) sweep: u32,
    /// A time in which nobody works, long enough for free rows to be swept.
    pub(super) quiet: bool,
}

impl Weather {
    /// A fine day: nothing goes wrong.
    fn calm(random: &mut Random) -> Self {
        Self {
            profile: "calm",
            keys: random.between(1, 2),
            keepers: random.between(2, 4),
            sessions: random.between(2, 4),
            lanes: 1,
            lease: (500 * MS, 4 * SECOND),
            hold: (0, 25),
            gap: 2 * SECOND,
            drift: Drift::Some,
            wall: (0, 2 * SECOND),
            step_size: 0,
            behind: 500,
            server_time: 700,
            skew: false,
            latency: (MS, 20 * MS),
            latest_write: 0,
            lost: 0,
            late: 0,
            answer_lost: 0,
            answer_late: 0,
            refused: 0,
            server_error: 0,
            broken: 0,
            no_date: 0,
            dateless: 0,
            stray: 0,
            cut: 0,
            freeze: 0,
            freeze_between: 0,
            frozen_for: (10 * MS, 120 * SECOND),
            step: 0,
            vanish: 0,
            abandon: 0,
            park: 150,
            cancel: 0,
            sweep: 0,
            quiet: false,
        }
    }

    /// A day on which a little of everything goes wrong.
    fn mixed(random: &mut Random) -> Self {
        Self {
            profile: "mixed",
            drift: random.pick(&[Drift::Some, Drift::Extreme]),
            wall: (0, random.pick(&[50 * MS, 10 * SECOND, 6 * HOUR])),
            step_size: 6 * HOUR,
            server_time: random.pick(&[0, 500, 1000, 1000]),
            skew: random.chance(500),
            latest_write: 60 * SECOND,
            lost: 15,
            late: 15,
            answer_lost: 15,
            answer_late: 15,
            refused: 15,
            server_error: 10,
            broken: 10,
            no_date: random.pick(&[0, 0, 50]),
            cut: 200,
            freeze: 100,
            freeze_between: 150,
            step: 100,
            vanish: 80,
            abandon: 60,
            cancel: 100,
            ..Self::calm(random)
        }
    }

    pub(super) fn of(seed: u64, random: &mut Random) -> Self {
        let mixed = Self::mixed(random);
        match seed % 14 {
            0 => Self::calm(random),
            1 => Self { profile: "lossy network", lost: 80, answer_lost: 80, broken: 60, server_error: 60, ..mixed },
            2 => Self {
                profile: "late writes",
                late: 150,
                answer_late: 80,
                latest_write: random.pick(&[5 * SECOND, 20 * SECOND, 90 * SECOND]),
                hold: (0, 60),
                ..mixed
            },
            3 => Self {
                profile: "attempts gone astray",
                stray: 500,
                latest_write: random.pick(&[2 * SECOND, 20 * SECOND, 40 * SECOND]),
                lease: (500 * MS, 3 * SECOND),
                hold: (20, 150),
                keys: 1,
                keepers: random.between(3, 4),
                server_time: 1000,
                cut: 50,
                ..mixed
            },
            4 => Self {
                profile: "cut off, clocks at their limits",
                cut: 900,
                drift: Drift::Extreme,
                lease: (SECOND, 12 * SECOND),
                hold: (10, 40),
                server_time: random.pick(&[0, 0, 1000]),
                late: 60,
                ..mixed
            },
            5 => Self { profile: "freezes", freeze: 800, freeze_between: 500, hold: (5, 40), ..mixed },
            6 => Self {
                profile: "wall clock steps",
                step: 800,
                hold: (5, 30),
                step_size: random.pick(&[5 * SECOND, HOUR, 2 * DAY]),
                ..mixed
            },
            7 => Self { profile: "crashes", vanish: 350, abandon: 250, cancel: 250, ..mixed },
            8 => Self {
                profile: "many at once",
                lanes: random.between(2, 3),
                keepers: 2,
                keys: 1,
                late: 60,
                answer_lost: 60,
                latency: (MS, 150 * MS),
                ..mixed
            },
            9 => Self {
                profile: "sweeps, no dates",
                no_date: 500,
                sweep: 300,
                quiet: true,
                wall: (0, 20 * HOUR),
                step: 0,
                ..mixed
            },
            10 => Self {
                profile: "sweeps, wrong clocks",
                no_date: 0,
                sweep: 300,
                quiet: true,
                wall: (2 * HOUR, 40 * DAY),
                step_size: 20 * DAY,
                ..mixed
            },
            11 => Self {
                profile: "minima, clocks at their limits",
                park: 800,
                drift: Drift::Extreme,
                late: 60,
                answer_lost: 100,
                vanish: 200,
                step: 300,
                step_size: 10 * SECOND,
                hold: (1, 15),
                gap: SECOND,
                ..mixed
            },
            12 => Self {
                profile: "no dates, freezes between sessions",
                no_date: random.pick(&[0, 100, 1000]),
                dateless: 500,
                cut: 50,
                freeze_between: 700,
                frozen_for: (6 * SECOND, 20 * SECOND),
                freeze: 0,
                keys: 1,
                keepers: 4,
                sessions: 4,
                server_time: random.pick(&[700, 1000]),
                lease: (500 * MS, 3 * SECOND),
                hold: (5, 40),
                wall: (0, 200 * MS),
                ..mixed
            },
            _ => Self {
                profile: "margins of server time",
                drift: Drift::Extreme,
                skew: true,
                cut: 900,
                server_time: 1000,
                lease: (4 * SECOND, random.pick(&[24 * SECOND, 60 * SECOND])),
                hold: (9, 20),
                wall: (3 * SECOND, 20 * SECOND),
                behind: 900,
                keys: 1,
                freeze: 0,
                cancel: 0,
                vanish: 0,
                step: 0,
                gap: 10 * SECOND,
                ..mixed
            },
        }
    }
}
