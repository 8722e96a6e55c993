//! Plugins that a server refuses, and with them to start: one bad binary takes the whole Velero down.

use anyhow::{Result, ensure};
use futures::FutureExt;

use super::{Scenario, everywhere, expect};
use crate::components::velero::Server;
use crate::stack::Stack;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "refused-plugins",
    shows: "a duplicate name, an unknown kind, a bad name or no handshake ends the server at its start, in its own words",
    skip_on: everywhere,
    run: |stack| run(stack).boxed_local(),
};

/// Behaviour, and what every tested release says about it.
const REFUSALS: [(&str, &[&str]); 4] = [
    (
        "duplicate-name",
        &[
            "unable to register plugin (kind=BackupItemActionV2, name=misbehave.velero-rs.io/twice, command=",
            "because another plugin is already registered for this kind and name (command=",
        ],
    ),
    ("unknown-kind", &["invalid plugin kind: BackupItemActionV9"]),
    ("bad-name", &["plugin name must have exactly two parts separated by a `/`", "no-slash is invalid"]),
    ("no-handshake", &["nrecognized remote plugin message"]),
];

async fn run(stack: &mut Stack) -> Result<String> {
    for (behaviour, words) in REFUSALS {
        let server = Server { plugins: vec![stack.misbehaving(behaviour)], ..Server::default() };
        let (code, log) = stack.server_refusal(&server).await?;
        ensure!(code == Some(1), "{behaviour}: exit code 1 was expected, not {code:?}");
        for part in words {
            expect::says(&log, part)?;
        }
    }
    Ok("duplicate name, unknown kind, bad name, no handshake: exit code 1 each".to_owned())
}
