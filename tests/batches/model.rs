//! The sources as Lambda's and SQS's documentation describes them: what is delivered when, and what a response does to it.
//!
//! Time is in milliseconds of the test's own. A response is a list of ids, or nothing where the invocation failed.

use std::collections::VecDeque;

/// What became of a record at its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It is still there, or will be again.
    Waiting,
    /// It was delivered and not reported, so it is gone.
    Done,
    /// It is in the dead-letter queue, or was discarded to the failure destination.
    Dead,
}

/// A source of batches.
pub(crate) trait Source: Send {
    /// The next batch, by the records' indexes; none where nothing can be delivered now.
    fn receive(&mut self, now: u64, most: usize) -> Vec<usize>;
    /// The function's answer to a batch.
    fn answer(&mut self, batch: &[usize], failed: Option<&[usize]>);
    /// `ChangeMessageVisibility`.
    fn make_visible(&mut self, record: usize, at: u64);
    fn states(&self) -> Vec<State>;
}

/// An SQS queue with a dead-letter queue.
pub(crate) struct Queue {
    messages: Vec<Message>,
    is_fifo: bool,
    visibility: u64,
    most_receives: u32,
}

struct Message {
    group: usize,
    state: State,
    receives: u32,
    visible_at: u64,
}

impl Queue {
    /// A queue whose messages are in these groups.
    pub(crate) fn new(groups: &[usize], is_fifo: bool, visibility: u64, most_receives: u32) -> Self {
        let message = |&group| Message { group, state: State::Waiting, receives: 0, visible_at: 0 };
        Self { messages: groups.iter().map(message).collect(), is_fifo, visibility, most_receives }
    }

    /// A FIFO queue delivers nothing of a group while a message of it is in flight.
    fn is_blocked(&self, group: usize, now: u64) -> bool {
        let in_flight = |message: &Message| message.state == State::Waiting && message.visible_at > now;
        self.is_fifo && self.messages.iter().any(|message| message.group == group && in_flight(message))
    }
}

impl Source for Queue {
    fn receive(&mut self, now: u64, most: usize) -> Vec<usize> {
        let blocked: Vec<bool> = self.messages.iter().map(|message| self.is_blocked(message.group, now)).collect();
        let mut batch = Vec::new();
        for (index, message) in self.messages.iter_mut().enumerate() {
            if message.state != State::Waiting || message.visible_at > now || blocked[index] || batch.len() == most {
                continue;
            }
            if message.receives == self.most_receives {
                message.state = State::Dead;
                continue;
            }
            message.receives += 1;
            message.visible_at = now + self.visibility;
            batch.push(index);
        }
        batch
    }

    fn answer(&mut self, batch: &[usize], failed: Option<&[usize]>) {
        let Some(failed) = failed else { return };
        let done: Vec<usize> = batch.iter().copied().filter(|index| !failed.contains(index)).collect();
        for &index in &done {
            self.messages[index].state = State::Done;
        }
        for &index in done.iter().filter(|_| self.is_fifo) {
            let overtaken =
                |other: &Message| other.group == self.messages[index].group && other.state == State::Waiting;
            assert!(!self.messages[..index].iter().any(overtaken), "message {index} is deleted before an earlier one");
        }
    }

    fn make_visible(&mut self, record: usize, at: u64) {
        let message = &mut self.messages[record];
        assert_eq!(message.state, State::Waiting, "only a message in flight can be made visible");
        message.visible_at = at;
    }

    fn states(&self) -> Vec<State> {
        self.messages.iter().map(|message| message.state).collect()
    }
}

/// A shard with its event source mapping.
pub(crate) struct Shard {
    states: Vec<State>,
    /// The ranges that are to be delivered, the next one first.
    batches: VecDeque<(usize, usize)>,
    bisects: bool,
    most_retries: Option<u32>,
    retries: u32,
    in_flight: bool,
}

impl Shard {
    /// A shard of so many records; without `most_retries` Lambda tries for ever.
    pub(crate) fn new(records: usize, bisects: bool, most_retries: Option<u32>) -> Self {
        let batches = VecDeque::from([(0, records)]);
        Self { states: vec![State::Waiting; records], batches, bisects, most_retries, retries: 0, in_flight: false }
    }

    fn settle(&mut self, from: usize, to: usize, state: State) {
        for settled in &mut self.states[from..to] {
            assert_eq!(std::mem::replace(settled, state), State::Waiting);
        }
    }

    fn deliver_next(&mut self, from: usize, to: usize) {
        if from < to {
            self.batches.push_front((from, to));
        }
    }
}

impl Source for Shard {
    fn receive(&mut self, _now: u64, most: usize) -> Vec<usize> {
        if self.in_flight {
            return Vec::new();
        }
        let Some((from, to)) = self.batches.pop_front() else { return Vec::new() };
        let end = to.min(from + most);
        self.deliver_next(end, to);
        self.in_flight = true;
        (from..end).collect()
    }

    fn answer(&mut self, batch: &[usize], failed: Option<&[usize]>) {
        self.in_flight = false;
        let (from, to) = (batch[0], batch[batch.len() - 1] + 1);
        // Lambda goes on from the lowest number that is reported.
        let checkpoint = match failed {
            Some(failed) => failed.iter().min().copied().unwrap_or(to),
            None => from,
        };
        self.settle(from, checkpoint, State::Done);
        if checkpoint > from {
            self.retries = 0;
        }
        if checkpoint == to {
            return;
        }
        if self.bisects && checkpoint == from && to - from > 1 {
            let middle = from + (to - from) / 2;
            self.deliver_next(middle, to);
            self.deliver_next(from, middle);
            return;
        }
        if self.most_retries == Some(self.retries) {
            self.retries = 0;
            self.settle(checkpoint, to, State::Dead);
            return;
        }
        self.retries += 1;
        self.deliver_next(checkpoint, to);
    }

    fn make_visible(&mut self, record: usize, _at: u64) {
        panic!("record {record} of a stream can't be made visible");
    }

    fn states(&self) -> Vec<State> {
        self.states.clone()
    }
}
