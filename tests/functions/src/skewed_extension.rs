//! The extension, on a wall clock that a test sets back and forth by a file in the environment's `/tmp`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use leasehold::clock::{Clock, Now, SystemClock};
use leasehold::store::DynamoDb;
use leasehold_extension::lifecycle;
use leasehold_extension::logging::{self, LogSettings};
use leasehold_extension::settings::Settings;

/// How many milliseconds the wall clock is ahead, or behind where it is negative; not at all without the file.
const FILE: &str = "wall-offset-ms";

/// The system's clocks, the wall clock as far off as the file says.
#[derive(Debug)]
struct SkewedClock {
    system: SystemClock,
    file: PathBuf,
}

impl Clock for SkewedClock {
    fn now(&self) -> Now {
        let now = self.system.now();
        let offset = std::fs::read_to_string(&self.file).ok().and_then(|text| text.trim().parse::<i64>().ok());
        let offset = offset.unwrap_or_default();
        let by = Duration::from_millis(offset.unsigned_abs());
        Now { wall: if offset < 0 { now.wall - by } else { now.wall + by }, ..now }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let settings = Settings::read(std::env::args_os().next(), |name| std::env::var_os(name));
    let log = logging::start(&LogSettings::read(|name| std::env::var(name).ok()));
    let Some(settings) = settings else {
        return tracing::error!("only the sandbox starts this");
    };
    let clock = SkewedClock { system: SystemClock::new(), file: std::env::temp_dir().join(FILE) };
    lifecycle::run(settings, DynamoDb::lazy(), Arc::new(clock), log.lines()).await;
}
