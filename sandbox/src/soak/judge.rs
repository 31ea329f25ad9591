//! How an invocation may end: with an answer, one of the typed errors, or as its processes did.

use super::{
    Break,
    history::Claim,
    mishap::{Mishap, is_panic},
};
use crate::Outcome;

/// What a key's contenders are answered in bad weather.
const TYPED: [&str; 8] = [
    "LeaseBusy",
    "LeaseLost",
    "Unconfirmed",
    "DeadlineTooClose",
    "GrantTooLate",
    "StoreThrottled",
    "StoreUnavailable",
    "TransactionConflict",
];
/// What they are answered only when their extension was ended or stopped.
const WITHOUT_KEEPER: [&str; 2] = ["KeeperMissing", "KeeperGone"];
/// How an invocation ends whose processes do.
const PROCESS: [&str; 4] = ["Runtime.ExitError", "Extension.Crash", "Sandbox.Timedout", "ServiceException"];

/// Whether the invocation may have ended so, with what happened to it and to the one before in its environment.
pub(super) fn outcome(outcome: &Outcome, mishaps: [Option<Mishap>; 2]) -> Result<(), Break> {
    let Some(error) = outcome.error() else { return Ok(()) };
    let error_type = error.error_type.as_str();
    let [own, before] = mishaps;
    let expected = match own {
        Some(Mishap::Panic) => is_panic(outcome),
        Some(Mishap::Error) => error_type == "AskedToFail",
        _ => false,
    };
    let ended = [own, before].into_iter().flatten().any(Mishap::may_end_processes);
    let of_process = ended && (PROCESS.contains(&error_type) || WITHOUT_KEEPER.contains(&error_type));
    if expected || of_process || TYPED.contains(&error_type) {
        return Ok(());
    }
    let what = format!("request {} ended with {error_type}: {}", outcome.request_id, error.message);
    Err(Break::new("every invocation has a known outcome", None, what))
}

/// A success is only given to whoever looked after the last of its work, and was told that it held the key.
pub(super) fn success(request: &str, token: Option<u64>, claim: Option<&Claim>) -> Result<(), Break> {
    let problem = match claim {
        None => "never told the witness that it held its key".to_owned(),
        Some(claim) if !claim.looked => "succeeded though its last look was refused".to_owned(),
        Some(claim) if !claim.ended => "succeeded before its work was over".to_owned(),
        Some(claim) if claim.token != token => format!("answered token {token:?}, but worked under {:?}", claim.token),
        Some(_) => return Ok(()),
    };
    let key = claim.map(|claim| claim.key.as_str());
    Err(Break::new("no success after the lease", key, format!("request {request} {problem}")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::InvocationError;

    fn judged(error_type: &str, mishaps: [Option<Mishap>; 2]) -> bool {
        let result = Err(InvocationError::new(error_type, "message".to_owned()));
        let ended = Outcome { request_id: "r".to_owned(), environment: None, took: Duration::ZERO, result };
        outcome(&ended, mishaps).is_ok()
    }

    #[test]
    fn an_end_that_nothing_explains_is_a_break() {
        assert!(judged("LeaseBusy", [None, None]));
        assert!(!judged("Sandbox.Timedout", [None, None]));
        assert!(!judged("Sandbox.Timedout", [Some(Mishap::Error), None]));
        assert!(judged("Sandbox.Timedout", [Some(Mishap::Timeout), None]));
        assert!(judged("Extension.Crash", [None, Some(Mishap::KillExtension)]));
        assert!(!judged("MalformedRow", [Some(Mishap::KillHandler), None]));
        assert!(!judged("KeeperMissing", [None, None]));
    }

    #[test]
    fn a_success_needs_a_last_look_that_said_yes() {
        let claim = Claim {
            key: "k".to_owned(),
            request: "r".to_owned(),
            owner: None,
            token: Some(7),
            start: 1,
            until: 9,
            last: 5,
            looked: true,
            ended: true,
        };
        assert!(success("r", Some(7), Some(&claim)).is_ok());
        assert!(success("r", Some(8), Some(&claim)).is_err());
        assert!(success("r", Some(7), None).is_err());
        assert!(success("r", Some(7), Some(&Claim { looked: false, ..claim.clone() })).is_err());
        assert!(success("r", Some(7), Some(&Claim { ended: false, ..claim })).is_err());
    }
}
