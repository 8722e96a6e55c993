//! The claim that is snapshotted: found, held while its snapshots are unfinished, let go.

use std::sync::Arc;

use serde_json::Value;

use super::SnapshotController;
use crate::object;
use crate::rules::update::Part;
use crate::simulator::context::{Trouble, set};
use crate::simulator::keys::{CLAIM_FINALIZER, CLAIMS, SNAPSHOTS, VOLUMES};
use crate::store::Key;

impl SnapshotController {
    pub(super) fn claim_of(&self, snapshot: &Value) -> Option<Arc<Value>> {
        let name = set(snapshot, "/spec/source/persistentVolumeClaimName")?;
        self.context.cached(CLAIMS, object::namespace(snapshot), name)
    }

    pub(super) fn volume_of(&self, snapshot: &Value) -> Result<Arc<Value>, Trouble> {
        let name = object::text(snapshot, "/spec/source/persistentVolumeClaimName");
        let claim = self.claim_of(snapshot).ok_or_else(|| {
            let cause = format!("persistentvolumeclaim {name:?} not found");
            Trouble::Object(format!("failed to retrieve PVC {name} from the lister: {cause:?}"))
        })?;
        if object::text(&claim, "/status/phase") != "Bound" {
            let told =
                format!("the PVC {name} is not yet bound to a PV, will not attempt to take a snapshot");
            return Err(Trouble::Object(told));
        }
        let volume = object::text(&claim, "/spec/volumeName");
        let volume = self.context.get(&Key::new(VOLUMES, "", volume))?;
        let reference = &volume["spec"]["claimRef"];
        let ours = object::text(reference, "/name") == name
            && object::text(reference, "/namespace") == object::namespace(&claim)
            && set(reference, "/uid").is_none_or(|uid| uid == object::uid(&claim));
        if ours {
            Ok(volume)
        } else {
            Err(Trouble::Object("claim in dataSource not bound or invalid".to_owned()))
        }
    }

    pub(super) fn hold_claim(&self, snapshot: &Value) -> Result<(), Trouble> {
        const FAILED: &str = "snapshot controller failed to update";
        let claim = self.claim_of(snapshot).ok_or_else(|| {
            let name = object::name(snapshot);
            Trouble::Object(format!("{FAILED} {name} on API server: cannot get claim from snapshot"))
        })?;
        let mut with = Value::clone(&claim);
        if !object::set_finalizer(&mut with, CLAIM_FINALIZER, true) {
            return Ok(());
        }
        if object::deleting(&claim) {
            let name = object::name(&claim);
            return Err(Trouble::Object(format!(
                "{FAILED} {name} on API server: cannot add finalizer on claim because it is being deleted"
            )));
        }
        self.context.update(CLAIMS, with, Part::Main)?;
        Ok(())
    }

    /// Lets the claim go when no unfinished snapshot needs it any more.
    pub(super) fn release_claim(&self, snapshot: &Value, this_one_is_over: bool) -> Result<(), Trouble> {
        let Some(claim) = self.claim_of(snapshot) else { return Ok(()) };
        if !object::finalizers(&claim).any(|held| held == CLAIM_FINALIZER) {
            return Ok(());
        }
        let used = self.context.cache.list(SNAPSHOTS, object::namespace(snapshot)).iter().any(|other| {
            let over = this_one_is_over && object::name(other) == object::name(snapshot);
            let of_claim =
                object::text(other, "/spec/source/persistentVolumeClaimName") == object::name(&claim);
            !over && of_claim && other["status"]["readyToUse"] != true
        });
        if !used {
            let key = Key::new(CLAIMS, object::namespace(&claim), object::name(&claim));
            self.context.patch(&key, Part::Main, |object| {
                object::set_finalizer(object, CLAIM_FINALIZER, false);
            })?;
        }
        Ok(())
    }
}
