//! Which leases the running handler is under: the innermost layer's first, in a task-local.

use std::sync::Arc;
use std::time::Duration;

use super::Lease;
use crate::error::{NoLease, Unlocked};

tokio::task_local! {
    /// Set while a layer polls its handler, and so not inherited by tasks that the handler spawns.
    pub(crate) static SCOPE: Scope;
}

/// One layer's lease, or why it has none, within the scope of the layers around it.
#[derive(Clone, Debug)]
pub(crate) struct Scope(Arc<Node>);

#[derive(Debug)]
struct Node {
    name: Arc<str>,
    lease: Result<Lease, Unlocked>,
    /// The most that was left when an invocation began.
    most_left: Duration,
    outer: Option<Scope>,
}

impl Scope {
    /// A layer's scope, within the one that is being polled.
    pub(crate) fn enter(name: Arc<str>, lease: Result<Lease, Unlocked>, most_left: Duration) -> Self {
        Self(Arc::new(Node { name, lease, most_left, outer: Self::around() }))
    }

    /// The innermost layer's lease. Where that layer runs unlocked, an outer one's would be a lease on something else.
    pub(super) fn current() -> Result<Lease, NoLease> {
        SCOPE
            .try_with(|scope| scope.0.lease.clone())
            .unwrap_or(Err(Unlocked::Outside))
            .map_err(|unlocked| NoLease { unlocked })
    }

    /// The lease of the innermost layer of this name.
    pub(super) fn named(name: &str) -> Result<Lease, NoLease> {
        let found = SCOPE.try_with(|scope| {
            let lease = scope.each().find(|node| *node.name == *name).map(|node| node.lease.clone());
            lease.unwrap_or_else(|| Err(Unlocked::NoLayerNamed(name.to_owned())))
        });
        found.unwrap_or(Err(Unlocked::Outside)).map_err(|unlocked| NoLease { unlocked })
    }

    /// Whether a layer around the one that is being polled holds this row.
    pub(crate) fn holds(is_it: impl Fn(&Lease) -> bool) -> bool {
        Self::around().is_some_and(|scope| scope.has(is_it))
    }

    /// The scope that is being polled, for who takes it along to where it is not.
    pub(crate) fn around() -> Option<Self> {
        SCOPE.try_get().ok()
    }

    /// The most that was left when an invocation began, by the layers around: they saw it before they waited.
    pub(crate) fn most_left() -> Duration {
        Self::around().map_or(Duration::ZERO, |scope| scope.0.most_left)
    }

    /// Whether one of its layers has this lease.
    pub(crate) fn has(&self, is_it: impl Fn(&Lease) -> bool) -> bool {
        self.each().filter_map(|node| node.lease.as_ref().ok()).any(is_it)
    }

    /// Whether this is that scope, or one within it.
    pub(crate) fn is_within(&self, outer: &Self) -> bool {
        self.each().any(|node| std::ptr::eq(node, &*outer.0))
    }

    fn each(&self) -> impl Iterator<Item = &Node> {
        std::iter::successors(Some(&*self.0), |node| node.outer.as_ref().map(|outer| &*outer.0))
    }
}
