//! An API server in trouble: throttled, failing, cut off before and after the write. Nothing of it may cost a snapshot.

use anyhow::{Result, ensure};
use csi_driver::control::Delay;
use csi_driver::fault::Fault;
use futures::FutureExt;
use serde_json::json;

use super::standalone::{self, LIMIT, ours};
use super::{Scenario, everywhere, expect};
use crate::components::velero::Server;
use crate::stack::Stack;
use crate::wait::{Look, until};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "api-trouble",
    shows: "requests of csi-actions that are throttled, refused or cut off cost neither operation nor snapshot",
    skip_on: everywhere,
    run: |stack| run(stack).boxed_local(),
};

async fn run(stack: &mut Stack) -> Result<String> {
    let server = Server { through_proxy: true, ..standalone::server(stack)? };
    stack.server(server).await?;
    let application = stack.application("trouble", 2).await?;
    stack.driver.control.order(&Fault::on("CreateSnapshot").volume("trouble/data-1").never_ready()).await?;

    // The snapshot is created, and the plugin doesn't learn it: it must find its own again, not create another.
    stack.proxy.order(ours("create", "volumesnapshots").times(1).close().after_effect())?;
    stack.proxy.order(ours("create", "volumesnapshots").skip(1).times(1).throttle(1))?;
    let backup = stack.backup("trouble", &application, &json!({})).await?;
    backup.reaches("WaitingForPluginOperations", LIMIT).await?;
    let mut hits = stack.proxy.withdraw_all()?;

    // Every poll is a fresh process with its own first request.
    let state = || ours("*", "volumesnapshot*");
    stack.proxy.order(state().times(1).fail(500))?;
    stack.proxy.order(state().skip(1).times(1).close())?;
    stack.proxy.order(state().skip(2).times(2).fail(503))?;
    stack.proxy.forget_requests();
    until("some requests of csi-actions in polls", LIMIT, || async {
        let requests = stack.proxy.requests_of(standalone::PLUGIN);
        Ok(if requests.len() > 4 { Look::Found(()) } else { Look::NotYet(format!("{requests:?}")) })
    })
    .await?;
    hits += stack.proxy.withdraw_all()?;
    for view in stack.driver.control.snapshots().await? {
        stack.driver.control.set_readiness(&view.snapshot.id, Delay::AfterMs(0)).await?;
    }
    let settled = backup.settles(LIMIT).await?;
    expect::clean(&settled, 2)?;
    for operation in backup.operations().await? {
        standalone::good_operation(&operation, &application.namespace)?;
    }
    expect::stored(stack, 2).await?;

    stack.proxy.order(ours("create", "volumesnapshotcontents").times(1).close().after_effect())?;
    stack.proxy.order(ours("watch", "volumesnapshotcontents").times(1).fail(500))?;
    stack.proxy.order(ours("delete", "volumesnapshotcontents").times(1).close())?;
    backup.delete(LIMIT).await?;
    hits += stack.proxy.withdraw_all()?;
    expect::nothing_left(stack).await?;
    expect::no_complaints(stack, standalone::PLUGIN)?;
    stack.driver.control.withdraw_all().await?;
    application.delete(&stack.cluster).await?;
    ensure!(hits >= 9, "only {hits} requests were hit");
    Ok(format!("{hits} requests hit, Completed, deleted"))
}
