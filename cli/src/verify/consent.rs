//! What it will cost, told before it begins, and whether to go on.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use tokio::sync::oneshot;

use super::played::Used;
use super::ready::Ready;
use super::scenes::Scene;
use super::stack::Role;
use super::told;
use crate::ended::Stop;
use crate::text::span;

/// Says what the scenes will cost, and asks whether to go on unless that was said already.
///
/// # Errors
///
/// [`Stop::Usage`] where the answer is no, or nobody can be asked.
pub(super) async fn ask(
    chosen: &[&'static Scene],
    ready: &Ready,
    thaw_after: Duration,
    agreed: bool,
) -> Result<(), Stop> {
    let expected = estimate(chosen, ready);
    let (lines, total) = told::cost(&expected);
    let told = format!(
        "{} scene{}, {} invocations, about {}: {} at the prices of us-east-1, logs not counted\n{}\n",
        chosen.len(),
        if chosen.len() == 1 { "" } else { "s" },
        expected.invocations,
        span(Duration::from_secs_f64(seconds(chosen, thaw_after))),
        crate::prices::usd(total),
        lines.join("\n")
    );
    // With standard error closed there is nobody to tell.
    let _ = io::stderr().write_all(told.as_bytes());
    if agreed {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(Stop::Usage("nobody can be asked here whether that is all right: give --yes".to_owned()));
    }
    let _ = write!(io::stderr(), "Go on? [y/N] ");
    match answer().await.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Stop::Usage("nothing was invoked".to_owned())),
    }
}

/// What the scenes will take, with the functions' memory as it is.
fn estimate(chosen: &[&'static Scene], ready: &Ready) -> Used {
    let mut expected = Used::default();
    let warm = [(Role::Worker, 1.0); 2];
    for (role, seconds) in chosen.iter().flat_map(|scene| scene.takes).chain(&warm) {
        let memory = ready.memory.get(role).copied().unwrap_or(128.0);
        expected.invocations += 1;
        expected.billed_ms += seconds * 1_000.0;
        expected.gb_seconds += seconds * memory / 1_024.0;
        // To take and to free, to be refused and to get a ticket; ten looks a second of a wait.
        expected.write_units += 4.0;
        expected.read_units += seconds * 10.0;
    }
    // Forty looks a second while two invocations are under way.
    expected.looking_units = expected.billed_ms / 2.0 / 25.0;
    expected
}

/// How long the whole of it takes, roughly.
fn seconds(chosen: &[&'static Scene], thaw_after: Duration) -> f64 {
    let takes = |scene: &Scene| scene.takes.iter().map(|(_, seconds)| *seconds).fold(0.0, f64::max);
    let short: f64 = chosen.iter().filter(|scene| !scene.long).map(|scene| takes(scene)).sum();
    if chosen.iter().any(|scene| scene.long) { short.max(thaw_after.as_secs_f64() + 2.0) } else { short }
}

/// A line of standard input, read by a thread of its own: nothing else ends a read.
async fn answer() -> String {
    let (told, line) = oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = io::stdin().read_line(&mut line);
        let _ = told.send(line);
    });
    line.await.unwrap_or_default()
}
