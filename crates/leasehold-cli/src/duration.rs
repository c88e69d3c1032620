//! Durations as people write and read them.

use std::time::Duration;

/// Reads `10m`, `1h30m`, `500ms`, or a plain number of seconds (`2`, `0.5`).
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if plain {
        return text
            .parse()
            .ok()
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .ok_or_else(|| format!("{text:?} is no number of seconds"));
    }
    if text.starts_with('-') {
        return Err("it is negative; write 10m, 1h30m, 500ms or a number of seconds".to_owned());
    }
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; write 10m, 1h30m, 500ms or a number of seconds"))
}

/// Writes a duration for a person who glances: two units at most, milliseconds only below ten
/// seconds.
pub(crate) fn format(duration: Duration) -> String {
    let rounded = if duration < Duration::from_secs(10) {
        Duration::from_millis(duration.as_secs() * 1000 + u64::from(duration.subsec_millis()))
    } else {
        Duration::from_secs(duration.as_secs())
    };
    if rounded.is_zero() {
        return "0s".to_owned();
    }
    let text = humantime::format_duration(rounded).to_string();
    text.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write() {
        for (text, milliseconds) in [
            ("10m", 600_000),
            ("1h30m", 5_400_000),
            ("500ms", 500),
            ("2", 2_000),
            ("0.5", 500),
            ("0", 0),
            (" 3s ", 3_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn typos_are_told() {
        for text in ["", "m", "10x", "-1", "1.5.2", "10 parsecs", "1e3", "99999999999999999999"] {
            let error = parse(text).unwrap_err();
            assert!(!error.is_empty(), "{text}");
        }
        assert!(parse("10x").unwrap_err().contains("1h30m"));
    }

    #[test]
    fn short_to_read() {
        for (milliseconds, text) in [
            (0, "0s"),
            (7, "7ms"),
            (1_500, "1s 500ms"),
            (12_345, "12s"),
            (61_000, "1m 1s"),
            (3_600_000, "1h"),
            (90_061_000, "1day 1h"),
        ] {
            assert_eq!(format(Duration::from_millis(milliseconds)), text);
        }
    }
}
