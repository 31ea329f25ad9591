//! A task that is started again after a panic: an extension that exits ends its whole environment.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::backoff::Backoff;

/// Runs a task of its own until one of its runs returns. It ends when this is dropped.
pub(crate) async fn supervise<F>(name: &str, make: impl Fn() -> F) -> F::Output
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_secs(1));
    let mut task = JoinSet::new();
    loop {
        task.spawn(make());
        match task.join_next().await {
            Some(Ok(output)) => return output,
            Some(Err(error)) => tracing::error!(%error, task = name, "a task panicked and is started again"),
            // It was spawned just now.
            None => {}
        }
        sleep(backoff.failed()).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_is_started_again() {
        let runs = Arc::new(AtomicU32::new(0));
        let output = supervise("test", || {
            let runs = runs.clone();
            async move {
                let run = runs.fetch_add(1, Ordering::Relaxed);
                assert_eq!(run, 2, "only the third run goes well");
                "done"
            }
        })
        .await;
        assert_eq!((output, runs.load(Ordering::Relaxed)), ("done", 3));
    }
}
