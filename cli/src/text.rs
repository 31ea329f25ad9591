//! Texts for terminals: what comes from rows and logs without control characters, durations and moments for people.

use std::time::Duration;

use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};
use unicode_width::UnicodeWidthStr;

/// The text with everything escaped that could move the cursor, change colours, hide or reorder what is read.
pub(crate) fn safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_invisible(c) { safe.extend(c.escape_unicode()) } else { safe.push(c) }
    }
    safe
}

/// Characters that are not seen themselves but change how others are, or that look like a blank or like nothing: line
/// separators, marks of direction, joiners, tags, fillers, selectors of variants, blanks of other widths.
fn is_invisible(c: char) -> bool {
    (c.is_whitespace() && c != ' ')
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// A key, safe and at most this many characters long. Blanks at its ends are escaped too: nobody would see them.
pub(crate) fn shown_key(key: &str, most: usize) -> String {
    let inner = key.trim_matches(' ');
    let before = key.len() - key.trim_start_matches(' ').len();
    let after = key.len() - before - inner.len();
    let blank = |count: usize| "\\u{20}".repeat(count.min(most));
    let shown = format!("{}{}{}", blank(before), safe(inner), blank(after));
    cut(&shown, most)
}

/// How many columns of a terminal it takes: some characters take two, and some none.
pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// The text with blanks behind it up to so many columns.
pub(crate) fn fitted(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// The text, safe and at most this many characters long; the cut shows.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let text = safe(text);
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// A duration as people say it: `850ms`, `3.2s`, `4m10s`, `3h02m`, `2d04h`.
pub(crate) fn span(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.as_millis());
    match seconds {
        0 => format!("{millis}ms"),
        1..60 if duration.subsec_millis() < 50 => format!("{seconds}s"),
        1..60 => format!("{seconds}.{}s", duration.subsec_millis() / 100),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// A moment in milliseconds since the Unix epoch, in UTC and to the second.
pub(crate) fn moment(ms: u64) -> String {
    let seconds = i64::try_from(ms / 1_000).unwrap_or(i64::MAX);
    DateTime::from_secs(seconds).fmt(DateTimeFormat::DateTime).unwrap_or_else(|_| format!("{ms} ms"))
}

/// A number with its thousands set apart.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut told = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            told.push(',');
        }
        told.push(digit);
    }
    told
}

/// The text as one word of a shell's command line.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=,+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    if text.chars().any(|c| c.is_control() || is_invisible(c)) {
        // What a shell of today takes for these characters.
        let escaped: String = text.chars().map(ansi_c).collect();
        return format!("$'{escaped}'");
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn ansi_c(c: char) -> String {
    match c {
        '\'' | '\\' => format!("\\{c}"),
        c if c.is_control() || is_invisible(c) => {
            let mut bytes = [0; 4];
            c.encode_utf8(&mut bytes).bytes().map(|byte| format!("\\x{byte:02x}")).collect()
        }
        c => c.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_a_row_reaches_the_terminal_as_a_command() {
        let escaped = safe("a\u{1b}[2Jb\u{202e}c\nd\u{9b}31m ü…");
        assert_eq!(escaped, "a\\u{1b}[2Jb\\u{202e}c\\u{a}d\\u{9b}31m ü…");
        assert_eq!(cut("\u{1b}[31m", 5), "\\u{1…");
    }

    #[test]
    fn what_can_not_be_seen_is_shown() {
        assert_eq!(safe("a\u{a0}b\u{3164}c\u{fe0f}"), "a\\u{a0}b\\u{3164}c\\u{fe0f}");
        assert_eq!(shown_key("  a b ", 80), "\\u{20}\\u{20}a b\\u{20}");
        assert_eq!(shown_key("   ", 80), "\\u{20}\\u{20}\\u{20}");
        assert_eq!(shown_key(&"k".repeat(2_000), 10), format!("{}…", "k".repeat(9)));
    }

    #[test]
    fn columns_are_counted_as_a_terminal_counts_them() {
        assert_eq!([width("key"), width("日本"), width("e\u{301}")], [3, 4, 1]);
        assert_eq!(fitted("日本", 6), "日本  ");
    }

    #[test]
    fn spans_moments_and_counts_are_told_for_people() {
        let spans = [(850, "850ms"), (3_000, "3s"), (3_210, "3.2s"), (250_000, "4m10s"), (10_920_000, "3h02m")];
        for (ms, told) in spans {
            assert_eq!(span(Duration::from_millis(ms)), told);
        }
        assert_eq!(span(Duration::from_secs(187_200)), "2d04h");
        assert_eq!(moment(1_700_000_000_999), "2023-11-14T22:13:20Z");
        assert_eq!([count(7), count(1_000), count(1_234_567)], ["7", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_key_can_be_pasted_back_into_a_shell() {
        assert_eq!(quoted("orders:17"), "orders:17");
        assert_eq!(quoted("a b'c"), r"'a b'\''c'");
        assert_eq!(quoted("a\u{1b}'"), r"$'a\x1b\''");
    }
}
