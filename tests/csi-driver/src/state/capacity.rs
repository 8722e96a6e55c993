//! How large a volume becomes: the range that is asked for, the size of the source, what the storage has left.

use super::{Refusal, State};

/// The capacity of a volume when the request names none, in bytes.
const DEFAULT_BYTES: i64 = 1 << 30;

/// The bounds of a capacity in bytes; zero is an absent bound, as in the protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CapacityRange {
    /// The volume has at least this.
    pub required_bytes: i64,
    /// The volume has at most this.
    pub limit_bytes: i64,
}

impl CapacityRange {
    /// Whether an existing volume of `bytes` satisfies the request.
    pub(super) fn holds(self, bytes: i64) -> bool {
        bytes >= self.required_bytes && (self.limit_bytes == 0 || bytes <= self.limit_bytes)
    }

    /// The size to make: what is required, else what the source has, else the default, within the limit.
    ///
    /// `floor` is the size of the source, zero when there is none.
    pub(super) fn choose(self, name: &str, floor: i64) -> Result<i64, Refusal> {
        self.check()?;
        let out_of_range = |reason| Err(Refusal::OutOfRange { name: name.to_owned(), reason });
        let Self { required_bytes, limit_bytes } = self;
        if limit_bytes > 0 && required_bytes > limit_bytes {
            return out_of_range(format!("{required_bytes} required bytes exceed the limit {limit_bytes}"));
        }
        if required_bytes > 0 && required_bytes < floor {
            return out_of_range(format!("{required_bytes} bytes are less than the source's {floor}"));
        }
        if limit_bytes > 0 && limit_bytes < floor {
            return out_of_range(format!("the limit {limit_bytes} is less than the source's {floor}"));
        }
        let wanted = match (required_bytes, floor) {
            (0, 0) => DEFAULT_BYTES,
            (0, floor) => floor,
            (required, _) => required,
        };
        Ok(if limit_bytes > 0 { wanted.min(limit_bytes) } else { wanted })
    }

    pub(super) fn check(self) -> Result<(), Refusal> {
        if self.required_bytes < 0 || self.limit_bytes < 0 {
            let reason = "a number of bytes is negative".to_owned();
            return Err(Refusal::Invalid { field: "capacity_range", reason });
        }
        Ok(())
    }
}

impl State {
    /// Bytes of a storage of `pool_bytes` that no volume has taken.
    pub fn available_bytes(&self, pool_bytes: i64) -> i64 {
        let used = self.volumes.values().fold(0_i64, |sum, volume| sum.saturating_add(volume.capacity_bytes));
        pool_bytes.saturating_sub(used).max(0)
    }

    /// Checks that the storage can give `needed` bytes more.
    pub(super) fn take(&self, needed: i64, pool_bytes: i64) -> Result<(), Refusal> {
        let available = self.available_bytes(pool_bytes);
        if needed > available {
            return Err(Refusal::Exhausted { available, needed });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: i64 = 1 << 30;

    #[test]
    fn size_follows_request_then_source_then_default() {
        for (required, limit, floor, expected) in [
            (0, 0, 0, Some(GIB)),
            (5, 0, 0, Some(5)),
            (5, 5, 0, Some(5)),
            (0, 7, 0, Some(7)),
            (0, 2 * GIB, 0, Some(GIB)),
            (0, 0, 3 * GIB, Some(3 * GIB)),
            (4 * GIB, 0, 3 * GIB, Some(4 * GIB)),
            (2 * GIB, 0, 3 * GIB, None),
            (0, 2 * GIB, 3 * GIB, None),
            (9, 8, 0, None),
        ] {
            let range = CapacityRange { required_bytes: required, limit_bytes: limit };
            let chosen = range.choose("v", floor);
            assert_eq!(chosen.clone().ok(), expected, "{required} {limit} {floor}");
            if let Err(refusal) = chosen {
                assert_eq!(refusal.code(), tonic::Code::OutOfRange);
            }
        }
    }

    #[test]
    fn negative_bytes_are_invalid() {
        for range in [
            CapacityRange { required_bytes: -1, limit_bytes: 0 },
            CapacityRange { required_bytes: 0, limit_bytes: -1 },
        ] {
            let refusal = range.choose("v", 0).expect_err("negative");
            assert_eq!(refusal.code(), tonic::Code::InvalidArgument);
        }
    }
}
