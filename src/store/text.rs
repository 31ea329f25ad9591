//! Keeps what others wrote short and harmless where it enters a message.

use std::error::Error;

/// The text, cut to at most this many bytes; the cut shows.
pub(super) fn bounded(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    const CUT: &str = "…";
    let end = (0..=max.saturating_sub(CUT.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}{CUT}", &text[..end])
}

/// The text, cut, on one line and without control characters.
pub(super) fn printable(text: &str, max: usize) -> String {
    bounded(text, max).chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// An error and what caused it, each said once, and what is on several lines on one.
pub(super) fn chain(error: &dyn Error, max: usize) -> String {
    let mut said: Vec<String> = Vec::new();
    for error in std::iter::successors(Some(error), |&error| error.source()) {
        let text = error.to_string();
        let text = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        if !said.last().is_some_and(|last| last.contains(&text)) {
            said.push(text);
        }
    }
    printable(&said.join(": "), max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(bounded("short", 5), "short");
        assert_eq!(bounded("ääääää", 8), "ää…");
        assert_eq!(bounded("abc", 1), "…");
    }

    #[test]
    fn control_characters_do_not_reach_a_message() {
        assert_eq!(printable("a\nb\u{1b}[31m", 20), "a\u{fffd}b\u{fffd}[31m");
        assert_eq!(chain(&std::io::Error::other("first\r\n\n  second\n"), 20), "first second");
    }
}
