//! The watch without a terminal: a line for each event, and one for what there is at the first look.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::Watched;
use super::board::{Board, Event};
use crate::arguments::interrupted;
use crate::ended::{Ended, Stop};
use crate::lock::millis;
use crate::output;
use crate::text::{count, safe, span};

pub(super) async fn run(
    watched: &mut Watched<'_>,
    board: &mut Board,
    every: Duration,
    looks: Option<u64>,
    json: bool,
) -> Result<Ended, Stop> {
    let mut end = std::pin::pin!(interrupted());
    loop {
        watched.look(board).await?;
        if board.looks == 1 {
            begin(board, json)?;
        }
        for event in board.take_events() {
            tell(&event, json)?;
        }
        if looks.is_some_and(|looks| board.looks >= looks) {
            return Ok(Ended::Fine);
        }
        tokio::select! {
            () = sleep(every) => {}
            () = &mut end => return Ok(Ended::Fine),
        }
    }
}

fn begin(board: &Board, json: bool) -> Result<(), Stop> {
    let (held, unusable) = (board.held.len() as u64 + board.more, board.unusable);
    if json {
        return Ok(output::line(
            &json!({ "at_ms": 0, "event": "begin", "held": held, "unusable": unusable }).to_string(),
        )?);
    }
    let unusable = if unusable == 0 { String::new() } else { format!(", {} that can't be used", count(unusable)) };
    Ok(output::line(&format!("{:>8}  {} held{unusable}", "0s", count(held)))?)
}

fn tell(event: &Event, json: bool) -> Result<(), Stop> {
    let (kind, key) = (event.kind.word(), &event.key);
    if json {
        let at_ms = millis(event.at);
        let line = json!({ "at_ms": at_ms, "event": kind.replace(' ', "_"), "key": key, "told": event.told });
        return Ok(output::line(&line.to_string())?);
    }
    Ok(output::line(&format!("{:>8}  {kind:<10}  {}  {}", span(event.at), safe(key), safe(&event.told)))?)
}
