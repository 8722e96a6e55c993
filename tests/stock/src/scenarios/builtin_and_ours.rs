//! EnableCSI on and no policy that gives volumes to csi-actions: it stays passive, and deletes without harm.

use anyhow::{Result, ensure};
use futures::FutureExt;
use serde_json::json;

use super::standalone::{self, LIMIT};
use super::{Scenario, everywhere, expect};
use crate::components::velero::Server;
use crate::stack::Stack;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "builtin-and-ours",
    shows: "beside the built-in actions csi-actions is passive: nothing is snapshotted twice, deletion leaves nothing",
    skip_on: everywhere,
    run: |stack| run(stack).boxed_local(),
};

async fn run(stack: &mut Stack) -> Result<String> {
    stack.server(Server { enable_csi: true, ..standalone::server(stack)? }).await?;
    let application = stack.application("both", 2).await?;
    let backup = stack.backup("both", &application, &json!({})).await?;
    let settled = backup.settles(LIMIT).await?;
    expect::stored(stack, 2).await?;
    expect::clean(&settled, 2)?;
    for operation in backup.operations().await? {
        ensure!(
            operation.plugin == "velero.io/csi-volumesnapshot-backupper",
            "an operation is not the built-in's: {operation:?}"
        );
    }
    expect::no_complaints(stack, standalone::PLUGIN)?;
    backup.delete(LIMIT).await?;
    application.delete(&stack.cluster).await?;
    expect::nothing_left(stack).await?;
    Ok(format!("2 snapshots, 2 built-in operations, Completed after {:.1} s", settled.after.as_secs_f64()))
}
