//! Managed Instances: many invocations at once, no freeze, and a handler that is late is left alone.

use tokio::time::Instant;

use super::{Actor, Gone, broken};
use crate::{EventKind, ShutdownReason};

impl Actor {
    pub(super) async fn live_managed(&mut self) -> Result<(), Gone> {
        loop {
            let next_deadline = self.active.values().map(|active| active.deadline).min();
            let work = |actor: &Self| actor.has_managed_work();
            self.pump_until(next_deadline, work).await?;
            self.retire_answered();
            self.expire(Instant::now());
            self.tell_idlers();
            if let Some(broken) = self.broken.clone() {
                let lost = self.active.len();
                self.fail_active(|request_id| broken.error(request_id));
                self.release(lost);
                self.reset(ShutdownReason::Failure).await?;
            } else if self.next_job().is_some() {
                self.deliver_next().await?;
            } else if !self.starts.is_empty() {
                self.start_up().await?;
            } else if !self.stops.is_empty() && self.active.is_empty() && self.jobs.is_empty() {
                return self.end_processes(ShutdownReason::Spindown).await;
            }
        }
    }

    fn has_managed_work(&self) -> bool {
        let is_idle = self.active.is_empty() && self.jobs.is_empty();
        let may_stop = is_idle && (!self.stops.is_empty() || !self.idlers.is_empty());
        let answered = self.active.values().any(|active| active.job.is_answered());
        answered || self.broken.is_some() || !self.starts.is_empty() || may_stop || self.next_job().is_some()
    }

    /// The first job that can begin: one whose id isn't under way, while there is room.
    fn next_job(&self) -> Option<usize> {
        if self.active.len() >= self.settings.capacity() {
            return None;
        }
        self.jobs.iter().position(|job| !self.active.contains_key(job.request_id()))
    }

    async fn deliver_next(&mut self) -> Result<(), Gone> {
        let first = self.jobs.front().map_or_else(String::new, |job| job.request_id().to_owned());
        if let Err(error) = self.ensure_ready(&first).await? {
            let jobs = std::mem::take(&mut self.jobs);
            let lost = jobs.len();
            for mut job in jobs {
                job.answer(&self.log, Some(self.id), self.init, Err(error.clone()));
            }
            self.release(lost);
            return self.reset(ShutdownReason::Failure).await;
        }
        if let Some(job) = self.next_job().and_then(|index| self.jobs.remove(index)) {
            let request_id = self.begin(job);
            self.invoke_runtime(&request_id);
        }
        Ok(())
    }

    /// Forgets what the handler has answered.
    fn retire_answered(&mut self) {
        let answered: Vec<String> = self
            .active
            .iter()
            .filter(|(_, active)| active.job.is_answered())
            .map(|(request_id, _)| request_id.clone())
            .collect();
        self.retire(answered);
    }

    /// Answers those whose time is over. Their handlers go on and find 410 when they answer.
    fn expire(&mut self, now: Instant) {
        let late: Vec<String> = self
            .active
            .iter()
            .filter(|(_, active)| active.deadline <= now)
            .map(|(request_id, _)| request_id.clone())
            .collect();
        for request_id in &late {
            self.push(EventKind::DeadlineReached { request_id: request_id.clone() });
            let own = self.active.get(request_id).and_then(|active| active.job.invocation.timeout);
            let error = broken::timed_out(request_id, own.unwrap_or(self.settings.timeout));
            self.answer(request_id, Err(error));
        }
        self.retire(late);
    }

    fn retire(&mut self, request_ids: Vec<String>) {
        let count = request_ids.len();
        for request_id in request_ids {
            self.active.remove(&request_id);
            self.ended.insert(request_id);
        }
        self.release(count);
    }

    fn release(&self, count: usize) {
        for _ in 0..count {
            self.pool.done(self.id);
        }
    }
}
