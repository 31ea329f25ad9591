//! What handlers may do with the types of the public API: send them, share them, clone them, print them. Each line fails to
//! compile when a type can no longer do it.

use std::fmt::Debug;

use leasehold::key::KeyHash;
use leasehold::layer::batch::BusyMessage;
use leasehold::layer::{AnswerFor, LeaseService};
use leasehold::{
    BatchLayer, BlockingLease, Error, FencingToken, HeldLease, HolderInfo, InvocationError, KeeperChoice, KeyState,
    Lease, LeaseGuard, LeaseLayer, LeaseLayerBuilder, LeaseMetrics, Leasehold, MissingPath, Mode, OnCrash, OnLoss,
    OnUnavailable, OwnerId, Release, SettingsError, metrics,
};

/// A payload that can nothing: what a layer can do must not depend on it.
#[allow(dead_code, reason = "only its type matters")]
struct Payload(std::rc::Rc<()>);

fn shared<T: Send + Sync + Debug + 'static>() {}
fn cloned<T: Clone + Send + Sync + Debug + 'static>() {}
fn copied<T: Copy + PartialEq + Default + Send + Sync + Debug + 'static>() {}
fn plain<T: Copy + Eq + Send + Sync + Debug + 'static>() {}
fn error<T: std::error::Error + Send + Sync + 'static>() {}

#[test]
fn handles_and_layers_go_where_handlers_go() {
    cloned::<Lease>();
    cloned::<LeaseGuard>();
    cloned::<Leasehold>();
    shared::<HeldLease>();
    shared::<BlockingLease>();
    cloned::<KeyState>();
    cloned::<KeyHash>();
    cloned::<BusyMessage>();
    cloned::<LeaseLayer<Payload>>();
    cloned::<BatchLayer<Payload>>();
    cloned::<LeaseService<fn(), Payload>>();
    shared::<LeaseLayerBuilder<Payload>>();
    cloned::<AnswerFor>();
    cloned::<HolderInfo>();
}

#[test]
fn small_values_are_copied_and_compared() {
    plain::<FencingToken>();
    plain::<OwnerId>();
    plain::<KeeperChoice>();
    plain::<MissingPath>();
    plain::<Mode>();
    plain::<OnCrash>();
    plain::<OnLoss>();
    plain::<OnUnavailable>();
    plain::<Release>();
    copied::<LeaseMetrics>();
    copied::<metrics::LayerCounts>();
}

#[test]
fn errors_can_be_boxed_sent_and_passed_on_with_a_question_mark() {
    error::<Error>();
    error::<SettingsError>();
    error::<InvocationError<Error>>();
    fn boxed() -> Result<(), lambda_runtime::Error> {
        Lease::current()?;
        Ok(())
    }
    assert!(boxed().unwrap_err().downcast_ref::<Error>().is_some_and(|error| error.error_type() == "NoLease"));
}

#[cfg(feature = "testing")]
#[test]
fn the_test_double_is_shared_by_its_clones() {
    cloned::<leasehold::testing::TestKeeper>();
    cloned::<leasehold::testing::Happened>();
}

#[cfg(feature = "dynamodb")]
#[test]
fn guarded_transactions_can_be_spawned() {
    cloned::<leasehold::GuardedTransaction>();
    error::<leasehold::error::TransactionError>();
}

#[cfg(feature = "http")]
#[test]
fn route_layers_go_into_routers_whatever_their_bodies() {
    use leasehold::layer::route::{RouteService, SessionLayer, SessionService};

    cloned::<leasehold::RouteLayer>();
    cloned::<RouteService<fn()>>();
    cloned::<SessionLayer>();
    cloned::<SessionService<fn()>>();
}
