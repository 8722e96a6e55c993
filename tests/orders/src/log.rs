//! What was asked of a program, in the order of arrival. No I/O.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// The oldest entries are forgotten beyond this many.
const CAPACITY: usize = 100_000;

/// An entry of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbered<R> {
    /// Its number; the first entry of the program has 1, also after the log was emptied.
    pub number: u64,
    /// What is kept of it.
    #[serde(flatten)]
    pub record: R,
}

impl<R> std::ops::Deref for Numbered<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.record
    }
}

/// The entries since the start of the program or since the log was emptied.
#[derive(Debug)]
pub struct Log<R> {
    entries: VecDeque<Numbered<R>>,
    last: u64,
}

impl<R> Default for Log<R> {
    fn default() -> Self {
        Self { entries: VecDeque::new(), last: 0 }
    }
}

impl<R> Log<R> {
    /// Adds an entry and answers its number.
    pub fn begin(&mut self, record: R) -> u64 {
        self.last += 1;
        if self.entries.len() == CAPACITY {
            self.entries.pop_front();
        }
        self.entries.push_back(Numbered { number: self.last, record });
        self.last
    }

    /// Changes an entry that is still there.
    pub fn update(&mut self, number: u64, change: impl FnOnce(&mut R)) {
        // The numbers in the log have no gaps.
        let first = self.entries.front().map_or(u64::MAX, |entry| entry.number);
        let position = number.checked_sub(first).and_then(|position| usize::try_from(position).ok());
        if let Some(entry) = position.and_then(|position| self.entries.get_mut(position)) {
            change(&mut entry.record);
        }
    }

    /// The entries in the order of their arrival.
    pub fn entries(&self) -> impl Iterator<Item = &Numbered<R>> {
        self.entries.iter()
    }

    /// Forgets all entries, those of calls that still run too.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_after_the_log_was_emptied() {
        let mut log = Log::default();
        let first = log.begin("a");
        log.clear();
        log.update(first, |record| *record = "forgotten");
        let second = log.begin("b");
        log.begin("c");
        log.update(first, |record| *record = "forgotten");
        log.update(second, |record| *record = "changed");
        log.update(99, |record| *record = "unknown");
        let entries: Vec<_> = log.entries().map(|entry| (entry.number, entry.record)).collect();
        assert_eq!(entries, [(2, "changed"), (3, "c")]);
    }

    #[test]
    fn the_oldest_entry_makes_room() {
        let mut log = Log::default();
        for number in 0..=CAPACITY {
            log.begin(number);
        }
        log.update(2, |record| *record = 0);
        assert_eq!(log.entries().count(), CAPACITY);
        assert_eq!(log.entries().next(), Some(&Numbered { number: 2, record: 0 }));
    }
}
