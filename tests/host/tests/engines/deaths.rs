//! What the death of a plugin's process costs a backup, wherever it comes: the rows of real servers.

use std::sync::Arc;

use serde_json::json;
use velero_host::minor::Minor;
use velero_host::operation::OperationPhase;
use velero_host::phase;
use velero_host::registry::{ListError, list};
use velero_host::session::{Journal, Processes, Start};
use velero_plugin::BackupPhase::{
    self, Completed, Failed, FinalizingPartiallyFailed, PartiallyFailed,
    WaitingForPluginOperations as Waiting, WaitingForPluginOperationsPartiallyFailed as WaitingPartially,
};

use crate::killing::Death::{self, After, Started, Within};
use crate::killing::Executioner;
use crate::support::{Record, World, dying, object};

/// What became of a backup of three ConfigMaps, each with an operation that ends in the first round.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fate {
    /// The phase once the items are done.
    after_items: BackupPhase,
    /// The phase at the end.
    end: BackupPhase,
    /// `status.errors`.
    errors: u64,
    /// Items in the archive.
    archived: usize,
    /// Operations that failed.
    failed: usize,
    /// How often finalizing was tried until it went through.
    finalizing: usize,
    /// Items that were read again at the end.
    finalized: usize,
    /// Errors of delete actions in the server's log.
    logged: usize,
    /// Whether the backup is deleted.
    deleted: bool,
}

/// Nothing was lost.
const WELL: Fate = Fate {
    after_items: Waiting,
    end: Completed,
    errors: 0,
    archived: 3,
    failed: 0,
    finalizing: 1,
    finalized: 3,
    logged: 0,
    deleted: true,
};

/// The line in the backup's log that says that a process ended badly.
const ONLY_THE_LINE: Fate = Fate { after_items: WaitingPartially, end: PartiallyFailed, errors: 1, ..WELL };

async fn fate(death: Option<Death>) -> Fate {
    let objects = ["ends-1", "ends-2", "ends-3"].map(|name| object("ConfigMap", "a", name));
    let world = World::of_processes(&objects, death).await;
    let mut backup = world.back_up(json!({})).await;
    let after_items = backup.phase();
    while phase::is_waiting(backup.phase()) {
        world.server.round(&mut backup).await.unwrap();
    }
    let mut finalizing = 1;
    while world.server.finalize(&mut backup).await.is_err() {
        finalizing += 1;
    }
    let (end, errors) = (backup.phase(), backup.count("errors"));
    let operations = world.server.store().operations("backup-1").await.unwrap();
    let failed = operations.iter().filter(|one| one.status.phase == OperationPhase::Failed).count();
    let (mut archived, mut finalized) = (0, 0);
    if end != Failed {
        let archive = world.archive().await;
        archived = archive.items().len();
        let items = archive.items();
        let again = items.iter().filter(|item| {
            archive.item(item).is_some_and(|text| String::from_utf8_lossy(text).contains("twice"))
        });
        finalized = again.count();
    }
    let deletion = world.server.delete(&mut backup).await.unwrap();
    assert_eq!(world.record.count("killed"), usize::from(death.is_some()), "{death:?}");
    let deleted = world.server.store().keys("backup-1").await.unwrap().is_empty();
    assert_eq!(deletion.errors.is_empty(), deleted, "{:?}", deletion.errors);
    let logged = deletion.logged.len();
    Fate { after_items, end, errors, archived, failed, finalizing, finalized, logged, deleted }
}

// Calls are counted over all stages: the items (1 AppliesTo, 3 Execute, 3 Progress), a round (3 Progress), finalize
// (1 AppliesTo, 3 Execute), the deletion (1 AppliesTo, 3 Execute).
#[tokio::test]
async fn a_death_costs_what_it_costs_on_a_real_server() {
    let table = [
        (None, WELL),
        // Between calls nothing is lost but the good name: the end of a process is an error in the backup's log.
        (Some(Started(1)), ONLY_THE_LINE),
        (Some(After("AppliesTo", 1)), ONLY_THE_LINE),
        (Some(After("Execute", 2)), ONLY_THE_LINE),
        (Some(After("Execute", 3)), ONLY_THE_LINE),
        // No backup without the selectors of all actions.
        (
            Some(Within("AppliesTo", 1)),
            Fate { after_items: Failed, end: Failed, archived: 0, finalized: 0, ..WELL },
        ),
        // The item and the next one; the line is the third error.
        (Some(Within("Execute", 1)), Fate { errors: 3, archived: 1, finalized: 1, ..ONLY_THE_LINE }),
        (Some(Within("Execute", 2)), Fate { errors: 3, archived: 1, finalized: 1, ..ONLY_THE_LINE }),
        (
            Some(Within("Execute", 3)),
            Fate { errors: 3, archived: 2, failed: 1, finalized: 2, ..ONLY_THE_LINE },
        ),
        // The operation and the next one. Their items are read again all the same.
        (Some(Within("Progress", 2)), Fate { errors: 3, failed: 2, ..ONLY_THE_LINE }),
        (Some(After("Progress", 1)), ONLY_THE_LINE),
        // In a round the line is in the server's log alone.
        (Some(Started(2)), WELL),
        (Some(After("Progress", 4)), WELL),
        (Some(Within("Progress", 4)), Fate { end: PartiallyFailed, errors: 3, failed: 3, ..WELL }),
        (Some(Within("Progress", 5)), Fate { end: PartiallyFailed, errors: 2, failed: 2, ..WELL }),
        // Errors of finalizing hide: the backup is Completed without what was to be read again.
        (Some(Started(3)), WELL),
        (Some(Within("AppliesTo", 2)), Fate { finalizing: 2, ..WELL }),
        (Some(Within("Execute", 5)), Fate { finalized: 1, ..WELL }),
        (Some(After("Execute", 5)), WELL),
        // Deleted whatever the actions say, unless nobody knows what they are for.
        (Some(Started(4)), WELL),
        (Some(Within("AppliesTo", 3)), Fate { deleted: false, ..WELL }),
        (Some(Within("Execute", 7)), Fate { logged: 3, ..WELL }),
        (Some(Within("Execute", 8)), Fate { logged: 2, ..WELL }),
        (Some(After("Execute", 7)), WELL),
    ];
    for (death, expected) in table {
        assert_eq!(fate(death).await, expected, "{death:?}");
    }
}

#[tokio::test]
async fn a_death_in_cancel_shows_nowhere() {
    for death in [Within("Cancel", 1), After("Cancel", 1)] {
        let world = World::of_processes(&[object("ConfigMap", "a", "waits")], Some(death)).await;
        let mut backup = world.back_up(json!({"itemOperationTimeout": "1m0s"})).await;
        world.clock.advance(61);
        world.server.round(&mut backup).await.unwrap();
        assert_eq!(world.record.count("killed"), 1);
        assert_eq!((backup.phase(), backup.count("errors")), (FinalizingPartiallyFailed, 1));
        let operations = world.server.store().operations("backup-1").await.unwrap();
        assert_eq!(operations[0].status.error, "Asynchronous action timed out");
    }
}

#[tokio::test]
async fn a_death_before_a_plugin_said_what_it_is_keeps_the_server_from_starting() {
    for death in [Started(1), Within("ListPlugins", 1)] {
        let start: Arc<dyn Start> = Arc::new(Processes::default());
        let record = Arc::new(Record::default());
        let journal = Journal::new(Arc::new(Executioner::new(death, record.clone())));
        let error = list(&[dying()], Minor::V1_18, &start, &journal).await.unwrap_err();
        assert!(matches!(error, ListError::List { .. }), "{error}");
        assert_eq!((record.count("killed"), record.count("start")), (1, 1), "it is not started again");
    }
}

/// With an exit code and by abort: the plugin's own doing.
#[tokio::test]
async fn a_process_that_ends_itself_costs_the_same() {
    for way in ["exits", "aborts"] {
        let objects = [object("ConfigMap", "a", way), object("Secret", "a", "s")];
        let world = World::of_processes(&objects, None).await;
        let mut backup = world.back_up(json!({})).await;
        assert_eq!((backup.phase(), backup.count("errors")), (FinalizingPartiallyFailed, 2));
        assert_eq!(world.archived().await, ["secrets a/s"]);
        let errors = world.record.of("error");
        let text =
            format!("(groupResource=configmaps, namespace=a, name={way}): rpc error: code = Unavailable");
        assert!(errors.iter().any(|error| error.contains(&text)), "{errors:?}");
        world.server.finalize(&mut backup).await.unwrap();
        assert_eq!(backup.phase(), PartiallyFailed);
    }
}

#[tokio::test]
async fn a_failed_operation_is_asked_about_no_more() {
    let objects = [object("ConfigMap", "a", "operates"), object("ConfigMap", "a", "waits")];
    let world = World::of_processes(&objects, Some(Within("Progress", 2))).await;
    let mut backup = world.back_up(json!({})).await;
    // The second operation died in the first poll; the first one ends its process in the round.
    assert_eq!((backup.phase(), world.record.count("call example.io/dying Progress")), (WaitingPartially, 2));
    world.server.round(&mut backup).await.unwrap();
    assert_eq!(backup.phase(), FinalizingPartiallyFailed);
    assert_eq!(world.record.count("call example.io/dying Progress"), 3);
    let operations = world.server.store().operations("backup-1").await.unwrap();
    assert!(operations.iter().all(|one| one.status.error.starts_with("rpc error: code = Unavailable")));
}
