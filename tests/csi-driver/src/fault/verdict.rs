//! What the orders that hit a call do to it together.

use std::time::Duration;

use jiff::Timestamp;
use orders::First;

use super::{Answer, Delay, Fault};
use crate::state::{Readiness, Shape};

/// What happens to one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The orders that hit it.
    pub faults: Vec<String>,
    /// The sum of their latencies.
    pub latency: Duration,
    /// The first failure.
    pub failure: First<Answer>,
    /// The first readiness.
    pub ready: Option<Delay>,
    /// The first size.
    pub size_bytes: Option<i64>,
}

impl Verdict {
    /// The verdict of these orders.
    pub fn of(faults: &[Fault]) -> Self {
        let mut verdict = Self::default();
        for fault in faults {
            verdict.faults.push(fault.id.clone());
            verdict.latency = verdict.latency.saturating_add(Duration::from_millis(fault.latency_ms));
            verdict.failure.or(&fault.id, fault.failure.as_ref());
            verdict.ready = verdict.ready.or(fault.ready);
            verdict.size_bytes = verdict.size_bytes.or(fault.size_bytes);
        }
        verdict
    }

    /// What the snapshots that are created at `now` are like.
    pub fn shape(&self, now: Timestamp) -> Shape {
        let ready = self.ready.map_or(Readiness::At(now), |delay| delay.from(now));
        Shape { ready, size_bytes: self.size_bytes }
    }
}

#[cfg(test)]
mod tests {
    use orders::Cut;
    use tonic::Code as Grpc;

    use super::*;
    use crate::code::Code;

    #[test]
    fn orders_act_together_and_the_first_failure_wins() {
        let second = Duration::from_secs(1);
        let verdict = Verdict::of(&[
            Fault::on("*").id("one").latency(second).error(Grpc::Aborted, "one").after_effect(),
            Fault::on("*").id("two").latency(second).error(Grpc::Internal, "two").size(0),
        ]);
        assert_eq!(verdict.faults, ["one", "two"]);
        assert_eq!(verdict.latency, 2 * second);
        assert_eq!(verdict.failure.at(Cut::BeforeEffect), None);
        let answer = Answer::Error { code: Code(Grpc::Aborted), message: "one".to_owned() };
        assert_eq!(verdict.failure.at(Cut::AfterEffect), Some(("one", &answer)));
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(verdict.shape(now), Shape { ready: Readiness::At(now), size_bytes: Some(0) });
    }

    #[test]
    fn no_order_changes_nothing() {
        assert_eq!(Verdict::of(&[]), Verdict::default());
    }
}
