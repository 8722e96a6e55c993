//! From the state's values to messages and back.

use jiff::Timestamp;

use crate::csi;
use crate::csi::volume_content_source::{SnapshotSource, Type, VolumeSource};
use crate::state::{CapacityRange, Group, Refusal, Snapshot, Source, State, Volume};

impl From<csi::CapacityRange> for CapacityRange {
    fn from(range: csi::CapacityRange) -> Self {
        Self { required_bytes: range.required_bytes, limit_bytes: range.limit_bytes }
    }
}

impl From<Volume> for csi::Volume {
    fn from(volume: Volume) -> Self {
        Self {
            capacity_bytes: volume.capacity_bytes,
            volume_id: volume.id,
            volume_context: std::collections::HashMap::new(),
            content_source: volume.source.map(csi::VolumeContentSource::from),
        }
    }
}

impl From<Source> for csi::VolumeContentSource {
    fn from(source: Source) -> Self {
        let source = match source {
            Source::Snapshot(snapshot_id) => Type::Snapshot(SnapshotSource { snapshot_id }),
            Source::Volume(volume_id) => Type::Volume(VolumeSource { volume_id }),
        };
        Self { r#type: Some(source) }
    }
}

impl TryFrom<csi::VolumeContentSource> for Source {
    type Error = Refusal;

    fn try_from(source: csi::VolumeContentSource) -> Result<Self, Refusal> {
        match source.r#type {
            Some(Type::Snapshot(snapshot)) => Ok(Self::Snapshot(snapshot.snapshot_id)),
            Some(Type::Volume(volume)) => Ok(Self::Volume(volume.volume_id)),
            None => Err(Refusal::Missing { field: "volume_content_source.type" }),
        }
    }
}

/// A snapshot as it looks at `now`.
pub(super) fn snapshot(snapshot: &Snapshot, now: Timestamp) -> csi::Snapshot {
    csi::Snapshot {
        size_bytes: snapshot.size_bytes,
        snapshot_id: snapshot.id.clone(),
        source_volume_id: snapshot.volume_id.clone(),
        creation_time: Some(timestamp(snapshot.created)),
        ready_to_use: snapshot.ready.at(now),
        group_snapshot_id: snapshot.group_id.clone().unwrap_or_default(),
    }
}

/// A group as it looks at `now`: ready when all its members are.
pub(super) fn group(state: &State, group: &Group, now: Timestamp) -> csi::VolumeGroupSnapshot {
    let snapshots: Vec<_> = state.members(group).map(|member| snapshot(member, now)).collect();
    csi::VolumeGroupSnapshot {
        group_snapshot_id: group.id.clone(),
        creation_time: Some(timestamp(group.created)),
        ready_to_use: snapshots.iter().all(|snapshot| snapshot.ready_to_use),
        snapshots,
    }
}

fn timestamp(time: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds: time.as_second(), nanos: time.subsec_nanosecond() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_without_a_type_is_refused() {
        let refusal = Source::try_from(csi::VolumeContentSource { r#type: None }).expect_err("no type");
        assert_eq!(refusal.code(), tonic::Code::InvalidArgument);
        for source in [Source::Snapshot("s".to_owned()), Source::Volume("v".to_owned())] {
            assert_eq!(Source::try_from(csi::VolumeContentSource::from(source.clone())), Ok(source));
        }
    }

    #[test]
    fn nanoseconds_survive() {
        let time = Timestamp::new(1_700_000_000, 123_456_789).expect("time");
        let message = timestamp(time);
        assert_eq!((message.seconds, message.nanos), (1_700_000_000, 123_456_789));
    }
}
