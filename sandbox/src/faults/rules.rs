//! Which requests meet which fault, and the handle by which a test watches it happen.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::watch;

use super::{Fault, Passing};
use crate::Error;

type Choose = Box<dyn Fn(&Passing) -> Option<Fault> + Send + Sync>;

/// The faults that are injected at the moment.
#[derive(Default)]
pub(super) struct Rules(Mutex<Vec<Rule>>);

struct Rule {
    left: usize,
    choose: Choose,
    watched: Arc<Watched>,
}

struct Watched {
    met: watch::Sender<Vec<Passing>>,
    open: watch::Sender<bool>,
    carried_out: watch::Sender<usize>,
}

/// What is to be done with a request.
pub(super) struct Verdict {
    pub(super) fault: Fault,
    passing: Passing,
    watched: Arc<Watched>,
}

impl Verdict {
    /// The request has come to where the fault acts.
    pub(super) fn meet(&self) {
        self.watched.met.send_modify(|met| met.push(self.passing.clone()));
    }

    /// Notes, when called, that a request that was held has been carried out.
    pub(super) fn carried_out(&self) -> impl FnOnce() + Send + 'static {
        let watched = Arc::clone(&self.watched);
        move || watched.carried_out.send_modify(|count| *count += 1)
    }

    /// Waits until what is held may go on; for good if nobody can open it any more.
    pub(super) async fn opened(&self) {
        if self.watched.open.subscribe().wait_for(|open| *open).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// A fault that was injected; dropping the handle leaves it in place.
#[derive(Clone)]
pub struct Injected(Arc<Watched>);

impl Rules {
    pub(super) fn add(&self, times: usize, choose: Choose) -> Injected {
        let watched = Arc::new(Watched {
            met: watch::Sender::default(),
            open: watch::Sender::new(false),
            carried_out: watch::Sender::default(),
        });
        self.lock().push(Rule { left: times, choose, watched: Arc::clone(&watched) });
        Injected(watched)
    }

    pub(super) fn clear(&self) {
        for rule in self.lock().drain(..) {
            rule.watched.open.send_replace(true);
        }
    }

    /// The fault that this request meets.
    pub(super) fn judge(&self, passing: &Passing) -> Option<Verdict> {
        let mut rules = self.lock();
        let mut usable = rules.iter_mut().filter(|rule| rule.left > 0);
        let (rule, fault) = usable.find_map(|rule| (rule.choose)(passing).map(|fault| (rule, fault)))?;
        rule.left -= 1;
        Some(Verdict { fault, passing: passing.clone(), watched: Arc::clone(&rule.watched) })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Injected {
    /// The requests that met it so far.
    pub fn met(&self) -> Vec<Passing> {
        self.0.met.borrow().clone()
    }

    /// Waits until a request meets it, and returns the first that did.
    ///
    /// One meets it where it acts: a request that is lost, held or answered instead has not been carried out, one whose
    /// reply is lost, held or replaced has.
    ///
    /// # Errors
    ///
    /// [`Error::NoRequest`] when none came within the limit.
    pub async fn reached(&self, limit: Duration) -> Result<Passing, Error> {
        self.reached_by(1, limit).await.map(|mut met| met.swap_remove(0))
    }

    /// Waits until this many requests have met it, and returns them.
    ///
    /// # Errors
    ///
    /// [`Error::NoRequest`] when they did not come within the limit.
    pub async fn reached_by(&self, count: usize, limit: Duration) -> Result<Vec<Passing>, Error> {
        let mut met = self.0.met.subscribe();
        let reached = tokio::time::timeout(limit, met.wait_for(|met| met.len() >= count)).await;
        match reached {
            Ok(Ok(met)) => Ok(met.clone()),
            Ok(Err(_)) | Err(_) => Err(Error::NoRequest { count, limit }),
        }
    }

    /// Waits until a request that was held in front of DynamoDB has been carried out, whether its client still waits for
    /// the reply or not.
    ///
    /// # Errors
    ///
    /// [`Error::NoRequest`] when none was within the limit.
    pub async fn carried_out(&self, limit: Duration) -> Result<(), Error> {
        let mut carried_out = self.0.carried_out.subscribe();
        let done = tokio::time::timeout(limit, carried_out.wait_for(|count| *count > 0)).await;
        match done {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Error::NoRequest { count: 1, limit }),
        }
    }

    /// Lets what is held go on, now and from now on.
    pub fn open(&self) {
        self.0.open.send_replace(true);
    }
}

impl fmt::Debug for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Injected").field("met", &self.met().len()).finish_non_exhaustive()
    }
}
