//! What must be so; the demo fails where it isn't.

use velero_plugin::BackupPhase;

use crate::shop::CLAIMS;

/// Expectations with what was seen.
#[derive(Debug, Default)]
pub struct Checks(Vec<Check>);

/// One expectation.
#[derive(Debug)]
pub struct Check {
    /// In words.
    pub what: String,
    /// What was seen; with what should be, where that differs.
    pub seen: String,
    /// Whether it is as it must be.
    pub holds: bool,
}

/// What the storage tells, where it can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// Snapshots that it holds.
    pub snapshots: usize,
    /// How often the driver was asked for one.
    pub attempts: usize,
}

/// What there is once the backup has ended.
#[derive(Debug)]
pub struct BackedUp {
    /// The backup's phase.
    pub phase: BackupPhase,
    /// Its errors and warnings.
    pub counts: (u64, u64),
    /// Operations that ended well.
    pub completed: usize,
    /// The storage; `None` where it can't be asked.
    pub stored: Option<Stored>,
    /// Snapshots and contents in the cluster.
    pub objects: usize,
}

/// What there is once the backup is deleted.
#[derive(Debug)]
pub struct Deleted {
    /// Errors of the deletion, those that a server only logs too.
    pub errors: usize,
    /// The storage; `None` where it can't be asked.
    pub stored: Option<Stored>,
    /// Snapshots and contents in the cluster.
    pub objects: usize,
    /// Files of the backup.
    pub files: usize,
}

impl Checks {
    /// `what` is `expected`.
    pub fn equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, seen: &T, expected: &T) {
        let told = if seen == expected { format!("{seen:?}") } else { format!("{seen:?}, not {expected:?}") };
        self.0.push(Check { what: what.to_owned(), seen: told, holds: seen == expected });
    }

    /// The backup is whole, its data are in the storage, and nothing of it is left in the cluster.
    pub fn backed_up(&mut self, seen: &BackedUp) {
        let volumes = CLAIMS.len();
        self.equal("the backup's phase", &seen.phase, &BackupPhase::Completed);
        self.equal("errors and warnings of the backup", &seen.counts, &(0, 0));
        self.equal("completed operations", &seen.completed, &volumes);
        if let Some(stored) = seen.stored {
            self.equal("snapshots in the storage after the backup", &stored.snapshots, &volumes);
            self.equal("the storage was asked again after its refusal", &(stored.attempts > volumes), &true);
        }
        self.equal("snapshot objects left in the cluster", &seen.objects, &0);
    }

    /// Nothing is left.
    pub fn deleted(&mut self, seen: &Deleted) {
        self.equal("errors of the deletion", &seen.errors, &0);
        if let Some(stored) = seen.stored {
            self.equal("snapshots in the storage after the deletion", &stored.snapshots, &0);
        }
        self.equal("snapshot objects left after the deletion", &seen.objects, &0);
        self.equal("files left of the backup", &seen.files, &0);
    }

    /// All of them.
    pub fn all(&self) -> &[Check] {
        &self.0
    }

    /// Whether every one holds.
    pub fn hold(&self) -> bool {
        self.0.iter().all(|check| check.holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_does_not_hold_is_enough() {
        let mut checks = Checks::default();
        checks.equal("one", &1, &1);
        assert!(checks.hold());
        checks.equal("two", &2, &3);
        assert!(!checks.hold());
        assert_eq!(checks.all()[1].seen, "2, not 3");
    }

    #[test]
    fn each_fact_counts_and_a_storage_that_is_not_asked_does_not() {
        let whole = |stored| BackedUp {
            phase: BackupPhase::Completed,
            counts: (0, 0),
            completed: 3,
            stored,
            objects: 0,
        };
        let stored = Stored { snapshots: 3, attempts: 4 };
        let table = [
            (whole(Some(stored)), true),
            (whole(None), true),
            (BackedUp { phase: BackupPhase::PartiallyFailed, ..whole(None) }, false),
            (BackedUp { counts: (0, 1), ..whole(None) }, false),
            (BackedUp { completed: 2, ..whole(None) }, false),
            (whole(Some(Stored { snapshots: 2, ..stored })), false),
            (whole(Some(Stored { attempts: 3, ..stored })), false),
            (BackedUp { objects: 1, ..whole(None) }, false),
        ];
        for (seen, holds) in table {
            let mut checks = Checks::default();
            checks.backed_up(&seen);
            assert_eq!(checks.hold(), holds, "{seen:?}");
        }
        let gone = || Deleted { errors: 0, stored: None, objects: 0, files: 0 };
        let table = [
            (gone(), true),
            (Deleted { errors: 1, ..gone() }, false),
            (Deleted { stored: Some(stored), ..gone() }, false),
            (Deleted { objects: 1, ..gone() }, false),
            (Deleted { files: 1, ..gone() }, false),
        ];
        for (seen, holds) in table {
            let mut checks = Checks::default();
            checks.deleted(&seen);
            assert_eq!(checks.hold(), holds, "{seen:?}");
        }
    }
}
