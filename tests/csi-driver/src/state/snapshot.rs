//! Snapshots: cut at once, ready to use when ordered, independent of their volume.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::page::page;
use super::refusal::required;
use super::{
    Change, Context, Kind, Page, PageRequest, Parameters, Place, Refusal, State, Volume, Work, object_key,
};

/// How the ids of snapshots begin.
pub(super) const PREFIX: &str = "snap-";

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The handle that Kubernetes keeps in the snapshot content.
    pub id: String,
    /// The name in the request, e.g. `snapshot-<uid>`; that of a group's member is made up.
    pub name: String,
    /// The volume that it was taken of, which may be gone.
    pub volume_id: String,
    /// Its restore size in bytes, as reported; zero is "unknown".
    pub size_bytes: i64,
    /// When it was cut.
    pub created: Timestamp,
    /// When volumes can be made of it.
    pub ready: Readiness,
    /// The group that it belongs to.
    pub group_id: Option<String>,
    /// The class's parameters.
    pub parameters: Parameters,
}

impl Snapshot {
    /// Names by which a test can know the snapshot: its id, its name and `namespace/name` of the `VolumeSnapshot`.
    pub fn aliases(&self) -> Vec<String> {
        let mut aliases = vec![self.id.clone(), self.name.clone()];
        aliases.extend(object_key(&self.parameters, "volumesnapshot"));
        aliases
    }
}

/// From when on a snapshot is ready to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Readiness {
    /// From this time.
    At(Timestamp),
    /// Never, until a test orders otherwise.
    Never,
}

impl Readiness {
    /// Whether it is ready at `now`.
    pub fn at(self, now: Timestamp) -> bool {
        matches!(self, Self::At(time) if time <= now)
    }
}

/// What was ordered for the snapshots that a call creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// When they are ready.
    pub ready: Readiness,
    /// The restore size to report instead of the volume's, in bytes.
    pub size_bytes: Option<i64>,
}

/// A request for a snapshot.
#[derive(Debug, Clone, Default)]
pub struct NewSnapshot {
    /// The name, which makes the request repeatable.
    pub name: String,
    /// The volume to take it of.
    pub volume_id: String,
    /// The class's parameters.
    pub parameters: Parameters,
}

/// Which snapshots a list holds; an empty string lets all through.
#[derive(Debug, Clone, Copy, Default)]
pub struct SnapshotFilter<'a> {
    /// The snapshot with this id only.
    pub snapshot_id: &'a str,
    /// The snapshots of this volume only.
    pub volume_id: &'a str,
}

impl State {
    /// Takes a snapshot, or finds the one that the same request took before.
    ///
    /// # Errors
    ///
    /// See [`Refusal`]: name or volume missing or unknown, name taken by a snapshot of another volume.
    pub fn create_snapshot(
        &mut self,
        new: NewSnapshot,
        shape: Shape,
        context: &Context,
    ) -> Result<Change<Snapshot>, Refusal> {
        required("name", &new.name)?;
        required("source_volume_id", &new.volume_id)?;
        let alone = |snapshot: &&Snapshot| snapshot.group_id.is_none() && snapshot.name == new.name;
        if let Some(existing) = self.snapshots.values().find(alone) {
            if existing.volume_id != new.volume_id {
                let difference = "source volume";
                return Err(Refusal::Exists { kind: Kind::Snapshot, name: new.name, difference });
            }
            return Ok(Change::none(existing.clone()));
        }
        let volume = self.volume(&new.volume_id)?;
        let id = format!("{PREFIX}{}", context.unique);
        let snapshot = Snapshot { parameters: new.parameters, ..cut(id, new.name, volume, shape, context) };
        let work = self.add_snapshot(&snapshot);
        Ok(Change { reply: snapshot, work: vec![work] })
    }

    /// Deletes a snapshot; one that does not exist counts as deleted.
    ///
    /// # Errors
    ///
    /// [`Refusal::GroupMember`] for a member of a group.
    pub fn delete_snapshot(&mut self, id: &str) -> Result<Change<()>, Refusal> {
        required("snapshot_id", id)?;
        let Some(snapshot) = self.snapshots.get(id) else {
            return Ok(Change::none(()));
        };
        if let Some(group) = &snapshot.group_id {
            return Err(Refusal::GroupMember { id: id.to_owned(), group: group.clone() });
        }
        Ok(Change { reply: (), work: self.remove_snapshot(id).into_iter().collect() })
    }

    /// The snapshot with this id.
    ///
    /// # Errors
    ///
    /// [`Refusal::Missing`] for an empty id, [`Refusal::NotFound`].
    pub fn snapshot(&self, id: &str) -> Result<&Snapshot, Refusal> {
        required("snapshot_id", id)?;
        self.snapshots.get(id).ok_or_else(|| Refusal::NotFound { kind: Kind::Snapshot, id: id.to_owned() })
    }

    /// A page of the snapshots that the filter lets through; an unknown id gives an empty page.
    ///
    /// # Errors
    ///
    /// [`Refusal::Token`] for a token that is not of this driver.
    pub fn list_snapshots(
        &self,
        filter: SnapshotFilter<'_>,
        request: PageRequest<'_>,
    ) -> Result<Page<Snapshot>, Refusal> {
        let passes = |wanted: &str, value: &str| wanted.is_empty() || wanted == value;
        page(&self.snapshots, PREFIX, request, |snapshot| {
            passes(filter.snapshot_id, &snapshot.id) && passes(filter.volume_id, &snapshot.volume_id)
        })
    }

    /// Orders when an existing snapshot is ready.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFound`].
    pub fn set_readiness(&mut self, id: &str, ready: Readiness) -> Result<(), Refusal> {
        let snapshot = self.snapshots.get_mut(id);
        snapshot.ok_or_else(|| Refusal::NotFound { kind: Kind::Snapshot, id: id.to_owned() })?.ready = ready;
        Ok(())
    }

    pub(super) fn add_snapshot(&mut self, snapshot: &Snapshot) -> Work {
        self.snapshots.insert(snapshot.id.clone(), snapshot.clone());
        self.counters.snapshots_created += 1;
        Work::Copy {
            from: Place::Volume(snapshot.volume_id.clone()),
            to: Place::Snapshot(snapshot.id.clone()),
        }
    }

    pub(super) fn remove_snapshot(&mut self, id: &str) -> Option<Work> {
        self.snapshots.remove(id)?;
        self.counters.snapshots_deleted += 1;
        Some(Work::Remove(Place::Snapshot(id.to_owned())))
    }
}

/// A snapshot of `volume` as it comes into being.
pub(super) fn cut(id: String, name: String, volume: &Volume, shape: Shape, context: &Context) -> Snapshot {
    Snapshot {
        id,
        name,
        volume_id: volume.id.clone(),
        size_bytes: shape.size_bytes.unwrap_or(volume.capacity_bytes),
        created: context.now,
        ready: shape.ready,
        group_id: None,
        parameters: Parameters::new(),
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::super::testing::*;
    use super::*;

    fn new(name: &str, volume_id: &str) -> NewSnapshot {
        NewSnapshot { name: name.to_owned(), volume_id: volume_id.to_owned(), ..NewSnapshot::default() }
    }

    #[test]
    fn a_repeated_request_finds_the_snapshot_even_when_the_volume_is_gone() {
        let mut state = state_with(&["v"]);
        let first = state.create_snapshot(new("s", "vol-v"), ready(), &context(5)).expect("create");
        assert_eq!(
            first.work,
            [Work::Copy {
                from: Place::Volume("vol-v".to_owned()),
                to: Place::Snapshot("snap-5".to_owned())
            }]
        );
        state.delete_volume("vol-v").expect("delete");
        let second = state.create_snapshot(new("s", "vol-v"), ready(), &context(6)).expect("repeat");
        assert_eq!(second, Change::none(first.reply));
        assert_eq!(state.counters.snapshots_created, 1);
    }

    #[test]
    fn wrong_requests_change_nothing() {
        let mut state = state_with(&["v", "w"]);
        snapshot(&mut state, "s", "vol-v");
        for (request, code) in [
            (new("", "vol-v"), Code::InvalidArgument),
            (new("t", ""), Code::InvalidArgument),
            (new("t", "vol-none"), Code::NotFound),
            (new("s", "vol-w"), Code::AlreadyExists),
        ] {
            let before = state.clone();
            assert_eq!(
                state.create_snapshot(request, ready(), &context(9)).expect_err("refused").code(),
                code
            );
            assert_eq!(state, before);
        }
    }

    #[test]
    fn the_reported_size_is_the_volumes_unless_ordered() {
        for (size_bytes, expected) in [(None, VOLUME_BYTES), (Some(0), 0), (Some(7), 7)] {
            let mut state = state_with(&["v"]);
            let shape = Shape { size_bytes, ..ready() };
            let snapshot =
                state.create_snapshot(new("s", "vol-v"), shape, &context(5)).expect("create").reply;
            assert_eq!(snapshot.size_bytes, expected);
        }
    }

    #[test]
    fn readiness_comes_with_time_or_by_order() {
        let early = Timestamp::UNIX_EPOCH;
        let late = context(5).now;
        for (readiness, at_early, at_late) in [
            (Readiness::At(early), true, true),
            (Readiness::At(late), false, true),
            (Readiness::Never, false, false),
        ] {
            assert_eq!((readiness.at(early), readiness.at(late)), (at_early, at_late), "{readiness:?}");
        }
        let refusal = State::default().set_readiness("snap-1", Readiness::Never).expect_err("unknown");
        assert_eq!(refusal.code(), Code::NotFound);
    }

    #[test]
    fn deletion_is_repeatable() {
        let mut state = state_with(&["v"]);
        let id = snapshot(&mut state, "s", "vol-v");
        assert_eq!(
            state.delete_snapshot(&id).expect("delete").work,
            [Work::Remove(Place::Snapshot(id.clone()))]
        );
        assert_eq!(state.delete_snapshot(&id), Ok(Change::none(())));
        assert_eq!(state.delete_snapshot("").expect_err("no id").code(), Code::InvalidArgument);
        assert_eq!(state.counters.snapshots_deleted, 1);
    }

    #[test]
    fn lists_filter_by_snapshot_and_volume() {
        let mut state = state_with(&["v", "w"]);
        let s = snapshot(&mut state, "s", "vol-v");
        let t = snapshot(&mut state, "t", "vol-w");
        for (snapshot_id, volume_id, expected) in [
            ("", "", vec![&s, &t]),
            (&*s, "", vec![&s]),
            ("", "vol-w", vec![&t]),
            (&*s, "vol-w", vec![]),
            ("none", "", vec![]),
        ] {
            let filter = SnapshotFilter { snapshot_id, volume_id };
            let page = state.list_snapshots(filter, PageRequest::default()).expect("page");
            let ids: Vec<&String> = page.entries.iter().map(|snapshot| &snapshot.id).collect();
            assert_eq!(ids, expected);
        }
    }
}
