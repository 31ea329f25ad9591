//! Where a lease is taken by hand: in an invocation, or in a program of its own.

use std::sync::Arc;

use lambda_runtime::Context;

use super::held_by_hand::{Held, Note};
use crate::key::LockKey;
use crate::lease::Scope;
use crate::session::Table;

/// Where a lease is taken: what is said about its holder, until when there is time, and what is held there already.
#[derive(Clone, Debug)]
pub(super) enum Within {
    /// A program of its own.
    Program(Arc<Context>),
    /// One invocation.
    Invocation(Arc<Invocation>),
}

#[derive(Debug)]
pub(super) struct Invocation {
    pub(super) context: Context,
    /// The layers around the handler that began it: a task that the handler spawned is not within them any more.
    pub(super) around: Option<Scope>,
    /// What was taken by hand, by whichever [`Leasehold`] of this invocation.
    pub(super) held: Arc<Held>,
}

impl Within {
    pub(super) fn context(&self) -> &Context {
        match self {
            Self::Program(context) => context,
            Self::Invocation(invocation) => &invocation.context,
        }
    }

    /// Notes that this key is being taken here; `None` if it is already.
    pub(super) fn note(&self, table: &Table, key: &LockKey) -> Option<Note> {
        match self {
            // Its parts may wait for each other.
            Self::Program(_) => Some(Note::none()),
            Self::Invocation(invocation) => Held::note(&invocation.held, table, key, invocation.around.as_ref()),
        }
    }

    /// Whether a layer around the invocation's handler holds this row.
    pub(super) fn is_held_around(&self, table: &Table, key: &LockKey) -> bool {
        match self {
            Self::Program(_) => false,
            Self::Invocation(invocation) => {
                invocation.around.as_ref().is_some_and(|around| around.has(|lease| lease.is_on(table, key)))
            }
        }
    }
}
