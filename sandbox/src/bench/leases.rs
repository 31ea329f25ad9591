//! Memory and processor time of an extension that keeps many leases.

use std::{fs, time::Duration};

use tokio::{net::UnixStream, time::sleep};

use super::{
    BenchPrograms, Plan, Row, Section,
    ground::{Ground, KEYS},
    line_client::{Asked, LineClient, unexpected},
    report::Unit,
};
use crate::{Error, Process, faults::Step};
use leasehold::session::FromKeeper;

/// The layer's default.
const LEASE: Duration = Duration::from_secs(30);
/// What one that keeps a single lease may have resident.
const GOAL_MIB: f64 = 12.0;
/// In which Linux tells of processor time, on x86 and on ARM.
const TICKS_PER_SECOND: f64 = 100.0;

pub(super) async fn measure(plan: &Plan, programs: &BenchPrograms) -> Result<Vec<Row>, Error> {
    // Two renewals of each lease, or one of a shorter one.
    let (lease, watched) =
        if plan.quick { (LEASE / 10, Duration::from_secs(2)) } else { (LEASE, Duration::from_secs(20)) };
    let mut rows = Vec::new();
    let numbers: &[u64] = if plan.quick { &[1, 100] } else { &[1, 100, 1_000] };
    for leases in numbers.iter().copied() {
        let used = of_one(plan, programs, leases, lease, watched).await?;
        let row = |id: &str, what: &str, value, unit| {
            let plural = if leases == 1 { "lease" } else { "leases" };
            Row::new(Section::Leases, format!("{leases}.{id}"), format!("{leases} {plural}: {what}"), value, unit)
        };
        let resident = row("resident", "resident memory", used.resident_mib, Unit::Megabytes);
        rows.push(
            resident.maybe_at_most((leases == 1).then_some(GOAL_MIB)).note(format!("most {:.1} MiB", used.most_mib)),
        );
        let share = used.processor.as_secs_f64() / watched.as_secs_f64() * 100.0;
        let each = used.processor.as_secs_f64() * 1e6 / used.renewals.max(1) as f64;
        let note = format!(
            "{:.0} ms in {} s with {} renewals, {each:.0} µs each",
            used.processor.as_secs_f64() * 1e3,
            watched.as_secs(),
            used.renewals
        );
        rows.push(row("processor", "of one processor", share, Unit::Percent).note(note));
    }
    Ok(rows)
}

#[derive(Debug)]
struct Used {
    resident_mib: f64,
    most_mib: f64,
    processor: Duration,
    renewals: usize,
}

/// A fresh extension with so many leases of one session, watched for a while.
async fn of_one(
    plan: &Plan,
    programs: &BenchPrograms,
    leases: u64,
    lease: Duration,
    watched: Duration,
) -> Result<Used, Error> {
    let ground = Ground::start(plan.latency).await?;
    // Nobody invokes the function, so that all it does is to keep leases; and it must not be frozen meanwhile.
    let sandbox = ground.sandbox(programs).freeze(false).start().await?;
    let environment = sandbox.environment(0);
    environment.start().await?;
    let pid = environment.pid(Process::Extension("leasehold".to_owned())).await?;
    let stream = UnixStream::connect(environment.socket()?).await.map_err(Error::io("connect to the extension"))?;
    let mut client = LineClient::over(stream).await?;
    let asked = |id: u64| Asked { key: format!("{KEYS}{id}"), lease, wait: Duration::from_secs(60), polling: None };
    for id in 0..leases {
        client.acquire(id, &asked(id)).await?;
    }
    for _ in 0..leases {
        match client.hear().await? {
            FromKeeper::Granted { .. } => {}
            other => return Err(unexpected("granted", &other)),
        }
    }
    // What the grants themselves took is not what keeping takes.
    sleep(Duration::from_secs(1)).await;
    let (before, mark) = (processor_time(pid)?, ground.mark());
    sleep(watched).await;
    let processor = processor_time(pid)?.saturating_sub(before);
    let renewals = ground.since(mark, |key| key.starts_with(KEYS)).of(Step::Renew);
    let (resident_mib, most_mib) = (memory_mib(pid, "VmRSS:")?, memory_mib(pid, "VmHWM:")?);
    for id in 0..leases {
        client.release(id).await?;
    }
    drop(client);
    sandbox.shutdown().await;
    Ok(Used { resident_mib, most_mib, processor, renewals })
}

fn memory_mib(pid: i32, name: &str) -> Result<f64, Error> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).map_err(Error::io(format!("read {path}")))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.map(|kib| kib / 1024.0).ok_or_else(|| Error::io(format!("read {path}"))(std::io::ErrorKind::InvalidData.into()))
}

/// User and system time so far.
fn processor_time(pid: i32) -> Result<Duration, Error> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).map_err(Error::io(format!("read {path}")))?;
    let ticks =
        ticks(&text).ok_or_else(|| Error::io(format!("read {path}"))(std::io::ErrorKind::InvalidData.into()))?;
    Ok(Duration::from_secs_f64(ticks as f64 / TICKS_PER_SECOND))
}

/// The 14th and 15th field of a process's `stat`; its name, the second, may have spaces and parentheses of its own.
fn ticks(stat: &str) -> Option<u64> {
    let mut after_name = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || after_name.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processes_ticks_are_found_behind_any_name() {
        let stat = "7 (a) name) S 1 7 7 0 -1 4194304 100 0 0 0 12 30 0 0 20 0 3 0 100 1000 200";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(ticks("nonsense"), None);
        // This very process's own can be read.
        let pid = i32::try_from(std::process::id()).unwrap();
        assert!(memory_mib(pid, "VmRSS:").unwrap() > 0.0);
        processor_time(pid).unwrap();
    }
}
