//! The proof that the simulator behaves: scenarios whose outcomes must be those of the real controllers and sidecars.
//!
//! `cargo run -p cluster -- compare-storage` plays them on the simulator and on a real API server with
//! snapshot-controller, csi-snapshotter and csi-provisioner before the CSI driver of the tests, and prints what differs.
//! Compared are states that both come to rest in, not the moments on the way.

mod bed;
mod scenes;

use kube::Client;

pub use bed::{Storage, Trouble};

use crate::script::Entry;
use bed::Bed;

/// Plays all scenarios, each in a namespace that begins with `prefix`.
///
/// # Errors
/// When one can't go on, e.g. since an object never became what it waits for.
pub async fn play(
    client: &Client,
    storage: &Storage,
    driver: &str,
    prefix: &str,
) -> Result<Vec<Entry>, Trouble> {
    let mut entries = Vec::new();
    for (name, policy) in scenes::SCENES {
        storage.clear().await?;
        let mut bed = Bed::prepare(client, storage, driver, &format!("{prefix}-{name}"), policy).await?;
        scenes::play(name, &mut bed).await?;
        entries.extend(bed.end().await?);
    }
    Ok(entries)
}
