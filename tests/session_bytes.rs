//! What the fuzzer does to the session server, without a fuzzer: its seeds, cut at every length that matters, and what it
//! has found before.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(unreachable_pub, reason = "the fuzz target shares it")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

#[path = "../fuzz/harness.rs"]
mod harness;
#[allow(dead_code, reason = "nothing is compared here")]
#[path = "transcripts/read.rs"]
mod read;

use self::harness::deed;
use self::read::{Line, Names, Step};

/// A task's panic ends only the task: this is how it is noticed.
static PANICKED: AtomicBool = AtomicBool::new(false);

fn seeds() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds")
}

/// What the layer does in a transcript, as the harness reads it.
fn input(steps: &[Step]) -> Vec<u8> {
    let (mut names, mut bytes, mut current) = (Names::default(), Vec::new(), None);
    for step in steps {
        if let Step::Layer(on, _) | Step::Keeper(on, _) = step
            && current != Some(*on)
        {
            current = Some(*on);
            bytes.extend([255, deed::TURN_TO, u8::try_from(*on).unwrap()]);
        }
        match step {
            Step::Layer(_, Line::Says(line)) => {
                bytes.extend(format!("{}\n", names.fill(line, 1_800_000_060_000)).into_bytes());
            }
            Step::Layer(_, Line::HangsUp) => bytes.extend([255, deed::HANG_UP]),
            Step::Keeper(..) => bytes.extend([255, deed::READ]),
            Step::Then(what) if what == "DynamoDB throttles" => bytes.extend([255, deed::STORE, 1]),
            Step::Then(what) if what == "no renewal is answered" => bytes.extend([255, deed::STORE, 2]),
            Step::Then(_) => bytes.extend([255, deed::WAIT, 120]),
            Step::Layer(_, Line::Connects) => {}
        }
    }
    bytes
}

/// The fuzzer starts from the transcripts. With `LEASEHOLD_WRITE_SEEDS=1` this test writes the files anew.
#[test]
fn the_seeds_are_those_of_the_transcripts() {
    let expected: BTreeMap<_, _> = read::all().iter().map(|(name, steps)| (name.clone(), input(steps))).collect();
    if std::env::var_os("LEASEHOLD_WRITE_SEEDS").is_some() {
        for (name, bytes) in &expected {
            std::fs::write(seeds().join(name), bytes).unwrap();
        }
    }
    let files = std::fs::read_dir(seeds()).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let found: BTreeMap<_, _> = files.map(|path| (name(&path), std::fs::read(&path).unwrap())).collect();
    assert!(found == expected, "run this test with LEASEHOLD_WRITE_SEEDS=1");
}

#[test]
fn a_session_that_breaks_off_anywhere_leaves_nothing_behind() {
    let said = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICKED.store(true, Ordering::Relaxed);
        said(panic);
    }));
    for (name, steps) in read::all() {
        let bytes = input(&steps);
        for at in (0..bytes.len()).step_by(17).chain([bytes.len()]) {
            harness::run(&bytes[..at]);
            assert!(!PANICKED.load(Ordering::Relaxed), "{name} up to {at}");
        }
    }
}

#[test]
fn every_byte_of_a_session_may_be_another() {
    for (name, steps) in read::all() {
        let bytes = input(&steps);
        for at in (0..bytes.len()).step_by(23) {
            for other in [0, b'"', b'\n', b'}', b'9', 0x80, 255] {
                let mut bytes = bytes.clone();
                bytes[at] = other;
                harness::run(&bytes);
                assert!(!PANICKED.load(Ordering::Relaxed), "{name} with {other} at {at}");
            }
        }
    }
}
