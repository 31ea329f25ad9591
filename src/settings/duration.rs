//! Durations as the environment spells them: `500ms`, `1.5s`, `2m`, `1h`.

use std::time::Duration;

/// The longest that makes sense anywhere: a lease may last a day.
const MAX_SECONDS: f64 = 24.0 * 60.0 * 60.0;

/// Reads a number with its unit.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
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
        Ok(number) if number * seconds <= MAX_SECONDS => Ok(Duration::from_secs_f64(number * seconds)),
        Ok(_) => Err(format!("{text:?} is longer than a day")),
        Err(_) => Err(format!("{text:?} is no duration: write a number and a unit, such as `500ms`, `30s` or `2m`")),
    }
}
