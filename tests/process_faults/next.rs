//! Why the next one was granted the key, told from what the processes said.

use std::time::Duration;

use leasehold_sandbox::demo::Said;

use crate::stage::Stage;

/// The cause of the next grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Its first attempt found no row, or a free one.
    FirstTry,
    /// It waited until the holder's own keeper freed the row, for this reason.
    Freed(&'static str),
    /// The next extension of the environment freed what its predecessor had noted in the journal.
    Journal,
    /// It took the row over from a holder whose version had stayed the same for a whole lease.
    Observed,
}

impl Cause {
    /// Whether the next one sees the first one's row before it is granted.
    pub(crate) const fn is_waited_for(self) -> bool {
        matches!(self, Self::Freed(_) | Self::Observed)
    }

    /// Checks that this is why `second` has the lease after `first`, whose owner it was.
    pub(crate) async fn check(self, stage: &Stage, first: &str, owner: Option<&str>, second: &str, lease: Duration) {
        let acquired = stage.said("acquired", second).await;
        let owned =
            |said: &Said| assert_eq!(said.field("owner").as_deref(), owner, "another lease than the first one's");
        assert_eq!(acquired.took_over(), self == Self::Observed, "{self:?}\n{}", stage.timeline());
        match self {
            Self::FirstTry => {
                assert_eq!(acquired.field("attempts").as_deref(), Some("1"), "{}", stage.timeline());
                assert!(stage.has_said("waiting", second).is_none(), "{}", stage.timeline());
            }
            Self::Freed(reason) => {
                waited_for(stage, first, second).await;
                let released = stage.said("released", first).await;
                owned(&released);
                assert_eq!(released.field("reason").as_deref(), Some(reason), "{}", stage.timeline());
            }
            Self::Journal => {
                let reason = "left behind by an earlier extension";
                let freed = |event: &leasehold_sandbox::Event| {
                    Said::in_event(event).is_some_and(|said| said.field("reason").as_deref() == Some(reason))
                };
                let event = stage.sandbox.log().wait_for(freed, crate::stage::SOON).await.unwrap();
                owned(&Said::in_event(&event).unwrap());
            }
            Self::Observed => {
                waited_for(stage, first, second).await;
                let seen = stage.said_at("waiting", second).await;
                let taken = acquired.at_us().unwrap();
                let waited = Duration::from_micros(taken - seen);
                // The line is written a moment after the answer from which the lease is counted.
                assert!(waited + Duration::from_millis(50) >= lease, "taken after {waited:?}\n{}", stage.timeline());
            }
        }
    }
}

async fn waited_for(stage: &Stage, first: &str, second: &str) {
    let waiting = stage.said("waiting", second).await;
    assert_eq!(waiting.field("holder_request_id").as_deref(), Some(first), "{}", stage.timeline());
}
