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

ROUNDS  how often both sides are measured in turns, 101 by default; the median ratio counts
exit    0 if every ratio is at most 2.5, 1 if not, 2 for a wrong argument

Without cargo's own `--bench`, as under `cargo test --all-targets`, the build is not optimised: one round, no verdict.";

const LIMIT: f64 = 2.5;

fn main() -> ExitCode {
    let optimised = std::env::args().any(|argument| argument == "--bench");
    let mut rounds = if optimised { 101 } else { 1 };
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
        Ok(false) if !optimised => ExitCode::SUCCESS,
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
    println!("{:<22} {:<10} {:>9} {:>11} {:>11} {:>6}", "event", "path", "bytes", "scan", "resolve", "ratio");
    let mut holds = true;
    for (size, bytes) in [("1 KB", 1_000), ("1 MB", 1_000_000)] {
        for (shape, make) in SHAPES {
            let event = make(bytes);
            for (place, template) in &event.templates {
                let Measured { scan, resolve, ratio } = measure(&Template::parse(template)?, &event.json, rounds)?;
                let (name, length) = (format!("{size}, {shape}"), event.json.len());
                println!("{name:<22} {place:<10} {length:>9} {scan:>11.2?} {resolve:>11.2?} {ratio:>6.2}");
                holds &= ratio <= LIMIT;
            }
        }
    }
    Ok(holds)
}

/// An event and templates for values at its front, in its middle, at its end and all three.
struct Event {
    json: String,
    templates: [(&'static str, String); 4],
}

/// Makes an event of about that many bytes.
type Shape = fn(usize) -> Event;

/// Records as queues send them, and the worst for a reader that looks at every name or element: nothing but short ones.
const SHAPES: [(&str, Shape); 3] = [
    ("records", |bytes| {
        object(bytes, |n| {
            format!(
                r#""record{n}":{{"messageId":"059f36b4-87a3-44ab-83d2-{n:012}","attributes":{{"count":{n},"sent":1545082649183}},"body":"Test \"message\" {n}, long enough to be a message","tags":["a","b",null,true,-1.5e3]}}"#
            )
        })
    }),
    ("short members", |bytes| object(bytes, |n| format!(r#""m{n}":{n}"#))),
    ("short elements", array),
];

fn object(bytes: usize, filler: fn(usize) -> String) -> Event {
    let mut json = String::from(r#"{"front":{"id":"A-1"}"#);
    let mut n = 0;
    for (until, member) in [(bytes / 2, r#","middle":{"id":12345}"#), (bytes, r#","end":{"id":"Z-9"}}"#)] {
        while json.len() + member.len() < until {
            json.push(',');
            json.push_str(&filler(n));
            n += 1;
        }
        json.push_str(member);
    }
    Event { json, templates: templates(["front.id", "middle.id", "end.id"]) }
}

fn array(bytes: usize) -> Event {
    const SHORT: &str = "7,";
    let half = bytes / 2 / SHORT.len();
    let json = [r#"[{"id":1},"#, &SHORT.repeat(half), r#"{"id":2},"#, &SHORT.repeat(half), r#"{"id":3}]"#].concat();
    let (middle, end) = (format!("[{}].id", half + 1), format!("[{}].id", 2 * half + 2));
    Event { json, templates: templates(["[0].id", &middle, &end]) }
}

fn templates([front, middle, end]: [&str; 3]) -> [(&'static str, String); 4] {
    [
        ("front", format!("{{{front}}}")),
        ("middle", format!("{{{middle}}}")),
        ("end", format!("{{{end}}}")),
        ("all three", format!("{{{front}}}:{{{middle}}}:{{{end}}}")),
    ]
}

struct Measured {
    scan: Duration,
    resolve: Duration,
    ratio: f64,
}

fn measure(template: &Template, event: &str, rounds: usize) -> Result<Measured, Box<dyn std::error::Error>> {
    let context = ContextValues::default();
    template.resolve(None, event, &context)?;
    // Short turns: what else runs on the machine then disturbs single rounds, and the median drops those.
    let repeats = u32::try_from(100_000 / event.len()).unwrap_or(1).max(1);
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
