//! One cell of the matrix: a step, a fault and its victim, and what is to come of it.

use std::time::Duration;

use leasehold_sandbox::Process;

use crate::{next::Cause, stage::extension, steps::Step};

/// Whom the fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Victim {
    Handler,
    Extension,
}

/// What happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// SIGKILL.
    Kill,
    /// SIGABRT, as `abort` sends it.
    Abort,
    /// SIGSTOP, and SIGCONT two leases later.
    Stop,
}

/// The row right after the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// There is none.
    Absent,
    /// The first one's.
    Held,
    /// Nobody's.
    Free,
}

/// When a request of the first one that was held goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Before the second one asks.
    First,
    /// While the second one waits.
    WhileWaiting,
    /// While the second one holds the key: as late as it can come.
    WhileHeld,
}

/// A cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) victim: Victim,
    pub(crate) fault: Fault,
    pub(crate) step: Step,
    /// What the first one's caller gets: a response where none is named, else an error of one of these types. Where a handler
    /// sees its keeper die, its own error and Lambda's come at the same time.
    pub(crate) caller: &'static [&'static str],
    pub(crate) after: After,
    pub(crate) next: Cause,
}

/// Declares one named test a cell: the caller's outcome, the row right after the fault, and why the next one is granted.
macro_rules! cells {
    ($victim:ident $fault:ident: $($name:ident => $step:ident, $caller:expr, $after:ident, $next:expr;)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                use $crate::{cell::*, next::Cause::*, steps::Step};
                Cell {
                    victim: Victim::$victim,
                    fault: Fault::$fault,
                    step: Step::$step,
                    caller: &$caller,
                    after: After::$after,
                    next: $next,
                }
                .play()
                .await;
            }
        )*
    };
}
pub(crate) use cells;

impl Cell {
    /// Long where the row has to be freed before its lease is over, short where the fault lasts two of them.
    pub(crate) const fn lease(self) -> Duration {
        match (self.fault, self.step) {
            (Fault::Stop, _) if matches!(self.victim, Victim::Handler) => Duration::from_secs(3),
            (Fault::Stop, _) => Duration::from_secs(2),
            (_, Step::Renewal) => Duration::from_secs(6),
            _ => Duration::from_secs(60),
        }
    }

    /// Where the second one runs: in the same environment where that is what frees the row, or to see that it still works.
    pub(crate) fn second_place(self) -> usize {
        let extension_died = self.victim == Victim::Extension && self.fault != Fault::Stop;
        usize::from(!(extension_died || self.step == Step::Frozen))
    }

    /// Whether the keeper sends a release because of the fault.
    pub(crate) fn frees_at_once(self) -> bool {
        self.victim == Victim::Handler
            && self.fault != Fault::Stop
            && matches!(self.step, Step::Unread | Step::Running | Step::Renewal | Step::Posted)
    }

    /// Whether the first one keeps its lease over the fault.
    pub(crate) fn holder_lives_on(self) -> bool {
        self.victim == Victim::Handler
            && self.fault == Fault::Stop
            && (Step::AcquireSent..=Step::Posted).contains(&self.step)
    }

    pub(crate) fn opening(self) -> Opening {
        match (self.victim, self.fault, self.step) {
            (Victim::Handler, Fault::Kill | Fault::Abort, Step::AcquireSent | Step::Renewal)
            | (Victim::Extension, Fault::Stop, Step::Renewal) => Opening::WhileHeld,
            (Victim::Handler, Fault::Kill | Fault::Abort, Step::Written)
            | (Victim::Extension, Fault::Stop, Step::Written)
            | (Victim::Handler, _, Step::Releasing)
            | (Victim::Extension, Fault::Stop, Step::Releasing) => Opening::WhileWaiting,
            _ => Opening::First,
        }
    }

    pub(crate) fn process(self) -> Process {
        match self.victim {
            Victim::Handler => Process::Runtime,
            Victim::Extension => extension(),
        }
    }

    /// A stopped process dies of SIGABRT once it goes on.
    pub(crate) fn is_abort_pending(self) -> bool {
        self.fault == Fault::Abort && self.step == Step::Frozen
    }

    pub(crate) const fn crash(self) -> &'static [&'static str] {
        match self.victim {
            Victim::Handler => &["Runtime.ExitError"],
            // The handler may meet it at any point of its end.
            Victim::Extension => &["Extension.Crash", "KeeperGone", "KeeperMissing"],
        }
    }
}
