//! What was called, when, for what and with which outcome.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::state::Parameters;

/// The oldest calls are forgotten beyond this many.
const CAPACITY: usize = 100_000;

/// One call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Its number; the first call of the driver's process has 1, also after the log was emptied.
    pub number: u64,
    /// The method, without its service.
    pub method: String,
    /// The ids and names of the object that it was about; those that it got by the call too.
    pub names: Vec<String>,
    /// The ids and names of the volumes that it was about.
    pub volumes: Vec<String>,
    /// The parameters in the request.
    pub parameters: Parameters,
    /// The keys of the secrets in the request.
    pub secrets: Vec<String>,
    /// The faults that hit it.
    pub faults: Vec<String>,
    /// When it arrived.
    pub started: Timestamp,
    /// How it ended; absent while it runs.
    pub end: Option<CallEnd>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEnd {
    /// When.
    pub at: Timestamp,
    /// The code of the answer; `CANCELLED` when the caller went away before.
    pub code: Code,
    /// The text of an error.
    pub message: String,
    /// Whether the call was carried out; true with an error is a fault after the effect.
    pub effect: bool,
}

/// The calls since the start of the process or since the log was emptied.
#[derive(Debug, Default)]
pub struct CallLog {
    records: VecDeque<CallRecord>,
    last: u64,
}

impl CallLog {
    /// Adds a call; its number is given here.
    pub fn begin(&mut self, record: CallRecord) -> u64 {
        self.last += 1;
        if self.records.len() == CAPACITY {
            self.records.pop_front();
        }
        self.records.push_back(CallRecord { number: self.last, ..record });
        self.last
    }

    /// Changes a call that is still in the log.
    pub fn update(&mut self, number: u64, change: impl FnOnce(&mut CallRecord)) {
        // Found by search from the end: a call that runs is among the last.
        if let Some(record) = self.records.iter_mut().rev().find(|record| record.number == number) {
            change(record);
        }
    }

    /// The calls in the order of their arrival.
    pub fn records(&self) -> impl Iterator<Item = &CallRecord> {
        self.records.iter()
    }

    /// Forgets all calls, those that still run too.
    pub fn clear(&mut self) {
        self.records.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(method: &str) -> CallRecord {
        CallRecord {
            number: 0,
            method: method.to_owned(),
            names: vec![],
            volumes: vec![],
            parameters: Parameters::new(),
            secrets: vec![],
            faults: vec![],
            started: Timestamp::UNIX_EPOCH,
            end: None,
        }
    }

    #[test]
    fn numbers_go_on_after_the_log_was_emptied() {
        let mut log = CallLog::default();
        let first = log.begin(record("A"));
        log.clear();
        let second = log.begin(record("B"));
        log.update(first, |record| record.method = "forgotten".to_owned());
        log.update(second, |record| record.faults.push("x".to_owned()));
        let records: Vec<&CallRecord> = log.records().collect();
        assert_eq!((first, second), (1, 2));
        assert_eq!(records.len(), 1);
        assert_eq!((&*records[0].method, records[0].number, records[0].faults.len()), ("B", 2, 1));
    }

    #[test]
    fn the_oldest_call_makes_room() {
        let mut log = CallLog::default();
        for _ in 0..=CAPACITY {
            log.begin(record("A"));
        }
        assert_eq!(log.records().count(), CAPACITY);
        assert_eq!(log.records().next().map(|record| record.number), Some(2));
    }
}
