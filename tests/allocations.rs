//! What picking a key out of an event asks of the allocator: the same few times, whatever the event's size.
//!
//! A count, not a time: it is the same on every machine, and one more shows. It has no harness, whose own threads would be
//! counted as well.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "a harness's own lines")]

use std::alloc::System;
use std::hint::black_box;

use leasehold::key::{ContextValues, KeyHash, Template};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How often memory is asked for, or asked for again.
fn counted<T>(work: impl FnOnce() -> T) -> usize {
    let region = Region::new(ALLOCATOR);
    let result = black_box(work());
    let change = region.change();
    drop(result);
    change.allocations + change.reallocations
}

/// An event of about so many bytes, with what the templates ask for at its end.
fn event(bytes: usize) -> String {
    let record =
        r#"{"messageId":"059f36b4-87a3","body":"Test \"message\", long enough to be one","tags":["a",null,1e3]},"#;
    let filler = record.repeat(bytes / record.len() + 1);
    format!(r#"{{"records":[{filler}0],"detail":{{"orderId":"A-1001","tenant":"acme"}}}}"#)
}

fn main() {
    let context = ContextValues::default();
    for (template, most) in [("orders:{detail.orderId}", MOST_ONE), ("{detail.tenant}:{detail.orderId}", MOST_TWO)] {
        let parsed = Template::parse(template).unwrap();
        for bytes in [1_000, 1_000_000] {
            let event = event(bytes);
            let asked = counted(|| parsed.resolve(None, &event, &context).unwrap());
            println!("{template} of {bytes} bytes: memory is asked for {asked} times");
            assert!(asked <= most, "{template} of {bytes} bytes: {asked} times, {most} at most");
        }
    }
    let key = Template::parse("orders:{detail.orderId}").unwrap().resolve(None, &event(1_000), &context).unwrap();
    let hash = KeyHash::with_secret("a secret of 16 bytes or more");
    let asked = counted(|| hash.of(&key));
    println!("a hash: memory is asked for {asked} times");
    assert!(asked <= MOST_HASH, "a hash: {asked} times, {MOST_HASH} at most");
}

/// What is asked for now, and no more.
const MOST_ONE: usize = 3;
const MOST_TWO: usize = 3;
const MOST_HASH: usize = 1;
