//! The timeline as it grows, on standard error.

use std::{
    future::Future,
    io::{self, Write},
    pin::pin,
};

use leasehold_sandbox::{Line, Log};

/// Prints events while `work` runs, and those it left behind; or nothing, if it is to be quiet.
pub(super) async fn while_running<T>(log: &Log, show: Option<bool>, work: impl Future<Output = T>) -> io::Result<T> {
    let Some(colour) = show else { return Ok(work.await) };
    let mut work = pin!(work);
    let mut printed = 0;
    let result = loop {
        tokio::select! {
            biased;
            event = log.next_after(printed) => {
                writeln!(io::stderr(), "{}", Line { event: &event, colour })?;
                printed = event.index + 1;
            }
            result = &mut work => break result,
        }
    };
    for event in log.events().iter().skip(printed) {
        writeln!(io::stderr(), "{}", Line { event, colour })?;
    }
    Ok(result)
}
