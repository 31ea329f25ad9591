//! What resolving a key costs, as a multiple of letting serde_json skip the same event.
//!
//! The event is read on every invocation before anything else happens, so the bound is part of the design: at most 2.5
//! scans. Both sides are measured in turns within one run, so that a busy machine slows both.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what a benchmark is for")]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use leasehold::key::{ContextValues, Template};
use serde::de::IgnoredAny;

const HELP: &str = "\
Measures key resolution against one `serde_json::from_str::<IgnoredAny>` scan of the same event.

usage: cargo bench --bench key [-- ROUNDS]

ROUNDS  how often both sides are measured in turns, 21 by default; the median ratio counts
exit    0 if every ratio is at most 2.5, 1 if not, 2 for a wrong argument";

const LIMIT: f64 = 2.5;
const TEMPLATES: [(&str, &str); 4] = [
    ("front", "{front.id}"),
    ("middle", "{middle.id}"),
    ("end", "{end.id}"),
    ("all three", "{front.id}:{middle.id}:{end.id}"),
];

fn main() -> ExitCode {
    let mut rounds = 21;
    // Cargo itself passes `--bench`.
    for argument in std::env::args().skip(1).filter(|argument| argument != "--bench") {
        match argument.parse() {
            Ok(number) if number > 0 => rounds = number,
            _ if argument == "--help" || argument == "-h" => {
                println!("{HELP}");
                return ExitCode::SUCCESS;
            }
            _ => {
                eprintln!("{argument:?} is no number of rounds\n\n{HELP}");
                return ExitCode::from(2);
            }
        }
    }
    match run(rounds) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("resolving costs more than {LIMIT} scans");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(rounds: usize) -> Result<bool, Box<dyn std::error::Error>> {
    println!("{:<24} {:<10} {:>9} {:>11} {:>11} {:>6}", "event", "path", "bytes", "scan", "resolve", "ratio");
    let mut holds = true;
    for (size, bytes) in [("1 KB", 1_000), ("1 MB", 1_000_000)] {
        for (shape, filler) in SHAPES {
            let event = event(filler, bytes);
            for (place, template) in TEMPLATES {
                let measured = measure(&Template::parse(template)?, &event, rounds)?;
                let Measured { scan, resolve, ratio } = measured;
                println!(
                    "{:<24} {place:<10} {:>9} {scan:>11.2?} {resolve:>11.2?} {ratio:>6.2}",
                    format!("{size}, {shape}"),
                    event.len()
                );
                holds &= ratio <= LIMIT;
            }
        }
    }
    Ok(holds)
}

/// What stands beside the path: one more member of the top-level object.
type Filler = fn(usize) -> String;

/// Records as queues send them, and the worst for a reader that looks at every name: nothing but short members.
const SHAPES: [(&str, Filler); 2] = [
    ("records", |n| {
        format!(
            r#""record{n}":{{"messageId":"059f36b4-87a3-44ab-83d2-{n:012}","attributes":{{"count":{n},"sent":1545082649183}},"body":"Test \"message\" {n}, long enough to be a message","tags":["a","b",null,true,-1.5e3]}}"#
        )
    }),
    ("short members", |n| format!(r#""m{n}":{n}"#)),
];

/// An event of about that many bytes with a value to find at its front, in its middle and at its end.
fn event(filler: Filler, bytes: usize) -> String {
    let mut event = String::from(r#"{"front":{"id":"A-1"}"#);
    let mut n = 0;
    for (until, member) in [(bytes / 2, r#","middle":{"id":12345}"#), (bytes, r#","end":{"id":"Z-9"}}"#)] {
        while event.len() + member.len() < until {
            event.push(',');
            event.push_str(&filler(n));
            n += 1;
        }
        event.push_str(member);
    }
    event
}

struct Measured {
    scan: Duration,
    resolve: Duration,
    ratio: f64,
}

fn measure(template: &Template, event: &str, rounds: usize) -> Result<Measured, Box<dyn std::error::Error>> {
    let context = ContextValues::default();
    template.resolve(None, event, &context)?;
    let repeats = u32::try_from(2_000_000 / event.len()).unwrap_or(1).max(1);
    let mut scans = Vec::with_capacity(rounds);
    let mut resolves = Vec::with_capacity(rounds);
    let mut ratios = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let scan = time(repeats, || serde_json::from_str::<IgnoredAny>(black_box(event)));
        let resolve = time(repeats, || black_box(template).resolve(None, black_box(event), &context));
        scans.push(scan);
        resolves.push(resolve);
        ratios.push(resolve.as_secs_f64() / scan.as_secs_f64());
    }
    scans.sort();
    resolves.sort();
    ratios.sort_by(f64::total_cmp);
    let middle = rounds / 2;
    let median = |times: &[Duration]| times.get(middle).copied().unwrap_or_default();
    Ok(Measured {
        scan: median(&scans),
        resolve: median(&resolves),
        ratio: ratios.get(middle).copied().unwrap_or(f64::INFINITY),
    })
}

fn time<T>(repeats: u32, mut f: impl FnMut() -> T) -> Duration {
    let start = Instant::now();
    for _ in 0..repeats {
        drop(black_box(f()));
    }
    start.elapsed() / repeats
}
