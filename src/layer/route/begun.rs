//! Who a request is for, and a session that was begun for it before it came to its route.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http::Extensions;
use lambda_runtime::Context;
use uuid::Uuid;

use crate::keeper::client::KeeperClient;
use crate::lease::Hold;

/// A session in a request's extensions, for the first layer that takes it.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    keeper: Arc<KeeperClient>,
    hold: Arc<Mutex<Option<Arc<Hold>>>>,
}

impl Begun {
    pub(super) fn new(keeper: Arc<KeeperClient>, hold: Arc<Hold>) -> Self {
        Self { keeper, hold: Arc::new(Mutex::new(Some(hold))) }
    }

    /// Takes the session out, if it is still there.
    pub(super) fn take(&self) -> Option<Arc<Hold>> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The request's session, if there is one with this keeper that nobody has taken.
    pub(super) fn take_from(extensions: &Extensions, keeper: &KeeperClient) -> Option<Arc<Hold>> {
        let begun = extensions.get::<Self>()?;
        if begun.keeper.shares_keeper_with(keeper) { begun.take() } else { None }
    }
}

/// Whether it was said that requests come without an invocation's context.
#[derive(Debug, Default)]
pub(super) struct ContextMissed(AtomicBool);

impl ContextMissed {
    /// The invocation's context, which `lambda_http` puts into a request's extensions; elsewhere one without a deadline.
    pub(super) fn context_of(&self, extensions: &Extensions) -> Context {
        if let Some(context) = extensions.get::<Context>() {
            return context.clone();
        }
        if !self.0.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "a request has no `lambda_runtime::Context` in its extensions, so its deadline is unknown: run the router \
                 with `lambda_http::run`, or put one there"
            );
        }
        let mut context = Context::default();
        context.request_id = Uuid::new_v4().to_string();
        context
    }
}
