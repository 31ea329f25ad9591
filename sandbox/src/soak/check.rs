//! The invariants, as a pure question about claims: does any key have two believers, does a token ever fall?

use std::collections::BTreeMap;

use super::history::Claim;

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Break {
    /// What was promised, in a word.
    pub invariant: &'static str,
    /// The key, if it is about one.
    pub key: Option<String>,
    /// What happened.
    pub what: String,
}

impl Break {
    pub(super) fn new(invariant: &'static str, key: Option<&str>, what: impl Into<String>) -> Self {
        Self { invariant, key: key.map(str::to_owned), what: what.into() }
    }
}

/// Two claims overlap, or a later one has no higher token.
pub(super) fn exclusion(claims: &[Claim]) -> Vec<Break> {
    let mut breaks = Vec::new();
    let zero = zero(claims);
    let micros = |nanos| micros(nanos, zero);
    for (key, claims) in by_key(claims) {
        let mut latest: Option<&Claim> = None;
        let mut highest: Option<&Claim> = None;
        for claim in claims {
            if let Some(other) = latest.filter(|other| claim.start < other.end()) {
                let what = format!(
                    "{} believed to hold it from {} us to {} us, and {} from {} us to {} us",
                    name(other),
                    micros(other.start),
                    micros(other.end()),
                    name(claim),
                    micros(claim.start),
                    micros(claim.end()),
                );
                breaks.push(Break::new("one holder at a time", Some(key), what));
            }
            if let Some(other) = highest.filter(|other| claim.token.is_some() && claim.token <= other.token) {
                let what = format!("{} came after {}", name(claim), name(other));
                breaks.push(Break::new("tokens rise", Some(key), what));
            }
            if claim.token.is_none() {
                let what = format!("{} has no token", name(claim));
                breaks.push(Break::new("tokens rise", Some(key), what));
            }
            if latest.is_none_or(|other| claim.end() > other.end()) {
                latest = Some(claim);
            }
            if highest.is_none_or(|other| claim.token > other.token) {
                highest = Some(claim);
            }
        }
    }
    breaks
}

/// The claims on a key, in order, for whoever has to find out what went wrong.
pub(super) fn story(claims: &[Claim], key: &str) -> Vec<String> {
    let zero = zero(claims);
    let micros = |nanos| micros(nanos, zero);
    let by_key = by_key(claims);
    let of_key = by_key.get(key).map(Vec::as_slice).unwrap_or_default();
    let line = |claim: &&Claim| {
        format!(
            "{:>12} us .. {:>12} us  valid until {:>12} us  {}{}",
            micros(claim.start),
            micros(claim.end()),
            micros(claim.until),
            name(claim),
            if claim.ended { "" } else { ", did not end its work" },
        )
    };
    of_key.iter().map(line).collect()
}

/// The claims on each key by their starts.
fn by_key(claims: &[Claim]) -> BTreeMap<&str, Vec<&Claim>> {
    let mut by_key: BTreeMap<&str, Vec<&Claim>> = BTreeMap::new();
    for claim in claims {
        by_key.entry(&claim.key).or_default().push(claim);
    }
    for claims in by_key.values_mut() {
        claims.sort_by_key(|claim| claim.start);
    }
    by_key
}

fn name(claim: &Claim) -> String {
    let token = claim.token.map_or_else(|| "none".to_owned(), |token| token.to_string());
    let owner = claim.owner.as_deref().unwrap_or("nobody");
    format!("request {} (owner {owner}, token {token})", claim.request)
}

/// When the first claim began: what people are shown is counted from then.
fn zero(claims: &[Claim]) -> u64 {
    claims.iter().map(|claim| claim.start).min().unwrap_or(0)
}

fn micros(nanos: u64, zero: u64) -> u64 {
    nanos.saturating_sub(zero) / 1_000
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
