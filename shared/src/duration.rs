//! Durations in Go's text form, as Velero's objects carry them ("10m0s").

use std::time::Duration;

/// Reads a duration such as `1h30m0.5s`; `None` where the text is none, is negative or does not fit.
pub fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|&digits| digits > 0)?;
        let (number, after) = rest.split_at(digits);
        let (seconds, after) = unit(after)?;
        let number: f64 = number.parse().ok()?;
        total = total.checked_add(Duration::try_from_secs_f64(number * seconds).ok()?)?;
        rest = after;
    }
    Some(total)
}

/// The seconds of the unit at the start of `text`, and what follows it.
fn unit(text: &str) -> Option<(f64, &str)> {
    // The longer names first: "ms" begins as "m" does.
    const UNITS: [(&str, f64); 8] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("μs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    UNITS.iter().find_map(|(name, seconds)| Some((*seconds, text.strip_prefix(name)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations() {
        let table = [
            ("0s", Some(0)),
            ("0", Some(0)),
            ("10m0s", Some(600_000)),
            ("4h0m0s", Some(14_400_000)),
            ("1.5s", Some(1_500)),
            ("250ms", Some(250)),
            ("", None),
            ("10", None),
            ("-1s", None),
            ("1x", None),
            ("s", None),
            ("1e9h", None),
        ];
        for (text, milliseconds) in table {
            assert_eq!(parse(text), milliseconds.map(Duration::from_millis), "{text:?}");
        }
    }
}
