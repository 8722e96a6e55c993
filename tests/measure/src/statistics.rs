//! What many measurements of one thing say: the least, the middle and the high end.

use std::time::Duration;

use serde::Serialize;

/// Nanoseconds of one series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Summary {
    /// The least is nearest to what the program itself costs: noise only adds.
    pub(crate) min: u64,
    pub(crate) median: u64,
    pub(crate) p95: u64,
    pub(crate) samples: usize,
}

impl Summary {
    /// Of at least one measurement.
    pub(crate) fn of(series: &[Duration]) -> Option<Self> {
        let mut sorted: Vec<u64> = series.iter().map(|each| nanoseconds(*each)).collect();
        sorted.sort_unstable();
        Some(Self {
            min: *sorted.first()?,
            median: percentile(&sorted, 50)?,
            p95: percentile(&sorted, 95)?,
            samples: sorted.len(),
        })
    }
}

/// The middle of whole numbers, such as sizes.
pub(crate) fn median(values: &[u64]) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    percentile(&sorted, 50)
}

/// The least value that at least `percent` of all do not exceed: always one that was measured.
pub(crate) fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let hundred: Vec<u64> = (1..=100).collect();
        let table: [(&[u64], usize, Option<u64>); 8] = [
            (&hundred, 50, Some(50)),
            (&hundred, 95, Some(95)),
            (&hundred, 100, Some(100)),
            (&[7], 95, Some(7)),
            (&[7], 1, Some(7)),
            (&[1, 9], 50, Some(1)),
            (&[1, 2, 3], 95, Some(3)),
            (&[], 50, None),
        ];
        for (sorted, percent, expected) in table {
            assert_eq!(percentile(sorted, percent), expected, "{percent} % of {sorted:?}");
        }
    }

    #[test]
    fn a_series_in_any_order_is_summed_up() {
        let series = [3, 1, 2].map(Duration::from_nanos);
        assert_eq!(Summary::of(&series), Some(Summary { min: 1, median: 2, p95: 3, samples: 3 }));
        assert_eq!(Summary::of(&[]), None);
    }
}
