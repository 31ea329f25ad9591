//! From a batch as it came to records that can be worked on: each read by itself, with a key of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use lambda_runtime::{Context, LambdaEvent};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::ledger::Cause;
use super::order::{Order, Place};
use super::records::message;
use super::source::{Message, Record, Source, records};
use crate::error::{Error, NoUsableRecord};
use crate::key::LockKey;
use crate::layer::core::Core;
use crate::layer::key_source::KeySource;
use crate::layer::step::may_lack_it;
use crate::layer::{Plan, payload};
use crate::settings::Mode;

/// A batch that was read.
#[derive(Debug)]
pub(super) struct Batch<T> {
    pub(super) source: Source,
    pub(super) order: Order,
    pub(super) ids: Vec<String>,
    pub(super) messages: Vec<Option<Message>>,
    pub(super) records: Vec<Readied<T>>,
}

/// A record that was read.
#[derive(Debug)]
pub(super) enum Readied<T> {
    /// With its key, or why it has none where that is no reason not to work on it.
    Usable { payload: T, key: Result<LockKey, Error> },
    /// It can't be worked on.
    Unusable(Cause),
    /// It was taken up.
    Taken,
}

impl<T> Batch<T> {
    fn empty(source: Source) -> Self {
        let order = Order::default();
        Self { source, order, ids: Vec::new(), messages: Vec::new(), records: Vec::new() }
    }
}

impl<T> Readied<T> {
    fn key(&self) -> Option<&LockKey> {
        match self {
            Self::Usable { key, .. } => key.as_ref().ok(),
            Self::Unusable(_) | Self::Taken => None,
        }
    }

    /// Takes it up.
    pub(super) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Taken)
    }
}

/// Reads a batch.
///
/// # Errors
///
/// When it is none, and when none of its records can be worked on.
pub(super) fn open<T, K, B>(plan: &Plan<K, B>, event: &RawValue, context: &Context) -> Result<Batch<T>, Error>
where
    T: DeserializeOwned,
    K: KeySource<T>,
{
    let (source, raw) = records(event)?;
    let read: Vec<_> =
        raw.iter().map(|Record { json, .. }| catch_unwind(AssertUnwindSafe(|| read(plan, json, context)))).collect();
    if read.iter().all(|read| matches!(read, Ok(Err(_)))) {
        let records = read.len();
        if let Some(Ok(Err(first))) = read.into_iter().next() {
            return Err(NoUsableRecord { records, first: Box::new(first) }.into());
        }
        return Ok(Batch::empty(source));
    }
    let readied = |read: std::thread::Result<Result<Read<T>, Error>>| match read {
        Ok(Ok((payload, key))) => Readied::Usable { payload, key },
        Ok(Err(error)) => Readied::Unusable(Cause::Error(Arc::new(error))),
        // By a key's closure, or a type's `Deserialize`, of the handler's author.
        Err(panic) => Readied::Unusable(Cause::Panicked(message(&*panic))),
    };
    let readied: Vec<_> = read.into_iter().map(readied).collect();
    let places: Vec<_> = readied
        .iter()
        .zip(&raw)
        .map(|(readied, raw)| Place { key: readied.key(), line: raw.line.as_deref() })
        .collect();
    let order = Order::of(&places);
    let (ids, messages) = raw.into_iter().map(|record| (record.id, record.message)).unzip();
    Ok(Batch { source, order, ids, messages, records: readied })
}

type Read<T> = (T, Result<LockKey, Error>);

fn read<T, K, B>(plan: &Plan<K, B>, json: &RawValue, context: &Context) -> Result<Read<T>, Error>
where
    T: DeserializeOwned,
    K: KeySource<T>,
{
    let core = &plan.core;
    let (raw, event) =
        payload::deserialize::<T>(LambdaEvent::new(json.to_owned(), context.clone()), core.hides_values())?;
    match plan.keys.key(raw.get(), &event, core.settings.namespace.as_ref()) {
        Err(error) if is_refused(core, &error) => Err(core.hide(error)),
        key => Ok((event.payload, key)),
    }
}

fn is_refused(core: &Core, error: &Error) -> bool {
    core.mode() == Mode::Enforce && !may_lack_it(core, error)
}
