//! `watch`: what is held, who waits, and what changed hands, as a view on a terminal or a line for each event.

mod board;
mod lines;
mod log;
mod screen;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use leasehold::protocol::Row;
use leasehold::store::{DynamoDb, Scan};

use self::board::{Board, Seen};
use crate::asking;
use crate::ended::{Ended, STATUS, Stop};
use crate::options::TableOptions;

const PAGE: i32 = 1_000;
/// More held rows than this are counted and not shown: nobody reads them, and memory has an end.
const MOST: usize = 5_000;

/// Watch a table: what is held, what is renewed, taken, given back, taken over and lost.
///
/// The table is scanned again and again; what happened is told by what differs between two looks, and times are this
/// machine's own: no host's clock is compared. A lock that comes and goes between two looks is not seen. Who waits is not in
/// the table; give the extension's JSON log lines as a growing file, and it is told from them. On a terminal it is a view
/// (q ends it, the arrows scroll), otherwise a line for each event. Every look reads the whole table: choose --every by what
/// that costs.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  leaseholdctl watch --table locks
  leaseholdctl watch --table locks --every 5s --prefix orders: --log /tmp/orders.log
  leaseholdctl watch --table locks --lines --looks 10 --json

{STATUS}"))]
pub(crate) struct Watch {
    /// Only keys that begin like this (behind the namespace).
    #[arg(long, value_name = "TEXT", default_value = "")]
    prefix: String,

    /// How long after one look the next one begins.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = crate::options::pause)]
    every: Duration,

    /// End after this many looks.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    looks: Option<u64>,

    /// Print lines also on a terminal.
    #[arg(long)]
    lines: bool,

    /// JSON log lines of the extension, in a file that may grow: who waits, and what was lost.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Read consistently, for twice the read capacity.
    #[arg(long)]
    consistent: bool,

    #[command(flatten)]
    pub(crate) table: TableOptions,
}

/// What is watched.
struct Watched<'a> {
    store: &'a DynamoDb,
    scan: Scan,
    log: Option<log::Log>,
    begun: Instant,
}

impl Watch {
    pub(crate) async fn run(&self, json: bool) -> Result<Ended, Stop> {
        let (chosen, store, _) = self.table.open().await?;
        let log = self.log.as_deref().map(log::Log::open).transpose()?;
        let scan = Scan {
            prefix: chosen.full_key(&self.prefix),
            table: chosen.table.clone(),
            owned: true,
            consistent: self.consistent,
            page: PAGE,
        };
        let mut watched = Watched { store: &store, scan, log, begun: Instant::now() };
        let mut board = Board::new(watched.log.is_some());
        if self.lines || json || !io::stdout().is_terminal() {
            lines::run(&mut watched, &mut board, self.every, self.looks, json).await
        } else {
            screen::run(&mut watched, &mut board, self.every, self.looks).await
        }
    }
}

impl Watched<'_> {
    /// Looks once at all of it.
    async fn look(&mut self, board: &mut Board) -> Result<(), Stop> {
        let (mut seen, mut from) = (Seen::default(), None);
        loop {
            let page = asking::page(self.store, &self.scan, from.take()).await?;
            seen.read_units += page.read_units;
            for found in page.rows {
                match (found.key, found.row) {
                    (Some(key), Row::Held(held)) if seen.held.len() < MOST => drop(seen.held.insert(key, held)),
                    (_, Row::Held(_)) => seen.more += 1,
                    (_, Row::Unusable(_)) => seen.unusable += 1,
                    (_, Row::Absent | Row::Free { .. }) => {}
                }
            }
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        let at = self.begun.elapsed();
        board.look(at, seen);
        if let Some(log) = &mut self.log {
            log.read(|event| board.logged(at, event))?;
        }
        Ok(())
    }
}
