//! Lengths of time in Go's text form.

use std::time::Duration;

/// As in "10m0s"; parts of a second are left out.
pub fn text(length: Duration) -> String {
    let seconds = length.as_secs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest}s"),
        _ => format!("{hours}h{minutes}m{rest}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_smaller_unit_is_written() {
        for (seconds, expected) in
            [(0, "0s"), (20, "20s"), (600, "10m0s"), (3600, "1h0m0s"), (3725, "1h2m5s")]
        {
            assert_eq!(text(Duration::from_secs(seconds)), expected);
        }
    }
}
