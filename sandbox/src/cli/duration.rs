//! Durations as people write them: `500ms`, `30s`, `2m`, `1.5s`; a bare number is seconds.

use std::time::Duration;

/// Reads a duration that is not 0.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let help = || format!("{text:?} is no duration; write it like 500ms, 30s or 2m");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| help())?;
    let seconds = match unit.trim() {
        "ms" => number / 1000.0,
        "" | "s" => number,
        "m" | "min" => number * 60.0,
        _ => return Err(help()),
    };
    let duration = Duration::try_from_secs_f64(seconds).map_err(|_| help())?;
    if duration.is_zero() { Err(format!("{text:?} is no time at all")) } else { Ok(duration) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::*;

    #[test]
    fn units_and_fractions_are_understood() {
        for (text, millis) in [("500ms", 500), ("30s", 30_000), ("2m", 120_000), ("1.5s", 1_500), ("3", 3_000)] {
            assert_eq!(parse(text).unwrap(), Duration::from_millis(millis), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_an_example() {
        for text in ["", "s", "ten", "3h", "-1s", "1.2.3s", "1e400"] {
            assert!(parse(text).unwrap_err().contains("30s"), "{text}");
        }
        assert!(parse("0s").is_err());
    }
}
