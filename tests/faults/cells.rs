//! How a table of cells becomes tests: each runs its step's scenario under every variant of its fault at once.

use tokio::task::JoinSet;

/// Runs all of these scenarios at once; one that fails fails them all.
pub async fn all(scenarios: impl IntoIterator<Item = impl Future<Output = ()> + Send + 'static>) {
    let mut running: JoinSet<()> = scenarios.into_iter().collect();
    while let Some(ended) = running.join_next().await {
        if let Err(failed) = ended {
            std::panic::resume_unwind(failed.into_panic());
        }
    }
}

/// `name: faults => outcome` becomes the test `name`, which runs the scenario `$run(fault, outcome)` for each variant of
/// the fault.
macro_rules! cells {
    ($run:path; $($(#[$doc:meta])* $name:ident: $faults:expr => $outcome:expr;)+) => {$(
        $(#[$doc])*
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            $crate::cells::all($faults.into_iter().map(|fault| $run(fault, $outcome))).await;
        }
    )+};
}
