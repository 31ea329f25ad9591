//! Bytes from layers that libFuzzer makes up, to the real session server. `fuzz/run` says how it is built and run.

#![no_main]

mod harness;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| harness::run(bytes));
