//! What a volume can be used for: a directory can be mounted, not attached as a block device.

use crate::csi::VolumeCapability;
use crate::csi::volume_capability::AccessType;
use crate::csi::volume_capability::access_mode::Mode;

use super::Refusal;

const FIELD: &str = "volume_capabilities";

/// Checks the capabilities that a request asks of a volume.
///
/// # Errors
///
/// [`Refusal::Missing`] when there is none, [`Refusal::Invalid`] when one is incomplete or can't be served.
pub fn check_capabilities(capabilities: &[VolumeCapability]) -> Result<(), Refusal> {
    if capabilities.is_empty() {
        return Err(Refusal::Missing { field: FIELD });
    }
    capabilities.iter().try_for_each(|capability| {
        let invalid = |reason: &str| Err(Refusal::Invalid { field: FIELD, reason: reason.to_owned() });
        match capability.access_type {
            Some(AccessType::Mount(_)) => {}
            Some(AccessType::Block(_)) => {
                return invalid("volumes are directories, ask for a mount instead of a block device");
            }
            None => return invalid("access_type is missing"),
        }
        match capability.access_mode.map(|access| access.mode()) {
            Some(Mode::Unknown) | None => invalid("access_mode is missing"),
            Some(_) => Ok(()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::mount_capability;
    use super::*;
    use crate::csi::volume_capability::{AccessMode, BlockVolume};

    #[test]
    fn only_complete_mount_capabilities_pass() {
        let good = mount_capability();
        let without_mode = VolumeCapability { access_mode: None, ..good.clone() };
        let unknown_mode =
            VolumeCapability { access_mode: Some(AccessMode { mode: Mode::Unknown.into() }), ..good.clone() };
        let without_type = VolumeCapability { access_type: None, ..good.clone() };
        let block = VolumeCapability { access_type: Some(AccessType::Block(BlockVolume {})), ..good.clone() };
        for (capabilities, passes) in [
            (vec![good.clone()], true),
            (vec![], false),
            (vec![good.clone(), without_mode], false),
            (vec![unknown_mode], false),
            (vec![without_type], false),
            (vec![good, block], false),
        ] {
            assert_eq!(check_capabilities(&capabilities).is_ok(), passes, "{capabilities:?}");
        }
    }
}
