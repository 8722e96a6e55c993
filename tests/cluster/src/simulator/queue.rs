//! A work queue as controllers have it: each key once, never at two workers, back again after a growing wait.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::store::Key;

/// Keys that wait for a worker.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    added: Notify,
    retry_start: Duration,
    retry_max: Duration,
}

#[derive(Debug, Default)]
struct Waiting {
    ready: VecDeque<Key>,
    /// Waiting, or to be worked on once more when the present work on them is done.
    dirty: BTreeSet<Key>,
    working: BTreeSet<Key>,
    failures: BTreeMap<Key, u32>,
}

impl Queue {
    pub(super) fn new(retry_start: Duration, retry_max: Duration) -> Self {
        Self { waiting: Mutex::default(), added: Notify::new(), retry_start, retry_max }
    }

    pub(super) fn add(&self, key: Key) {
        let mut waiting = self.lock();
        if !waiting.dirty.insert(key.clone()) || waiting.working.contains(&key) {
            return;
        }
        waiting.ready.push_back(key);
        self.added.notify_one();
    }

    /// The next key, which is the caller's until [`done`](Self::done).
    pub(super) async fn next(&self) -> Key {
        loop {
            if let Some(key) = self.take() {
                return key;
            }
            self.added.notified().await;
        }
    }

    fn take(&self) -> Option<Key> {
        let mut waiting = self.lock();
        let key = waiting.ready.pop_front()?;
        waiting.dirty.remove(&key);
        waiting.working.insert(key.clone());
        if !waiting.ready.is_empty() {
            self.added.notify_one();
        }
        Some(key)
    }

    /// Ends the work on a key. `again` brings it back after a wait that doubles each time.
    pub(super) fn done(self: &Arc<Self>, key: Key, again: bool) {
        let mut waiting = self.lock();
        waiting.working.remove(&key);
        if waiting.dirty.contains(&key) {
            waiting.ready.push_back(key.clone());
            self.added.notify_one();
        }
        if !again {
            waiting.failures.remove(&key);
            return;
        }
        let failures = waiting.failures.entry(key.clone()).or_default();
        let wait = self.retry_start.saturating_mul(1 << (*failures).min(20)).min(self.retry_max);
        *failures += 1;
        // Weak: the wait must not keep a stopped simulator's queue alive.
        let queue = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            if let Some(queue) = queue.upgrade() {
                queue.add(key);
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::new("pods", "", name)
    }

    #[tokio::test]
    async fn key_in_work_waits_until_it_is_done() {
        let queue = Arc::new(Queue::new(Duration::from_millis(1), Duration::from_millis(4)));
        queue.add(key("a"));
        queue.add(key("a"));
        assert_eq!(queue.next().await, key("a"));
        queue.add(key("a"));
        assert_eq!(queue.take(), None, "it is in work");
        queue.done(key("a"), false);
        assert_eq!(queue.take(), Some(key("a")));
        queue.done(key("a"), true);
        assert_eq!(queue.next().await, key("a"), "it comes back by itself");
    }
}
