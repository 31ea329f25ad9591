//! The keeper over real sockets and an in-memory store, on paused time.

mod crash;
mod crowd;
mod drain;
mod event_log;
mod formats;
mod grant;
mod hostile;
mod in_process;
mod looks;
mod loss;
mod memory_store;
mod metrics;
mod parking;
mod pause;
mod queue;
mod queue_breaks;
mod queue_schedules;
mod quiesce;
mod release;
mod silence;
mod state;
mod stress;
mod support;
mod transcripts;
mod versions;
mod waiting;
