//! The orders in force: which of them hit a call, and what they do to it together.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Answer, Cut, Delay, Failure, Fault, InvalidFault};
use crate::state::{Aliases, Readiness, Shape};

/// An order and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultStatus {
    /// The order.
    #[serde(flatten)]
    pub fault: Fault,
    /// Calls that it selected, the skipped ones included.
    pub selected: u64,
    /// Calls that it hit.
    pub hits: u64,
}

/// The orders in force, in the order of their arrival.
#[derive(Debug, Default)]
pub struct FaultTable {
    orders: Vec<FaultStatus>,
    named: u64,
}

/// What happens to one call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The orders that hit it.
    pub faults: Vec<String>,
    /// The sum of their latencies.
    pub latency: Duration,
    /// The first failure, with the id of its order.
    pub failure: Option<(String, Failure)>,
    /// The first readiness.
    pub ready: Option<Delay>,
    /// The first size.
    pub size_bytes: Option<i64>,
}

impl FaultTable {
    /// Adds an order and answers its id.
    ///
    /// # Errors
    ///
    /// As [`Fault::check`].
    pub fn add(&mut self, mut fault: Fault) -> Result<String, InvalidFault> {
        fault.check()?;
        if fault.id.is_empty() {
            self.named += 1;
            fault.id = format!("fault-{}", self.named);
        }
        self.remove(&fault.id.clone());
        let id = fault.id.clone();
        self.orders.push(FaultStatus { fault, selected: 0, hits: 0 });
        Ok(id)
    }

    /// Removes an order. Answers whether there was one.
    pub fn remove(&mut self, id: &str) -> bool {
        let before = self.orders.len();
        self.orders.retain(|order| order.fault.id != id);
        self.orders.len() < before
    }

    /// Removes all orders.
    pub fn clear(&mut self) {
        self.orders.clear();
    }

    /// The orders in force, used-up ones included.
    pub fn orders(&self) -> &[FaultStatus] {
        &self.orders
    }

    /// Decides about one call and counts it.
    pub fn judge(&mut self, method: &str, aliases: &Aliases) -> Verdict {
        let mut verdict = Verdict::default();
        for order in self.orders.iter_mut().filter(|order| order.fault.selects(method, aliases)) {
            let fault = &order.fault;
            order.selected += 1;
            if order.selected <= fault.skip || fault.times.is_some_and(|times| order.hits >= times) {
                continue;
            }
            order.hits += 1;
            verdict.faults.push(fault.id.clone());
            verdict.latency = verdict.latency.saturating_add(Duration::from_millis(fault.latency_ms));
            if verdict.failure.is_none() {
                verdict.failure = fault.failure.clone().map(|failure| (fault.id.clone(), failure));
            }
            verdict.ready = verdict.ready.or(fault.ready);
            verdict.size_bytes = verdict.size_bytes.or(fault.size_bytes);
        }
        verdict
    }
}

impl Verdict {
    /// The failure on this side of the effect.
    pub fn failure_at(&self, cut: Cut) -> Option<(&str, &Answer)> {
        let (id, failure) = self.failure.as_ref()?;
        (failure.cut == cut).then_some((id.as_str(), &failure.answer))
    }

    /// What the snapshots that are created at `now` are like.
    pub fn shape(&self, now: Timestamp) -> Shape {
        let ready = self.ready.map_or(Readiness::At(now), |delay| delay.from(now));
        Shape { ready, size_bytes: self.size_bytes }
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code as Grpc;

    use super::*;
    use crate::code::Code;

    fn aliases(names: &[&str], volumes: &[&str]) -> Aliases {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Aliases { names: owned(names), volumes: owned(volumes) }
    }

    #[test]
    fn orders_select_by_method_name_and_volume() {
        let call = aliases(&["snap-1", "snapshot-x"], &["vol-1", "app/slow-1"]);
        let second = Duration::from_secs(1);
        for (fault, hit) in [
            (Fault::on("CreateSnapshot"), true),
            (Fault::on("*Snapshot"), true),
            (Fault::on("*"), true),
            (Fault::on("DeleteSnapshot"), false),
            (Fault::on("*").name("snapshot-*"), true),
            (Fault::on("*").name("app/slow-1"), false),
            (Fault::on("*").volume("app/slow-?"), true),
            (Fault::on("*").volume("app/fast-*"), false),
            (Fault::on("*").name("snap-1").volume("vol-2"), false),
        ] {
            let mut table = FaultTable::default();
            table.add(fault.clone().latency(second)).expect("add");
            let verdict = table.judge("CreateSnapshot", &call);
            assert_eq!(verdict.latency == second, hit, "{fault:?}");
        }
    }

    #[test]
    fn skip_and_times_count_selected_calls_only() {
        let mut table = FaultTable::default();
        table.add(Fault::on("A").skip(1).times(2).hang()).expect("add");
        let hits: Vec<bool> = ["A", "B", "A", "A", "B", "A"]
            .map(|method| table.judge(method, &Aliases::default()).failure.is_some())
            .into();
        assert_eq!(hits, [false, false, true, true, false, false]);
        assert_eq!((table.orders()[0].selected, table.orders()[0].hits), (4, 2));
    }

    #[test]
    fn orders_act_together_and_the_first_failure_wins() {
        let mut table = FaultTable::default();
        let second = Duration::from_secs(1);
        table.add(Fault::on("*").latency(second).error(Grpc::Aborted, "one").after_effect()).expect("add");
        table
            .add(Fault::on("*").id("two").latency(second).error(Grpc::Internal, "two").size(0))
            .expect("add");
        let verdict = table.judge("A", &Aliases::default());
        assert_eq!(verdict.faults, ["fault-1", "two"]);
        assert_eq!(verdict.latency, 2 * second);
        assert_eq!(verdict.size_bytes, Some(0));
        assert_eq!(verdict.failure_at(Cut::BeforeEffect), None);
        let answer = Answer::Error { code: Code(Grpc::Aborted), message: "one".to_owned() };
        assert_eq!(verdict.failure_at(Cut::AfterEffect), Some(("fault-1", &answer)));
    }

    #[test]
    fn a_known_id_replaces_its_order() {
        let mut table = FaultTable::default();
        table.add(Fault::on("A").id("x").hang()).expect("add");
        table.add(Fault::on("B").id("x").hang()).expect("replace");
        assert_eq!(table.orders().len(), 1);
        assert_eq!(table.orders()[0].fault.method, "B");
        assert!(table.remove("x"));
        assert!(!table.remove("x"));
    }

    #[test]
    fn senseless_orders_are_refused() {
        for (fault, refusal) in [
            (Fault::on("").hang(), InvalidFault::Method),
            (Fault::on("*").error(Grpc::Ok, ""), InvalidFault::Code),
            (Fault::on("*").size(-1), InvalidFault::Size(-1)),
            (Fault::on("*").times(3), InvalidFault::Nothing),
        ] {
            assert_eq!(FaultTable::default().add(fault), Err(refusal));
        }
    }
}
