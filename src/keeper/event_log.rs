//! The lines of the log that tell a lease's life: one event a line, its particulars as fields.

use std::time::Duration;

use super::trail::Trail;
use super::wording::millis;
use crate::protocol::{FencingToken, HolderInfo, OwnerId, Verdict};
use crate::store::Lock;

/// What all of these lines are logged under.
const TARGET: &str = "leasehold::keeper";

pub(super) fn acquired(
    lock: &Lock,
    owner: OwnerId,
    token: Option<FencingToken>,
    (waited_ms, queued_ms): (u64, u64),
    attempts: u32,
    took_over: bool,
) {
    tracing::info!(
        target: TARGET, table = %lock.table.name, key = %lock.key, request_id = %lock.holder.request_id,
        %owner, token = token.map(FencingToken::get), waited_ms, queued_ms, attempts, took_over, "acquired"
    );
}

pub(super) fn waiting(lock: &Lock, holder: Option<&HolderInfo>) {
    let holder_request_id = holder.map(|holder| holder.request_id.as_str());
    let holder = holder.map(ToString::to_string);
    tracing::info!(
        target: TARGET, table = %lock.table.name, key = %lock.key, request_id = %lock.holder.request_id,
        holder, holder_request_id, "waiting"
    );
}

pub(super) fn verdict(lock: &Lock, verdict: &Verdict, waited_ms: u64, trail: &Trail) {
    let (table, key, request_id) = (&lock.table.name, &lock.key, &lock.holder.request_id);
    match verdict {
        Verdict::Busy(busy) => {
            let holder = busy.holder.as_ref().map(ToString::to_string);
            tracing::info!(
                target: TARGET, %table, %key, %request_id, holder, waited_ms, attempts = busy.attempts,
                %trail, "busy"
            );
        }
        Verdict::Failed(failure) => {
            tracing::warn!(target: TARGET, %table, %key, %request_id, waited_ms, reason = %failure, %trail, "failed");
        }
        Verdict::Unusable(unusable) => {
            tracing::warn!(target: TARGET, %table, %key, %request_id, waited_ms, reason = %unusable, %trail, "failed");
        }
        Verdict::TooLate => {
            tracing::warn!(target: TARGET, %table, %key, %request_id, waited_ms, reason = "too late", %trail, "failed");
        }
        Verdict::Cancelled => {
            tracing::info!(target: TARGET, %table, %key, %request_id, waited_ms, "cancelled");
        }
    }
}

pub(super) fn released(lock: &Lock, owner: OwnerId, token: Option<u64>, held_ms: u64, reason: &str) {
    tracing::info!(
        target: TARGET, table = %lock.table.name, key = %lock.key, request_id = %lock.holder.request_id,
        %owner, token, held_ms, reason, "released"
    );
}

pub(super) fn parked(lock: &Lock, owner: OwnerId, token: Option<u64>, held_ms: u64) {
    tracing::info!(
        target: TARGET, table = %lock.table.name, key = %lock.key, request_id = %lock.holder.request_id,
        %owner, token, held_ms, "parked"
    );
}

pub(super) fn not_released(
    lock: &Lock,
    owner: OwnerId,
    token: Option<u64>,
    reason: &str,
    failure: &impl std::fmt::Display,
) {
    tracing::warn!(
        target: TARGET, table = %lock.table.name, key = %lock.key, request_id = %lock.holder.request_id,
        %owner, token, reason, %failure, "not released: the row frees itself when its lease is over"
    );
}

pub(super) fn left_to_expire(lock: &Lock, owner: OwnerId, token: Option<u64>, reason: &str) {
    tracing::info!(
        target: TARGET, table = %lock.table.name, key = %lock.key, request_id = %lock.holder.request_id,
        %owner, token, reason, "left to expire"
    );
}

pub(super) fn state_not_left(lock: &Lock, reason: &str) {
    tracing::warn!(
        target: TARGET, table = %lock.table.name, key = %lock.key, request_id = %lock.holder.request_id,
        reason, "state not left"
    );
}

pub(super) fn state_left_unknown(lock: &Lock, reason: &str) {
    tracing::warn!(
        target: TARGET, table = %lock.table.name, key = %lock.key, request_id = %lock.holder.request_id,
        reason, "state left or not: no answer"
    );
}

pub(super) fn silent(lock: &Lock, owner: OwnerId, max_silence: Option<Duration>) {
    tracing::warn!(
        target: TARGET, table = %lock.table.name, key = %lock.key, request_id = %lock.holder.request_id,
        %owner, max_silence_ms = max_silence.map(millis),
        "not renewed any more: the handler told of no progress for as long as `max_silence` allows"
    );
}

pub(super) fn progress_again(lock: &Lock, owner: OwnerId) {
    tracing::info!(
        target: TARGET, table = %lock.table.name, key = %lock.key, request_id = %lock.holder.request_id,
        %owner, "renewed again: the handler told of its progress in time"
    );
}

pub(super) fn lost(lock: &Lock, owner: OwnerId, token: Option<u64>, reason: &str, trail: &Trail) {
    tracing::warn!(
        target: TARGET, table = %lock.table.name, key = %lock.key, request_id = %lock.holder.request_id,
        %owner, token, reason, %trail, "lost"
    );
}
