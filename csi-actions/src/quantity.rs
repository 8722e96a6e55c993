//! Sizes as Kubernetes writes them ("10Gi").

/// The bytes of a quantity, rounded up; `None` where the text is none or does not fit.
pub fn bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, u128); 14] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("Pi", 1 << 50),
        ("Ei", 1 << 60),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
        ("P", 1_000_000_000_000_000),
        ("E", 1_000_000_000_000_000_000),
        ("m", 0),
        ("", 1),
    ];
    let number_ends = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '+').unwrap_or(text.len());
    let (number, unit) = text.split_at(number_ends);
    let number = number.strip_prefix('+').unwrap_or(number);
    if let Some(exponent) = unit.strip_prefix(['e', 'E']).filter(|rest| !rest.is_empty()) {
        return scaled(number, 10_u128.checked_pow(exponent.parse().ok()?)?, 1);
    }
    let (_, factor) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    if unit == "m" { scaled(number, 1, 1_000) } else { scaled(number, factor, 1) }
}

/// `number` · `factor` / `divisor`, rounded up.
fn scaled(number: &str, factor: u128, divisor: u128) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    let value: u128 = digits.parse().ok()?;
    let below = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?.checked_mul(divisor)?;
    u64::try_from(value.checked_mul(factor)?.div_ceil(below)).ok()
}

/// Bytes in the largest binary unit that holds them exactly, as Kubernetes prints a binary quantity.
pub fn format(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let (mut value, mut unit) = (bytes, 0);
    while value != 0 && value.is_multiple_of(1024) && unit + 1 < UNITS.len() {
        value /= 1024;
        unit += 1;
    }
    format!("{value}{}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_quantity_is_read() {
        let table = [
            ("1Gi", Some(1 << 30)),
            ("1.5Gi", Some(3 << 29)),
            ("50Mi", Some(50 << 20)),
            ("1G", Some(1_000_000_000)),
            ("100k", Some(100_000)),
            ("2e3", Some(2_000)),
            ("2E3", Some(2_000)),
            ("1E", Some(1_000_000_000_000_000_000)),
            ("0", Some(0)),
            ("1500m", Some(2)),
            ("+5", Some(5)),
            ("0.3", Some(1)),
            ("", None),
            ("Gi", None),
            ("-1Gi", None),
            ("1Zi", None),
            ("1 Gi", None),
            ("1.2.3", None),
            ("99999999999Ei", None),
            ("1e99", None),
        ];
        for (text, value) in table {
            assert_eq!(bytes(text), value, "{text:?}");
        }
    }

    #[test]
    fn bytes_are_printed_in_the_largest_exact_unit() {
        for (value, text) in
            [(0, "0"), (1 << 30, "1Gi"), (3 << 29, "1536Mi"), (2_147_483_649, "2147483649"), (1 << 61, "2Ei")]
        {
            assert_eq!(format(value), text);
        }
    }
}
