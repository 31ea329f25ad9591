//! A state as it travels: JSON that nobody on the way reads.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// JSON text, kept as it was written.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawState(Box<RawValue>);

impl RawState {
    /// The longest state, in bytes of its JSON.
    pub const MAX_BYTES: usize = 32 * 1024;

    /// How deep arrays and objects may lie within each other. Deeper ones can be written and not be read again: `serde_json`
    /// stops there, as a reader that is built of calls has to somewhere.
    pub const MAX_DEPTH: usize = 127;

    /// The JSON of a value.
    ///
    /// # Errors
    ///
    /// When it can't be written as JSON.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        Self::parse(&serde_json::to_string(value)?)
    }

    /// Text that has to be JSON.
    ///
    /// # Errors
    ///
    /// When it is not.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        // A line ends where the first line break is, and JSON has those only between its parts.
        serde_json::from_str(&text.replace(['\n', '\r'], " ")).map(Self)
    }

    /// The text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// How deep arrays and objects lie within each other.
    #[must_use]
    pub fn depth(&self) -> usize {
        let (mut depth, mut deepest, mut in_text, mut escaped) = (0_usize, 0, false, false);
        for byte in self.get().bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_text = !in_text,
                _ if in_text => {}
                b'[' | b'{' => {
                    depth += 1;
                    deepest = deepest.max(depth);
                }
                b']' | b'}' => depth -= 1,
                _ => {}
            }
        }
        deepest
    }

    /// What it stands for; `null` is no state.
    #[must_use]
    pub fn unless_null(self) -> Option<Self> {
        (self.get() != "null").then_some(self)
    }
}

impl PartialEq for RawState {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawState {}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::session::{FromKeeper, ToKeeper, encode};

    #[test]
    fn a_state_comes_out_as_it_went_in() {
        for text in ["{\"n\":123456789012345678901234567890,\"f\":1.10}", "[1e400]", "\"\\u0000\"", "7"] {
            let line = format!("{{\"type\":\"save_state\",\"id\":1,\"value\":{text},\"call\":2}}");
            let Ok(ToKeeper::SaveState { id: 1, call: 2, value: Some(value), on_release: false }) =
                serde_json::from_str(&line)
            else {
                panic!("{line}")
            };
            assert_eq!(value.get(), text);
            let told = FromKeeper::State { id: 1, call: 2, value: Some(value) };
            let line = encode(&told).unwrap();
            assert_eq!(serde_json::from_slice::<FromKeeper>(&line).unwrap(), told);
        }
    }

    #[test]
    fn null_and_nothing_are_no_state() {
        for value in ["", ",\"value\":null"] {
            let line = format!("{{\"type\":\"save_state\",\"id\":1,\"call\":2,\"on_release\":true{value}}}");
            let expected = ToKeeper::SaveState { id: 1, call: 2, value: None, on_release: true };
            assert_eq!(serde_json::from_str::<ToKeeper>(&line).unwrap(), expected);
        }
    }

    #[test]
    fn a_state_that_was_written_on_several_lines_is_told_on_one() {
        let state = RawState::parse("{\n  \"a\":\r\n \"\\n\" }").unwrap();
        let told = FromKeeper::State { id: 1, call: 1, value: Some(state) };
        assert_eq!(encode(&told).unwrap().iter().filter(|byte| **byte == b'\n').count(), 1);
    }

    #[test]
    fn the_deepest_state_can_be_read_and_a_deeper_one_can_not() {
        let nested = |depth: usize| format!("{}\"]\\\"[{{\"{}", "[".repeat(depth), "]".repeat(depth));
        for (depth, is_read) in [(0, true), (RawState::MAX_DEPTH, true), (RawState::MAX_DEPTH + 1, false)] {
            let state = RawState::parse(&nested(depth)).unwrap();
            assert_eq!(state.depth(), depth);
            assert_eq!(serde_json::from_str::<Value>(state.get()).is_ok(), is_read, "{depth}");
        }
        assert_eq!(RawState::parse(r#"{"a":{"b":[]},"c":[1,[2]],"d":{}}"#).unwrap().depth(), 3);
    }

    #[test]
    fn the_longest_state_fits_a_line() {
        let state = RawState::of(&"\"".repeat((RawState::MAX_BYTES - 2) / 2)).unwrap();
        assert_eq!(state.get().len(), RawState::MAX_BYTES);
        encode(&FromKeeper::State { id: u64::MAX, call: u64::MAX, value: Some(state) }).unwrap();
    }
}
