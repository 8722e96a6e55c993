//! States and contexts that the table tests start from.

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::csi::VolumeCapability;
use crate::csi::volume_capability::access_mode::Mode;
use crate::csi::volume_capability::{AccessMode, AccessType, MountVolume};

/// The size of the volumes of [`state_with`].
pub(super) const VOLUME_BYTES: i64 = 1 << 30;

/// The size of the storage.
pub(super) const POOL_BYTES: i64 = 10 << 30;

/// The context of the `number`-th call: its id and its time.
pub(super) fn context(number: i64) -> Context {
    Context {
        now: Timestamp::UNIX_EPOCH + SignedDuration::from_secs(number),
        unique: number.to_string(),
        pool_bytes: POOL_BYTES,
    }
}

/// A state with volumes of these names; the id of volume `x` is `vol-x`.
pub(super) fn state_with(names: &[&str]) -> State {
    let mut state = State::default();
    for name in names {
        let context = Context { unique: (*name).to_owned(), ..context(0) };
        let new = NewVolume { name: (*name).to_owned(), ..NewVolume::default() };
        state.create_volume(new, &context).expect("volume");
    }
    state
}

/// Adds a ready snapshot and answers its id.
pub(super) fn snapshot(state: &mut State, name: &str, volume_id: &str) -> String {
    let context = Context { unique: name.to_owned(), ..context(1) };
    let new =
        NewSnapshot { name: name.to_owned(), volume_id: volume_id.to_owned(), ..NewSnapshot::default() };
    state.create_snapshot(new, ready(), &context).expect("snapshot").reply.id
}

/// Ready at once, with the volume's size.
pub(super) fn ready() -> Shape {
    Shape { ready: Readiness::At(Timestamp::UNIX_EPOCH), size_bytes: None }
}

/// What external-provisioner asks for with a usual storage class.
pub(super) fn mount_capability() -> VolumeCapability {
    VolumeCapability {
        access_type: Some(AccessType::Mount(MountVolume::default())),
        access_mode: Some(AccessMode { mode: Mode::SingleNodeWriter.into() }),
    }
}
