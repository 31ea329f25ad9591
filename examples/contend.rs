//! Prints what a crowd on one key comes to, in virtual time: by tickets, and by the plain schedule.
//!
//! `cargo run --release --features simulation --example contend -- [SEEDS]`
//!
//! A tool, not an example of use: `.ci/examples` leaves it out, and the test `contention` asserts its goals.

use std::io::{Write, stdout};
use std::process::ExitCode;
use std::time::Duration;

use leasehold::protocol::simulation::contention::{Course, Figures};

const HEAD: &str = "\
course                        way       ratio (worst)  requests (w + r)  cost  handover p50/p90  longest  unfair  gave up";

fn main() -> ExitCode {
    let seeds = match std::env::args().nth(1).map(|text| text.parse::<u64>()) {
        None => 20,
        Some(Ok(seeds)) if seeds > 0 => seeds,
        Some(_) => {
            say("write a number of seeds, or nothing for 20\n");
            return ExitCode::from(2);
        }
    };
    say(&format!("{HEAD}\n"));
    for (name, course) in courses() {
        for (way, course) in [("tickets", course), ("backoff", course.by_backoff())] {
            let seeds = if course.contenders > 100 { seeds.div_ceil(4) } else { seeds };
            line(&name, way, &course.figures(0..seeds));
        }
    }
    ExitCode::SUCCESS
}

fn courses() -> Vec<(String, Course)> {
    let (ms, second) = (Duration::from_millis, Duration::from_secs(1));
    let mut courses = Vec::new();
    for n in [1, 2, 10, 50, 200, 500] {
        courses.push((format!("{n} at once"), Course::at_once(n)));
        courses.push((format!("{n} over 1 s"), Course { spread: second, ..Course::at_once(n) }));
    }
    for latency in [5, 6] {
        let course = Course { latency: ms(latency), ..Course::at_once(50) };
        courses.push((format!("50, {latency} ms, 20 % die"), Course { dead: 20, ..course }));
        courses.push((format!("50, {latency} ms, 2 s budget"), Course { budget: second * 2, ..course }));
    }
    courses.push((
        "50 over 1 s, 2 s budget".to_owned(),
        Course { budget: second * 2, spread: second, ..Course::at_once(50) },
    ));
    for n in [2, 10, 50, 200] {
        courses.push((format!("{n}, 200 ms holds"), Course { hold: ms(200), ..Course::at_once(n) }));
    }
    courses.push(("500, 20 % die".to_owned(), Course { dead: 20, ..Course::at_once(500) }));
    courses
}

fn line(name: &str, way: &str, figures: &Figures) {
    let Figures { ratio, worst_ratio, requests, writes, reads, handover_p50, handover_p90, unfairness, .. } = figures;
    say(&format!(
        "{name:<29} {way:<9} {ratio:>5.2} ({worst_ratio:>5.2})  {requests:>5.1} ({writes:>4.1} + {reads:>4.1}) {:>6.1}  \
         {handover_p50:>8.1}/{handover_p90:>5.1}  {:>6.2} s  {unfairness:>6.2}  {} of {}\n",
        figures.cost(),
        figures.longest_wait.as_secs_f64(),
        figures.gave_up,
        figures.gave_up + figures.served + figures.failed,
    ));
}

/// To standard output; a closed pipe is not worth a word.
fn say(text: &str) {
    let _ = stdout().write_all(text.as_bytes());
}
