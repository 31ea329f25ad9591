//! A classic invocation: one at a time, ended at its deadline, frozen afterwards.

use std::time::Duration;

use tokio::time::Instant;

use super::{Actor, Gone, broken};
use crate::{EventKind, InvokeOrder, ShutdownReason, invocation::Job};

/// How far apart runtime and extensions hear of an invocation.
const GAP: Duration = Duration::from_millis(1);

impl Actor {
    /// Initializes if needed, delivers, and waits until everybody is back in Next or the environment had to be reset.
    pub(super) async fn serve(&mut self, mut job: Job) -> Result<(), Gone> {
        let ready = match self.ensure_ready(job.request_id()).await {
            Ok(ready) => ready,
            Err(gone) => {
                // Whoever ends the environment answers it with the others that never began.
                self.jobs.push_front(job);
                return Err(gone);
            }
        };
        if let Err(error) = ready {
            job.answer(&self.log, Some(self.id), self.init, Err(error));
            return self.reset(ShutdownReason::Failure).await;
        }
        self.thaw();
        let timeout = job.invocation.timeout.unwrap_or(self.settings.timeout);
        let order = job.invocation.order.unwrap_or(self.settings.order);
        let request_id = self.begin(job);
        let deadline = self.active.get(&request_id).map(|active| active.deadline);
        self.deliver(&request_id, order).await?;

        let answered = |actor: &Self| actor.broken.is_some() || actor.is_answered(&request_id);
        if self.pump_until(deadline, answered).await? && order == InvokeOrder::AfterHandler && self.broken.is_none() {
            self.invoke_extensions(&request_id);
        }
        let over = |actor: &Self| actor.broken.is_some() || (actor.is_answered(&request_id) && actor.all_waiting());
        let in_time = self.pump_until(deadline, over).await?;

        if let Some(broken) = self.broken.clone() {
            self.fail_active(|request_id| broken.error(request_id));
            return self.reset(ShutdownReason::Failure).await;
        }
        if !in_time {
            self.push(EventKind::DeadlineReached { request_id });
            self.fail_active(|request_id| broken::timed_out(request_id, timeout));
            return self.reset(ShutdownReason::Timeout).await;
        }
        self.active.remove(&request_id);
        self.ended.insert(request_id);
        self.push(EventKind::Idle);
        self.freeze();
        Ok(())
    }

    async fn deliver(&mut self, request_id: &str, order: InvokeOrder) -> Result<(), Gone> {
        match order {
            InvokeOrder::RuntimeFirst => {
                self.invoke_runtime(request_id);
                self.gap().await?;
                self.invoke_extensions(request_id);
            }
            InvokeOrder::ExtensionFirst => {
                self.invoke_extensions(request_id);
                self.gap().await?;
                self.invoke_runtime(request_id);
            }
            InvokeOrder::AfterHandler => self.invoke_runtime(request_id),
        }
        Ok(())
    }

    async fn gap(&mut self) -> Result<(), Gone> {
        self.pump_until(Some(Instant::now() + GAP), |actor| actor.broken.is_some()).await?;
        Ok(())
    }
}
