//! What `observe` would have refused: by kind, each with a few of the messages as they stood in the log.
//!
//! Each message names its key, its holder and its times, so that hardly two are the same.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// As many kinds are told apart.
const KINDS: usize = 50;
/// So many messages are kept of each.
const EXAMPLES: usize = 3;

/// The refusals of one log.
#[derive(Debug, Default)]
pub(super) struct Refusals(BTreeMap<String, Kind>);

/// Those of one kind.
#[derive(Debug, Default)]
pub(super) struct Kind {
    pub(super) times: u64,
    pub(super) examples: Vec<String>,
}

impl Refusals {
    /// Counts one. Without a type its kind is what its message has in common with others.
    pub(super) fn add(&mut self, kind: Option<String>, message: String) {
        let kind = kind.unwrap_or_else(|| pattern(&message));
        let full = self.0.len() >= KINDS && !self.0.contains_key(&kind);
        let of = self.0.entry(if full { "other kinds".to_owned() } else { kind }).or_default();
        of.times += 1;
        if of.examples.len() < EXAMPLES && !message.is_empty() && !of.examples.contains(&message) {
            of.examples.push(message);
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.0.values().map(|kind| kind.times).sum()
    }

    /// Those with the most first.
    pub(super) fn by_number(&self) -> Vec<(&str, &Kind)> {
        let mut kinds: Vec<_> = self.0.iter().map(|(name, kind)| (name.as_str(), kind)).collect();
        kinds.sort_by(|(a_name, a), (b_name, b)| b.times.cmp(&a.times).then(a_name.cmp(b_name)));
        kinds
    }

    pub(super) fn times(&self) -> Value {
        self.0.iter().map(|(name, kind)| (name.clone(), json!(kind.times))).collect()
    }

    pub(super) fn examples(&self) -> Value {
        self.0.iter().map(|(name, kind)| (name.clone(), json!(kind.examples))).collect()
    }
}

/// A message without what differs from case to case: what stands in backticks, and words with digits in them.
fn pattern(message: &str) -> String {
    let quoted = message.split('`').enumerate().map(|(at, part)| if at % 2 == 0 { part } else { "…" });
    let unquoted = quoted.collect::<Vec<_>>().join("`");
    let word =
        |word: &str| if word.contains(|c: char| c.is_ascii_digit()) { "…".to_owned() } else { word.to_owned() };
    unquoted.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_one_kind_are_one_group_whatever_their_messages_name() {
        let mut refusals = Refusals::default();
        for n in 0..10 {
            refusals.add(Some("LeaseBusy".to_owned()), format!("`orders:{n}` is held by f (request {n})"));
            refusals.add(None, format!("`orders:{n} and more` is held by f (request {n}), waited {n}ms"));
        }
        refusals.add(Some("DeadlineTooClose".to_owned()), String::new());
        let told: Vec<_> = refusals.by_number().iter().map(|(name, kind)| (*name, kind.times)).collect();
        assert_eq!(told, [("LeaseBusy", 10), ("`…` is held by f (request … waited …", 10), ("DeadlineTooClose", 1)]);
        assert_eq!(refusals.total(), 21);
        assert_eq!(refusals.examples()["LeaseBusy"].as_array().unwrap().len(), EXAMPLES);
        assert_eq!(refusals.examples()["DeadlineTooClose"], json!([]));
    }

    #[test]
    fn memory_has_an_end() {
        let mut refusals = Refusals::default();
        for n in 0..1_000 {
            refusals.add(Some(format!("Kind{n}")), "why".to_owned());
        }
        assert_eq!((refusals.by_number().len(), refusals.total()), (KINDS + 1, 1_000));
        assert_eq!(refusals.by_number()[0].0, "other kinds");
    }
}
