//! Many who want one key: keepers of their own, in this process, each with a store and connections of its own.
//!
//! They share this process's executor, two threads; what they share beyond it is DynamoDB and the proxy. In the course with
//! one keeper they share that as well.
//!
//! | file | what it is for |
//! |---|---|
//! | `course` | who comes when, and who is killed |
//! | `contender` | one of them |
//! | `figures` | what it comes to |

mod contender;
mod course;
mod figures;

use std::sync::Arc;

use fastrand::Rng;
use leasehold::{
    clock::SystemClock,
    keeper::{Keeper, KeeperOptions, PlainHome},
    store::DynamoDb,
};
use tokio::{
    sync::oneshot,
    task::JoinSet,
    time::{Duration, Instant},
};

use self::{
    contender::{Errand, Told, contend},
    course::Course,
    figures::Figures,
};
use super::{
    Plan, Row, Section,
    floor::Floor,
    ground::{Counts, Ground, KEYS, client},
    line_client::Asked,
    report::Unit,
    statistics::millis,
};
use crate::{Error, task::OwnedRuntime};

const LEASE: Duration = Duration::from_secs(30);
/// Between the last connection made and the first who comes.
const BREATH: Duration = Duration::from_millis(100);
/// How many there must be for fairness to mean something.
const FAIR_FROM: usize = 10;
/// How many have come in the end at least: courses of few are run again and again, as chance decides about each.
const ENOUGH: usize = 50;
/// How often a course is run at most.
const MOST_ROUNDS: usize = 10;

/// Runs all courses.
pub(super) async fn measure(plan: &Plan, tell: &mut (dyn FnMut(&str) + Send)) -> Result<(Floor, Vec<Row>), Error> {
    let mut rows = Vec::new();
    let mut floors = Vec::new();
    for course in Course::all(&plan.contenders) {
        tell(&course.what);
        let (floor, figures, counts) = run(plan, &course).await?;
        rows.extend(rows_of(&course, &floor, &figures, &counts));
        floors.push(floor);
    }
    let floor = floors.into_iter().next();
    let none = || Error::Setting { setting: "contenders", problem: "are none; give at least one number".to_owned() };
    Ok((floor.ok_or_else(none)?, rows))
}

/// One course, on ground of its own and beside a floor of its own.
async fn run(plan: &Plan, course: &Course) -> Result<(Floor, Figures, Counts), Error> {
    let ground = Ground::start(plan.latency).await?;
    let client = client(ground.url(false)).await?;
    let floor = Floor::measure(&ground, &client, plan.times(50, 20)).await?;
    let executor = OwnedRuntime::new("contenders").map_err(Error::io("start the contenders' threads"))?;
    let mut rounds = Vec::new();
    for number in 0..plan.times(rounds_of(course), 1) {
        rounds.push(round(plan, course, &ground, &floor, &executor, number).await?);
    }
    let counts = ground.since(0, |of| of.starts_with(KEYS));
    // A busy machine is not equally busy all the time.
    let floor = floor.and(&Floor::measure(&ground, &client, plan.times(50, 20)).await?);
    let figures = Figures::of(&rounds, course.hold, floor.request());
    Ok((floor, figures, counts))
}

/// How often a course is run.
fn rounds_of(course: &Course) -> usize {
    ENOUGH.div_ceil(course.contenders.max(1)).min(MOST_ROUNDS)
}

/// A course once, for a key of its own.
async fn round(
    plan: &Plan,
    course: &Course,
    ground: &Ground,
    floor: &Floor,
    executor: &OwnedRuntime,
    number: usize,
) -> Result<Vec<Told>, Error> {
    let seed = plan.seed.wrapping_add(number as u64);
    let mut dice = Rng::with_seed(seed);
    let key = format!("{KEYS}wanted-{number}");
    let asked = Asked { key, lease: LEASE, wait: course.wait, polling: plan.polling.delays() };
    let (starts, kills) = (course.starts(&mut dice), course.kills(floor.request(), &mut dice));
    let drawn: Vec<_> = starts.into_iter().zip(kills).collect();
    let keepers = if course.one_keeper { 1 } else { course.contenders };
    let keepers: Vec<_> = (0..keepers as u64).map(|place| keeper(ground, seed.wrapping_add(place))).collect();
    let hold = course.hold;
    let (sender, receiver) = oneshot::channel();
    executor.spawn(async move {
        // Nobody waits for it any more where the bench was ended.
        let _ = sender.send(contended(keepers, asked, drawn, hold).await);
    });
    let ended = || Error::io("wait for the contenders")(std::io::Error::other("their executor ended"));
    receiver.await.map_err(|_| ended())?
}

fn keeper(ground: &Ground, seed: u64) -> Keeper {
    let store = DynamoDb::with_config(ground.config());
    let keeper = Keeper::new(store, Arc::new(SystemClock::new()), Arc::new(PlainHome), KeeperOptions::default());
    keeper.seed_jitter(seed);
    keeper
}

/// What became of the contenders, in the order in which they were to come.
async fn contended(
    keepers: Vec<Keeper>,
    asked: Asked,
    drawn: Vec<(Duration, Option<Duration>)>,
    hold: Duration,
) -> Result<Vec<Told>, Error> {
    // As the extension does in an environment's init.
    for keeper in &keepers {
        keeper.warm_up().await;
    }
    let zero = Instant::now() + BREATH;
    let mut contenders = JoinSet::new();
    for ((starts, killed_after), keeper) in drawn.into_iter().zip(keepers.iter().cycle()) {
        let errand = Errand { asked: asked.clone(), starts: zero + starts, hold, killed_after };
        contenders.spawn(contend(keeper.clone(), errand));
    }
    let told = contenders.join_all().await.into_iter().collect();
    for keeper in &keepers {
        keeper.stop();
    }
    told
}

/// What a course comes to, in rows.
fn rows_of(course: &Course, floor: &Floor, figures: &Figures, counts: &Counts) -> Vec<Row> {
    let number = figures.came as f64;
    let row = |id: &str, what: &str, value: f64, unit: Unit| {
        Row::new(Section::Contention, format!("{}.{id}", course.id), format!("{}: {what}", course.what), value, unit)
    };
    let usual = course.plain && course.contenders == 50;
    let of_total = match course.contenders {
        50 if usual => Some(1.15),
        500 if course.plain => Some(1.5),
        _ => None,
    };
    let (total, minimum) = (figures.total.as_secs_f64(), figures.minimum.as_secs_f64());
    let mut note = format!("{total:.2} s, at least {minimum:.2} s; {} had it", figures.held);
    if figures.rounds > 1 {
        note.push_str(&format!(" in {} rounds", figures.rounds));
    }
    if figures.gave_up + figures.killed > 0 {
        note.push_str(&format!(", {} gave up, {} were killed", figures.gave_up, figures.killed));
    }
    note.push_str(&format!("; one request {:.2} ms", millis(floor.request())));
    let slow = figures.handovers.percentile(0.9);
    let handovers = format!(
        "{:.1} ms; p90 {:.1} ms, {:.2} requests",
        millis(figures.handovers.median()),
        millis(slow),
        floor.requests(slow)
    );
    let units = counts.writes() as f64 + 0.2 * counts.reads() as f64;
    let longest = figures.waits.longest();
    let mut rows = vec![
        row("total", "total over the serial minimum", figures.over_minimum(), Unit::Ratio)
            .maybe_at_most(of_total)
            .note(note),
        row("requests", "requests a contender", counts.all() as f64 / number, Unit::Requests)
            .maybe_at_most(usual.then_some(9.0))
            .note(format!("{counts}; {:.1} units a contender", units / number)),
    ];
    // Where nobody waited, nothing was handed over.
    if figures.handovers.len() > 0 {
        let requests = floor.requests(figures.handovers.median());
        rows.push(
            row("handover", "release to next grant, p50", requests, Unit::RequestTimes)
                .maybe_at_most(usual.then_some(2.5))
                .note(handovers),
        );
    }
    rows.push(row("longest_wait", "longest wait", longest.as_secs_f64(), Unit::Seconds).beside(floor, longest));
    // Of few, chance alone decides who is first.
    if course.contenders >= FAIR_FROM {
        let what = "longest wait of the first half over that of the last in line";
        rows.push(row("fairness", what, figures.fairness, Unit::Ratio).maybe_at_most(course.plain.then_some(1.5)));
    }
    if course.wait < LEASE {
        rows.push(row("gave_up", "gave up", figures.gave_up as f64, Unit::Number));
    }
    rows
}
