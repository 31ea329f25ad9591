//! Durations as the environment spells them: `500ms`, `1.5s`, `2m`, `1h`.

use std::time::Duration;

/// The longest that makes sense anywhere: a lease may last a day.
const MAX_SECONDS: f64 = 24.0 * 60.0 * 60.0;

/// The longest that something may be kept: ten years.
pub(super) const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Reads a number with its unit.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    parse_up_to(text, MAX_SECONDS, "a day")
}

/// Reads one that may be much longer.
pub(super) fn parse_long(text: &str) -> Result<Duration, String> {
    parse_up_to(text, LONGEST.as_secs_f64(), "ten years")
}

fn parse_up_to(text: &str, max_seconds: f64, longest: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "" => return Err(format!("{text:?} has no unit: write `{text}s`, or another of `ms`, `s`, `m`, `h`")),
        _ => return Err(format!("{text:?} is no duration: write a number and a unit, such as `500ms`, `30s` or `2m`")),
    };
    match number.parse::<f64>() {
        Ok(number) if number * seconds <= max_seconds => Ok(Duration::from_secs_f64(number * seconds)),
        Ok(_) => Err(format!("{text:?} is longer than {longest}")),
        Err(_) => Err(format!("{text:?} is no duration: write a number and a unit, such as `500ms`, `30s` or `2m`")),
    }
}
