//! `leaseholdctl`: the command line for who runs functions that lock with leasehold.
//!
//! | file | what it is for |
//! |---|---|
//! | `arguments` | the command line as a whole; what its exit status means |
//! | `aws`, `options`, `asking`, `refused` | which AWS, which table; reads that are tried again; what was not answered, in words |
//! | `table`, `doctor` | whether a table and a function are set up right |
//! | `list`, `show`, `watch`, `free` | what is held, by whom, since when |
//! | `verify` | the demo's promises, on Lambda and DynamoDB themselves |
//! | `report`, `cost` | what happened, from the log's lines; what it costs |
//! | `lock` | one row, for people and as JSON |
//! | `finding`, `output`, `text` | how things are told |
#![forbid(unsafe_code)]

mod arguments;
mod asking;
mod aws;
mod cost;
mod doctor;
mod ended;
mod finding;
mod free;
mod list;
mod lock;
mod options;
mod output;
mod prices;
mod refused;
mod report;
mod show;
mod table;
mod text;
mod verify;
mod watch;

use std::process::ExitCode;

fn main() -> ExitCode {
    arguments::main()
}
