//! `report`: what log lines say of a table's use: contention, losses, what `observe` would have refused, and the cost.

mod find;
mod line;
mod metrics;
mod object;
mod refusals;
mod spread;
mod summary;
mod tally;
mod tell;

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;

use self::find::Finder;
pub(crate) use self::find::LONGEST_LINE;
pub(crate) use self::line::{Event, read_line};
use self::object::{Told, read_object};
use self::summary::Read;
use crate::ended::{Ended, STATUS, Stop};
use crate::output::{self, Progress};
use crate::prices::Prices;
use crate::text::count;

/// How many keys and templates are told.
const MOST: usize = 10;
/// How much is read at once.
const CHUNK: usize = 64 * 1_024;

/// Report on a log: how often was waited and refused, what was lost, what observe would have refused, what it cost.
///
/// Reads from standard input what the extension writes to a function's log: its lines of metrics, which are there unless
/// LEASEHOLD_METRICS says off, and for keys and reasons the events that it writes with the log format JSON and the level INFO;
/// in mode observe also what the layer logs. They may stand among whatever else, as `aws logs tail`, `aws logs
/// filter-log-events`, `sam logs` and archives print them, of any size. Where there are no lines of metrics, the events are
/// counted; reads and renewals are then worked out from waits and holds, by the default polling and --lease.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  aws logs tail /aws/lambda/orders --since 1h --format short | leaseholdctl report
  aws logs filter-log-events --log-group-name /aws/lambda/orders --output json | leaseholdctl report
  leaseholdctl report --json --memory 512 < orders.log

{STATUS}
1 if leases were lost; 2 if no line was one of leasehold's. Lines of leasehold's that can't be read are counted and told."))]
pub(crate) struct Report {
    /// The lease's length, by which renewals are estimated where there are no lines of metrics.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = crate::options::lease)]
    lease: Duration,

    #[command(flatten)]
    prices: Prices,
}

impl Report {
    pub(crate) fn run(&self, json: bool) -> Result<Ended, Stop> {
        let input = io::stdin().lock();
        if input.is_terminal() {
            return Err(Stop::Usage(
                "log lines are read from standard input: `aws logs tail … | leaseholdctl report`".to_owned(),
            ));
        }
        let read = read(input)?;
        if read.metrics.lines + read.events.events == 0 {
            if read.lines == 0 {
                return Err(Stop::Usage(
                    "nothing came on standard input: `aws logs tail … | leaseholdctl report`".to_owned(),
                ));
            }
            let broken =
                if read.broken == 0 { String::new() } else { format!(", and {} are broken", count(read.broken)) };
            return Err(Stop::Usage(format!(
                "none of the {} lines is one of leasehold's{broken}: read the log group of a function with the extension and \
                 leave LEASEHOLD_METRICS on, or set the function's log format to JSON and the level to INFO",
                count(read.lines)
            )));
        }
        let items = read.costs(&self.prices, self.lease);
        if json {
            output::document(&summary::document(&read, &items, MOST))?
        } else {
            tell::tell(&read, &items, MOST)?
        }
        Ok(if read.summary().lost == 0 { Ended::Fine } else { Ended::Problem })
    }
}

fn read(mut input: impl io::Read) -> Result<Read, Stop> {
    let (mut read, mut finder, mut progress) = (Read::default(), Finder::default(), Progress::new());
    let (mut chunk, mut bytes, mut ends) = (vec![0; CHUNK], 0_u64, true);
    loop {
        let length = match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Stop::Usage(format!("standard input can't be read: {error}"))),
        };
        let part = chunk.get(..length).unwrap_or_default();
        ends = part.last() == Some(&b'\n');
        let mut tell = |told| match told {
            Told::Metrics(line) => read.metrics.add(line),
            Told::Event(line) => read.events.add(line),
            Told::Broken => read.broken += 1,
        };
        finder.push(part, &mut |object| read_object(object, &mut tell));
        bytes += length as u64;
        let (megabytes, ours) = (bytes / 1_000_000, read.metrics.lines + read.events.events);
        progress.tell(&format!("{} MB, {} lines of leasehold's", count(megabytes), count(ours)));
    }
    finder.end();
    read.broken += finder.broken();
    read.lines = finder.lines() + u64::from(!ends);
    Ok(read)
}
