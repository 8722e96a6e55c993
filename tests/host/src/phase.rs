//! The phases of a backup, as pure transitions. A restore moves in the same way from the end of its items on.

use velero_plugin::BackupPhase;
use velero_plugin::BackupPhase::{
    Completed, Finalizing, FinalizingPartiallyFailed, PartiallyFailed, WaitingForPluginOperations,
    WaitingForPluginOperationsPartiallyFailed,
};

/// After the items: operations may be outstanding, and lines at error level may have been logged.
pub fn after_items(outstanding: bool, errors: usize) -> BackupPhase {
    match (outstanding, errors > 0) {
        (true, false) => WaitingForPluginOperations,
        (true, true) => WaitingForPluginOperationsPartiallyFailed,
        (false, false) => Finalizing,
        (false, true) => FinalizingPartiallyFailed,
    }
}

/// After a poll of the operations; a phase that waits for none stays.
pub fn after_poll(phase: BackupPhase, outstanding: bool, new_errors: usize) -> BackupPhase {
    let failed = match phase {
        WaitingForPluginOperations => new_errors > 0,
        WaitingForPluginOperationsPartiallyFailed => true,
        other => return other,
    };
    after_items(outstanding, usize::from(failed))
}

/// After a finalize pass, whatever became of its items; `None` for a phase that isn't finalizing.
pub fn after_finalize(phase: BackupPhase) -> Option<BackupPhase> {
    match phase {
        Finalizing => Some(Completed),
        FinalizingPartiallyFailed => Some(PartiallyFailed),
        _ => None,
    }
}

/// Whether the backup waits for operations.
pub fn is_waiting(phase: BackupPhase) -> bool {
    matches!(phase, WaitingForPluginOperations | WaitingForPluginOperationsPartiallyFailed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_items() {
        let table = [
            (true, 0, WaitingForPluginOperations),
            (true, 2, WaitingForPluginOperationsPartiallyFailed),
            (false, 0, Finalizing),
            (false, 1, FinalizingPartiallyFailed),
        ];
        for (outstanding, errors, phase) in table {
            assert_eq!(after_items(outstanding, errors), phase, "{outstanding} {errors}");
        }
    }

    #[test]
    fn polls() {
        let waiting = WaitingForPluginOperations;
        let partially = WaitingForPluginOperationsPartiallyFailed;
        let table = [
            (waiting, false, 0, Finalizing),
            (waiting, true, 0, waiting),
            (waiting, true, 1, partially),
            (waiting, false, 1, FinalizingPartiallyFailed),
            (partially, false, 0, FinalizingPartiallyFailed),
            (partially, true, 0, partially),
            (partially, false, 1, FinalizingPartiallyFailed),
            (Completed, false, 1, Completed),
        ];
        for (phase, outstanding, errors, next) in table {
            assert_eq!(after_poll(phase, outstanding, errors), next, "{phase:?} {outstanding} {errors}");
        }
    }

    #[test]
    fn the_end() {
        assert_eq!(after_finalize(Finalizing), Some(Completed));
        assert_eq!(after_finalize(FinalizingPartiallyFailed), Some(PartiallyFailed));
        assert_eq!(after_finalize(WaitingForPluginOperations), None);
    }
}
