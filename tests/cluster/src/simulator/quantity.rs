//! Sizes as Kubernetes writes them.

/// Binary suffixes, largest first.
const BINARY: [(&str, u32); 6] = [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];
const DECIMAL: [(&str, u32); 7] = [("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18), ("", 0)];

/// Bytes with the largest suffix that leaves a whole number.
pub(super) fn format(bytes: i64) -> String {
    let whole = BINARY.iter().find(|(_, bits)| bytes != 0 && bytes % (1 << bits) == 0);
    whole.map_or_else(|| bytes.to_string(), |(suffix, bits)| format!("{}{suffix}", bytes >> bits))
}

/// The bytes of a whole quantity; zero for anything else.
pub(super) fn parse(text: &str) -> i64 {
    for (suffix, bits) in BINARY {
        if let Some(number) = text.strip_suffix(suffix) {
            return number
                .parse::<i64>()
                .ok()
                .and_then(|number| number.checked_mul(1 << bits))
                .unwrap_or_default();
        }
    }
    for (suffix, power) in DECIMAL {
        if let Some(number) = text.strip_suffix(suffix) {
            let bytes = number.parse::<i64>().ok().and_then(|number| number.checked_mul(10_i64.pow(power)));
            return bytes.unwrap_or_default();
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_shortly_and_read_back() {
        for (bytes, text) in [
            (0, "0"),
            (1000, "1000"),
            (1024, "1Ki"),
            (1 << 20, "1Mi"),
            (3 << 30, "3Gi"),
            ((1 << 30) + 1, "1073741825"),
        ] {
            assert_eq!(format(bytes), text);
            assert_eq!(parse(text), bytes);
        }
        assert_eq!((parse("5G"), parse("x"), parse("")), (5_000_000_000, 0, 0));
    }
}
