//! Times as Kubernetes' API types hold them: whole seconds in UTC.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Go's zero time, 0001-01-01T00:00:00Z, in seconds since 1970: what the server takes for "not known".
const GO_ZERO: i64 = -62_135_596_800;

/// A `metav1.Time` that is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(Timestamp);

impl Time {
    /// The second that `at` is in.
    pub fn of(at: Timestamp) -> Self {
        Self(Timestamp::from_second(at.as_second()).unwrap_or(at))
    }

    /// As a moment.
    pub fn moment(self) -> Timestamp {
        self.0
    }

    /// A time of a reply. Go's zero time is none; an absent one reads as 1970, which the server takes for real.
    pub fn of_wire(time: Option<prost_types::Timestamp>) -> Option<Self> {
        let seconds = time.map_or(0, |time| time.seconds);
        if seconds == GO_ZERO { None } else { Timestamp::from_second(seconds).ok().map(Self) }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self::of).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_time_of_a_reply_is_1970_and_gos_zero_is_none() {
        assert_eq!(Time::of_wire(None).unwrap().to_string(), "1970-01-01T00:00:00Z");
        let at = |seconds| Time::of_wire(Some(prost_types::Timestamp { seconds, nanos: 5 }));
        assert_eq!(at(GO_ZERO), None);
        assert_eq!(at(1_800_000_000).unwrap().to_string(), "2027-01-15T08:00:00Z");
    }

    #[test]
    fn fractions_of_a_second_are_lost() {
        let time = Time::of("2026-11-29T20:00:00.999Z".parse().unwrap());
        assert_eq!(serde_json::to_string(&time).unwrap(), r#""2026-11-29T20:00:00Z""#);
    }
}
