//! The objects, one rising revision, and the history of changes that watches read.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;

use crate::kind::GroupResource;
use crate::object;

/// Changes that are kept for watches; older ones are answered with 410.
const HISTORY: usize = 20_000;
/// A fresh server has written some hundred objects of its own before its first client comes.
const FIRST: u64 = 100;

/// Where an object is kept. Sorts by resource, then namespace, then name, which is the order of lists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) resource: GroupResource,
    /// Empty for objects without a namespace.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    /// The place of an object; the namespace is empty when it has none.
    pub(crate) fn new(resource: &str, namespace: &str, name: &str) -> Self {
        Self { resource: resource.into(), namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// What one write did.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) key: Key,
    /// The object before; none when it was created.
    pub(crate) before: Option<Arc<Value>>,
    /// The object after; none when it was removed.
    pub(crate) after: Option<Arc<Value>>,
    /// The last state with the revision of this change: what a deletion event carries.
    pub(crate) last: Arc<Value>,
}

/// The history doesn't reach back that far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooOld {
    /// The oldest revision that can still be continued from.
    pub(crate) oldest: u64,
}

/// All objects of all kinds.
#[derive(Debug)]
pub(crate) struct Store {
    objects: BTreeMap<Key, Arc<Value>>,
    history: VecDeque<Change>,
    /// Changes up to this revision are no longer in the history.
    forgotten: u64,
    revision: watch::Sender<u64>,
}

impl Store {
    pub(crate) fn new() -> Self {
        Self {
            objects: BTreeMap::new(),
            history: VecDeque::new(),
            forgotten: 0,
            revision: watch::Sender::new(FIRST),
        }
    }

    /// The revision of the last write.
    pub(crate) fn revision(&self) -> u64 {
        *self.revision.borrow()
    }

    /// Wakes with every write.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    /// The objects of a resource in one namespace, or in all when it is empty, in the order of lists.
    pub(crate) fn list<'a>(
        &'a self,
        resource: &'a GroupResource,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
        let start = Key { resource: resource.clone(), namespace: namespace.to_owned(), name: String::new() };
        self.objects
            .range(start..)
            .take_while(move |(key, _)| key.resource == *resource)
            .take_while(move |(key, _)| namespace.is_empty() || key.namespace == namespace)
    }

    /// All objects.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        self.objects.iter()
    }

    /// Writes the object under a new revision and gives back what is now stored.
    pub(crate) fn put(&mut self, key: Key, mut value: Value) -> Arc<Value> {
        let revision = self.revision() + 1;
        object::set_metadata(&mut value, "resourceVersion", Some(revision.to_string().into()));
        let after = Arc::new(value);
        let before = self.objects.insert(key.clone(), after.clone());
        self.record(Change { revision, key, before, after: Some(after.clone()), last: after.clone() });
        after
    }

    /// Removes the object; gives back its last state under the revision of the removal.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Arc<Value>> {
        let before = self.objects.remove(key)?;
        let revision = self.revision() + 1;
        let mut last = Value::clone(&before);
        object::set_metadata(&mut last, "resourceVersion", Some(revision.to_string().into()));
        let last = Arc::new(last);
        self.record(Change {
            revision,
            key: key.clone(),
            before: Some(before),
            after: None,
            last: last.clone(),
        });
        Some(last)
    }

    /// The changes after a revision, oldest first.
    pub(crate) fn changes_after(&self, revision: u64) -> Result<impl Iterator<Item = &Change>, TooOld> {
        if revision < self.forgotten {
            return Err(TooOld { oldest: self.forgotten });
        }
        let start = self.history.partition_point(|change| change.revision <= revision);
        Ok(self.history.range(start..))
    }

    /// Forgets the history, as a compaction does: a watch from an older revision must start anew.
    pub(crate) fn forget(&mut self) {
        self.forgotten = self.revision();
        self.history.clear();
    }

    fn record(&mut self, change: Change) {
        let revision = change.revision;
        self.history.push_back(change);
        if self.history.len() > HISTORY
            && let Some(dropped) = self.history.pop_front()
        {
            self.forgotten = dropped.revision;
        }
        self.revision.send_replace(revision);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_sorted_and_stay_within_resource_and_namespace() {
        let mut store = Store::new();
        for (resource, namespace, name) in [
            ("pods", "b", "x"),
            ("pods", "a", "z"),
            ("pods", "a", "y"),
            ("nodes", "", "n"),
            ("secrets", "a", "s"),
        ] {
            store.put(Key::new(resource, namespace, name), json!({}));
        }
        let names = |namespace: &str| -> Vec<String> {
            let pods = GroupResource::from("pods");
            store.list(&pods, namespace).map(|(key, _)| key.name.clone()).collect()
        };
        assert_eq!(names(""), ["y", "z", "x"]);
        assert_eq!(names("a"), ["y", "z"]);
        assert!(names("c").is_empty());
    }

    #[test]
    fn every_write_has_a_revision_and_a_removal_carries_its_own() {
        let mut store = Store::new();
        let put = store.put(Key::new("pods", "a", "x"), json!({}));
        assert_eq!(object::resource_version(&put), "101");
        let removed = store.remove(&Key::new("pods", "a", "x")).unwrap();
        assert_eq!(object::resource_version(&removed), "102");
        let changes: Vec<u64> = store.changes_after(FIRST).unwrap().map(|change| change.revision).collect();
        assert_eq!(changes, [101, 102]);
    }

    #[test]
    fn forgotten_history_is_too_old_but_the_present_is_not() {
        let mut store = Store::new();
        store.put(Key::new("pods", "a", "x"), json!({}));
        store.forget();
        assert_eq!(store.changes_after(FIRST).err(), Some(TooOld { oldest: 101 }));
        assert_eq!(store.changes_after(101).unwrap().count(), 0);
    }
}
