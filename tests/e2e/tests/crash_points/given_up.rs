//! A backup whose snapshot is not ready within `itemOperationTimeout`: the server cancels the operation, and the plugin takes
//! the snapshot away. What a killed or disturbed Cancel leaves goes with the backup.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use cluster::simulator::Fault as DriverFault;
use serde_json::json;
use velero_host::model::Backup;
use velero_host::phase;
use velero_host::server::Deletion;

use crate::enumerate;
use crate::fault::{After, Fault};
use crate::world::{NAMESPACE, World};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_that_is_given_up_is_gone_with_its_backup_at_the_latest() {
    enumerate::all("give up", &[After::AsPlayed], flow).await;
}

async fn flow(fault: Option<Fault>) -> Result<World> {
    let world = World::new(&["data"], fault).await?;
    world.driver().order(DriverFault::on("CreateSnapshot").never_ready())?;
    // A time that is over in the first round.
    let object = json!({"metadata": {"name": "b1"},
        "spec": {"includedNamespaces": [NAMESPACE], "itemOperationTimeout": "1ms"}});
    let mut backup = Backup::new(object, "uid-of-b1")?;
    world.stage("items", world.server.back_up(&mut backup)).await??;
    ensure!(
        !phase::is_waiting(backup.phase()),
        "the operation was not given up: {}",
        backup.object()["status"]
    );
    if !world.kills() {
        ensure!(backup.count("errors") == 1, "only its time-out is an error: {}", backup.object()["status"]);
        world.holds(&BTreeSet::new()).await?;
    }
    world.stage("finalize", world.server.finalize(&mut backup)).await??;
    let deletion = world.delete(&mut backup).await?;
    ensure!(deletion == Deletion::default(), "{deletion:?}");
    world.holds(&BTreeSet::new()).await?;
    world.holds_no_objects().await?;
    world.end()?;
    Ok(world)
}
