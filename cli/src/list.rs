//! `list`: the rows of a table, page by page, so that any table fits into memory.

use std::io;
use std::time::Duration;

use clap::Args;
use leasehold::protocol::Row;
use leasehold::store::{DynamoDb, FoundRow, Page, Scan};
use serde_json::{Value, json};

use crate::arguments::interrupted;
use crate::asking;
use crate::ended::{Ended, STATUS, Stop};
use crate::lock;
use crate::options::TableOptions;
use crate::output::{self, Progress};
use crate::text::{count, cut, fitted, shown_key, span, width};

/// Rows for one request. A row has 2 KB of key and 1 MB is a page's end, but most rows have a few hundred bytes.
const PAGE: i32 = 500;
/// No column is padded to more than this.
const WIDEST: usize = 48;
/// Of a longer key the rest is left to `--json`: it may fill a screen.
const LONGEST_KEY: usize = 256;

/// List the locks that are held: key, age, holder, invocation, template.
///
/// Reads the whole table with a scan, page by page, and prints each page as it comes: in no order, and not as of one
/// moment. A scan takes read capacity for all rows of the table, held or not: half a unit for 4 KB, a unit with
/// --consistent. The age is the holder's clock against DynamoDB's.
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  leaseholdctl list --table locks
  leaseholdctl list --table locks --prefix orders: --older-than 5m
  leaseholdctl list --table locks --all --json

{STATUS}
Malformed and foreign rows are a problem."))]
pub(crate) struct List {
    /// Only keys that begin like this (behind the namespace).
    #[arg(long, value_name = "TEXT", default_value = "")]
    prefix: String,

    /// Only locks of this function.
    #[arg(long, value_name = "NAME")]
    function: Option<String>,

    /// Only locks that were acquired at least this long ago, such as 90s, 5m or 2h.
    #[arg(long, value_name = "TIME", value_parser = crate::options::duration)]
    older_than: Option<Duration>,

    /// Free rows and rows of other programs as well.
    #[arg(long)]
    all: bool,

    /// Read consistently: each page shows every write that was answered before. Twice the read capacity.
    #[arg(long)]
    consistent: bool,

    #[command(flatten)]
    pub(crate) table: TableOptions,
}

impl List {
    pub(crate) async fn run(&self, json: bool) -> Result<Ended, Stop> {
        let (chosen, store, _) = self.table.open().await?;
        let scan = Scan {
            prefix: chosen.full_key(&self.prefix),
            table: chosen.table.clone(),
            owned: !self.all,
            consistent: self.consistent,
            page: PAGE,
        };
        let mut printer = Printer::new(json, &chosen.table.name)?;
        let listed = tokio::select! {
            listed = self.pages(&store, &scan, &mut printer) => listed,
            () = interrupted() => Err(Stop::Interrupted(String::new())),
        };
        match listed {
            Ok(()) => Ok(printer.end()?),
            Err(stop) => Err(printer.give_up(stop)?),
        }
    }

    async fn pages(&self, store: &DynamoDb, scan: &Scan, printer: &mut Printer) -> Result<(), Stop> {
        let mut from = None;
        loop {
            let page = asking::page(store, scan, from.take()).await?;
            printer.page(&page, |found| self.wants(found, page.date))?;
            from = page.next;
            if from.is_none() {
                return Ok(());
            }
        }
    }

    fn wants(&self, found: &FoundRow, date: Option<u64>) -> bool {
        let of_function = |name: &String| lock::holder(&found.row).is_some_and(|holder| holder.function == *name);
        let old = |least: Duration| lock::age(&found.row, date).is_some_and(|age| age >= least);
        self.function.as_ref().is_none_or(of_function) && self.older_than.is_none_or(old)
    }
}

/// Prints pages as they come, as a table or as one JSON document.
struct Printer {
    json: bool,
    progress: Progress,
    widths: [usize; 5],
    looked_at: u64,
    printed: u64,
    held: u64,
    unusable: u64,
    read_units: f64,
}

impl Printer {
    fn new(json: bool, table: &str) -> io::Result<Self> {
        if json {
            output::line(&format!("{{\"table\": {}, \"rows\": [", json!(table)))?;
        }
        let [looked_at, printed, held, unusable] = [0; 4];
        let widths = [3, 5, 5, 8, 10];
        Ok(Self { json, progress: Progress::new(), widths, looked_at, printed, held, unusable, read_units: 0.0 })
    }

    fn page(&mut self, page: &Page, wants: impl Fn(&FoundRow) -> bool) -> io::Result<()> {
        self.progress.clear();
        self.looked_at += page.looked_at;
        self.read_units += page.read_units;
        let wanted: Vec<_> = page.rows.iter().filter(|found| wants(found)).collect();
        let heading = self.printed == 0 && !wanted.is_empty() && !self.json;
        let cells: Vec<_> = wanted.iter().map(|found| cells(found, page.date)).collect();
        for cells in &cells {
            for (widest, cell) in self.widths.iter_mut().zip(cells) {
                *widest = (*widest).max(width(cell).min(WIDEST));
            }
        }
        if heading {
            self.cells(&["KEY", "STATE", "AGE", "FUNCTION", "REQUEST ID", "TEMPLATE, VERSION"].map(str::to_owned))?;
        }
        for (found, cells) in wanted.iter().zip(&cells) {
            if self.json {
                let comma = if self.printed == 0 { "" } else { "," };
                output::line(&format!("{comma}{}", lock::json(found, page.date)))?;
            } else {
                self.cells(cells)?;
            }
            self.printed += 1;
            self.held += u64::from(matches!(found.row, Row::Held(_)));
            self.unusable += u64::from(matches!(found.row, Row::Unusable(_)));
        }
        self.progress.tell(&format!("{} rows looked at, {} listed", count(self.looked_at), count(self.printed)));
        Ok(())
    }

    fn cells(&self, cells: &[String; 6]) -> io::Result<()> {
        let mut line = String::new();
        for (width, cell) in self.widths.iter().zip(cells) {
            line.push_str(&format!("{}  ", fitted(cell, *width)));
        }
        line.push_str(&cells[5]);
        output::line(line.trim_end())
    }

    fn summary(&self) -> Value {
        json!({
            "looked_at": self.looked_at, "listed": self.printed, "held": self.held, "unusable": self.unusable,
            "read_units": self.read_units,
        })
    }

    /// Before the table's end: a JSON document is ended nevertheless, and says why.
    fn give_up(mut self, stop: Stop) -> Result<Stop, Stop> {
        self.progress.clear();
        if self.json && !matches!(stop, Stop::Output(_)) {
            output::line(&format!("], \"summary\": {}, \"error\": {}}}", self.summary(), stop.json()))?;
        }
        let so_far = format!("the list is not whole, {} rows were looked at", count(self.looked_at));
        let stop = match stop {
            Stop::Aws(told) if self.looked_at > 0 => Stop::Aws(format!("{told} ({so_far})")),
            Stop::Interrupted(_) => Stop::Interrupted(format!("interrupted: {so_far}")),
            stop => stop,
        };
        Ok(if self.json { Stop::Told(Box::new(stop)) } else { stop })
    }

    fn end(mut self) -> io::Result<Ended> {
        self.progress.clear();
        if self.json {
            output::line(&format!("], \"summary\": {}}}", self.summary()))?;
        } else {
            let (held, looked_at) = (count(self.held), count(self.looked_at));
            let listed = if self.printed == 0 { "nothing to list: ".to_owned() } else { String::new() };
            let unusable = match self.unusable {
                0 => String::new(),
                n => format!(", {} that can't be used (`leaseholdctl show` explains one)", count(n)),
            };
            let units = format!("{} read units", self.read_units);
            output::line(&format!("{listed}{held} held{unusable}, of {looked_at} rows looked at ({units})"))?;
        }
        Ok(if self.unusable == 0 { Ended::Fine } else { Ended::Problem })
    }
}

fn cells(found: &FoundRow, date: Option<u64>) -> [String; 6] {
    let holder = lock::holder(&found.row);
    let text =
        |text: Option<&String>| text.filter(|text| !text.is_empty()).map_or("-".to_owned(), |text| cut(text, 80));
    let version = lock::version(&found.row).map_or_else(String::new, |version| format!(", {version}"));
    let template = match (&found.row, holder) {
        (Row::Unusable(unusable), _) => cut(&unusable.to_string(), 160),
        (_, holder) => format!("{}{version}", text(holder.map(|holder| &holder.template))),
    };
    [
        found.key.as_ref().map_or("(the key is no string)".to_owned(), |key| shown_key(key, LONGEST_KEY)),
        lock::state(&found.row).to_owned(),
        lock::age(&found.row, date).map_or("-".to_owned(), span),
        text(holder.map(|holder| &holder.function)),
        text(holder.map(|holder| &holder.request_id)),
        template,
    ]
}
