//! Volumes: created empty, from a snapshot or from another volume; independent of their source afterwards.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::page::page;
use super::refusal::{required, required_path};
use super::{
    CapacityRange, Change, Context, Kind, Page, PageRequest, Parameters, Place, Refusal, State, Work,
    object_key,
};

/// How the ids of volumes begin.
const PREFIX: &str = "vol-";

/// A volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// The handle that Kubernetes keeps in the persistent volume.
    pub id: String,
    /// The name in the request, e.g. `pvc-<uid>`.
    pub name: String,
    /// Its size in bytes; not enforced on what is written.
    pub capacity_bytes: i64,
    /// What its first content was.
    pub source: Option<Source>,
    /// The class's parameters, with the claim's name and namespace when the provisioner runs with
    /// `--extra-create-metadata`.
    pub parameters: Parameters,
    /// When it was created.
    pub created: Timestamp,
    /// Where it is mounted on this node: path → read-only.
    pub published: BTreeMap<String, bool>,
}

impl Volume {
    /// Names by which a test can know the volume: its id, its name and `namespace/name` of the claim.
    pub fn aliases(&self) -> Vec<String> {
        let mut aliases = vec![self.id.clone(), self.name.clone()];
        aliases.extend(object_key(&self.parameters, "pvc"));
        aliases
    }
}

/// What a volume's first content is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// That of the snapshot with this id.
    Snapshot(String),
    /// That of the volume with this id at the time of creation.
    Volume(String),
}

/// A request for a volume.
#[derive(Debug, Clone, Default)]
pub struct NewVolume {
    /// The name, which makes the request repeatable.
    pub name: String,
    /// The capacity.
    pub capacity: CapacityRange,
    /// The first content; empty when absent.
    pub source: Option<Source>,
    /// The class's parameters.
    pub parameters: Parameters,
}

impl State {
    /// Creates a volume, or finds the one that the same request created before.
    ///
    /// # Errors
    ///
    /// See [`Refusal`]: bad name or range, source absent or not ready, name taken, storage full.
    pub fn create_volume(&mut self, new: NewVolume, context: &Context) -> Result<Change<Volume>, Refusal> {
        required("name", &new.name)?;
        new.capacity.check()?;
        if let Some(existing) = self.volumes.values().find(|volume| volume.name == new.name) {
            return same_volume(existing, &new).map(|()| Change::none(existing.clone()));
        }
        let id = format!("{PREFIX}{}", context.unique);
        let to = Place::Volume(id.clone());
        let (floor, work) = match &new.source {
            None => (0, Work::Make(to)),
            Some(Source::Snapshot(source)) => {
                let snapshot = self.snapshot(source)?;
                if !snapshot.ready.at(context.now) {
                    return Err(Refusal::NotReady { id: source.clone() });
                }
                (snapshot.size_bytes, Work::Copy { from: Place::Snapshot(source.clone()), to })
            }
            Some(Source::Volume(source)) => {
                let volume = self.volume(source)?;
                (volume.capacity_bytes, Work::Copy { from: Place::Volume(source.clone()), to })
            }
        };
        let capacity_bytes = new.capacity.choose(&new.name, floor)?;
        self.take(capacity_bytes, context.pool_bytes)?;
        let volume = Volume {
            id: id.clone(),
            name: new.name,
            capacity_bytes,
            source: new.source,
            parameters: new.parameters,
            created: context.now,
            published: BTreeMap::new(),
        };
        self.volumes.insert(id, volume.clone());
        self.counters.volumes_created += 1;
        Ok(Change { reply: volume, work: vec![work] })
    }

    /// Deletes a volume; one that does not exist counts as deleted. Its snapshots stay.
    ///
    /// # Errors
    ///
    /// [`Refusal::InUse`] while it is published.
    pub fn delete_volume(&mut self, id: &str) -> Result<Change<()>, Refusal> {
        required("volume_id", id)?;
        let Some(volume) = self.volumes.get(id) else {
            return Ok(Change::none(()));
        };
        if let Some(target) = volume.published.keys().next() {
            return Err(Refusal::InUse { id: id.to_owned(), target: target.clone() });
        }
        self.volumes.remove(id);
        self.counters.volumes_deleted += 1;
        Ok(Change { reply: (), work: vec![Work::Remove(Place::Volume(id.to_owned()))] })
    }

    /// Makes a volume larger and answers its capacity in bytes; one that is large enough stays as it is.
    ///
    /// # Errors
    ///
    /// [`Refusal::Missing`] without a range, [`Refusal::NotFound`], [`Refusal::OutOfRange`] when the volume is
    /// larger than the limit already, [`Refusal::Exhausted`].
    pub fn expand_volume(
        &mut self,
        id: &str,
        range: Option<CapacityRange>,
        context: &Context,
    ) -> Result<i64, Refusal> {
        required("volume_id", id)?;
        let range = range.ok_or(Refusal::Missing { field: "capacity_range" })?;
        let current = self.volume(id)?.capacity_bytes;
        let wanted = range.choose(id, 0)?.max(current);
        if !range.holds(wanted) {
            let reason = format!("it has {current} bytes, the limit is {}", range.limit_bytes);
            return Err(Refusal::OutOfRange { name: id.to_owned(), reason });
        }
        self.take(wanted - current, context.pool_bytes)?;
        self.volume_mut(id)?.capacity_bytes = wanted;
        Ok(wanted)
    }

    /// Publishes a volume at `target`; once more does no harm.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFound`], or [`Refusal::Exists`] when it is there with another read-only flag.
    pub fn publish_volume(&mut self, id: &str, target: &str, read_only: bool) -> Result<Change<()>, Refusal> {
        required("volume_id", id)?;
        required_path("target_path", target)?;
        let published = &mut self.volume_mut(id)?.published;
        match published.get(target) {
            Some(&before) if before != read_only => {
                let difference = "readonly flag";
                return Err(Refusal::Exists { kind: Kind::Volume, name: id.to_owned(), difference });
            }
            Some(_) => {}
            None => {
                published.insert(target.to_owned(), read_only);
            }
        }
        // Repeated with the request: the mount may be gone after a restart.
        let work = Work::Mount { volume: id.to_owned(), target: target.to_owned(), read_only };
        Ok(Change { reply: (), work: vec![work] })
    }

    /// Ends the publication of a volume at `target`, also when there is none.
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFound`].
    pub fn unpublish_volume(&mut self, id: &str, target: &str) -> Result<Change<()>, Refusal> {
        required("volume_id", id)?;
        required_path("target_path", target)?;
        self.volume_mut(id)?.published.remove(target);
        let work = Work::Unmount { volume: id.to_owned(), target: target.to_owned() };
        Ok(Change { reply: (), work: vec![work] })
    }

    /// The volume with this id.
    ///
    /// # Errors
    ///
    /// [`Refusal::Missing`] for an empty id, [`Refusal::NotFound`].
    pub fn volume(&self, id: &str) -> Result<&Volume, Refusal> {
        required("volume_id", id)?;
        self.volumes.get(id).ok_or_else(|| Refusal::NotFound { kind: Kind::Volume, id: id.to_owned() })
    }

    fn volume_mut(&mut self, id: &str) -> Result<&mut Volume, Refusal> {
        self.volumes.get_mut(id).ok_or_else(|| Refusal::NotFound { kind: Kind::Volume, id: id.to_owned() })
    }

    /// A page of the volumes.
    ///
    /// # Errors
    ///
    /// [`Refusal::Token`] for a token that is not of this driver.
    pub fn list_volumes(&self, request: PageRequest<'_>) -> Result<Page<Volume>, Refusal> {
        page(&self.volumes, PREFIX, request, |_| true)
    }
}

/// Whether `existing` is what `new` asks for.
fn same_volume(existing: &Volume, new: &NewVolume) -> Result<(), Refusal> {
    let difference = if !new.capacity.holds(existing.capacity_bytes) {
        "capacity"
    } else if existing.source != new.source {
        "content source"
    } else if existing.parameters != new.parameters {
        "set of parameters"
    } else {
        return Ok(());
    };
    Err(Refusal::Exists { kind: Kind::Volume, name: new.name.clone(), difference })
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::super::Readiness;
    use super::super::testing::*;
    use super::*;

    fn sized(name: &str, required_bytes: i64, limit_bytes: i64) -> NewVolume {
        let capacity = CapacityRange { required_bytes, limit_bytes };
        NewVolume { name: name.to_owned(), capacity, ..NewVolume::default() }
    }

    fn from(name: &str, source: Source) -> NewVolume {
        NewVolume { name: name.to_owned(), source: Some(source), ..NewVolume::default() }
    }

    #[test]
    fn a_repeated_request_finds_the_volume_and_does_nothing() {
        let mut state = State::default();
        let first = state.create_volume(sized("v", 5, 0), &context(1)).expect("create");
        assert_eq!(first.work, [Work::Make(Place::Volume("vol-1".to_owned()))]);
        let second = state.create_volume(sized("v", 5, 0), &context(2)).expect("repeat");
        assert_eq!(second, Change::none(first.reply));
        assert_eq!(state.counters.volumes_created, 1);
    }

    #[test]
    fn a_taken_name_is_refused_for_another_volume() {
        let mut state = state_with(&["v", "other"]);
        let snapshot = snapshot(&mut state, "s", "vol-v");
        let parameters = Parameters::from([("tier".to_owned(), "fast".to_owned())]);
        for (request, difference) in [
            (sized("v", 2 * VOLUME_BYTES, 0), "capacity"),
            (sized("v", 0, 1), "capacity"),
            (from("v", Source::Snapshot(snapshot)), "content source"),
            (from("v", Source::Volume("vol-other".to_owned())), "content source"),
            (NewVolume { parameters, ..sized("v", 0, 0) }, "parameters"),
        ] {
            let before = state.clone();
            let refusal = state.create_volume(request, &context(9)).expect_err(difference);
            assert_eq!(refusal.code(), Code::AlreadyExists);
            assert!(refusal.to_string().ends_with(difference), "{refusal}");
            assert_eq!(state, before);
        }
    }

    #[test]
    fn a_source_must_exist_be_ready_and_fit() {
        let mut state = state_with(&["v"]);
        let ready = snapshot(&mut state, "ready", "vol-v");
        let never = snapshot(&mut state, "never", "vol-v");
        state.set_readiness(&never, Readiness::Never).expect("set");
        let unknown = "none".to_owned();
        let small = CapacityRange { required_bytes: VOLUME_BYTES - 1, limit_bytes: 0 };
        for (source, capacity, code) in [
            (Source::Snapshot(unknown.clone()), CapacityRange::default(), Code::NotFound),
            (Source::Volume(unknown), CapacityRange::default(), Code::NotFound),
            (Source::Snapshot(never), CapacityRange::default(), Code::Unavailable),
            (Source::Snapshot(ready.clone()), small, Code::OutOfRange),
            (Source::Volume("vol-v".to_owned()), small, Code::OutOfRange),
        ] {
            let request = NewVolume { capacity, ..from("new", source) };
            assert_eq!(state.create_volume(request, &context(9)).expect_err("refused").code(), code);
        }
        let change =
            state.create_volume(from("new", Source::Snapshot(ready.clone())), &context(9)).expect("create");
        assert_eq!(change.reply.capacity_bytes, VOLUME_BYTES);
        let to = Place::Volume("vol-9".to_owned());
        assert_eq!(change.work, [Work::Copy { from: Place::Snapshot(ready), to }]);
    }

    #[test]
    fn the_storage_can_be_full() {
        let mut state = state_with(&["v"]);
        let refusal = state.create_volume(sized("w", POOL_BYTES, 0), &context(9)).expect_err("full");
        assert_eq!(refusal.code(), Code::ResourceExhausted);
        let rest = state.available_bytes(POOL_BYTES);
        state.create_volume(sized("w", rest, 0), &context(9)).expect("fits");
        assert_eq!(state.available_bytes(POOL_BYTES), 0);
    }

    #[test]
    fn deletion_is_repeatable_and_spares_snapshots_and_mounted_volumes() {
        let mut state = state_with(&["v"]);
        let snapshot = snapshot(&mut state, "s", "vol-v");
        state.publish_volume("vol-v", "/mnt", false).expect("publish");
        assert_eq!(state.delete_volume("vol-v").expect_err("in use").code(), Code::FailedPrecondition);
        state.unpublish_volume("vol-v", "/mnt").expect("unpublish");
        let work = state.delete_volume("vol-v").expect("delete").work;
        assert_eq!(work, [Work::Remove(Place::Volume("vol-v".to_owned()))]);
        assert_eq!(state.delete_volume("vol-v"), Ok(Change::none(())));
        assert!(state.snapshot(&snapshot).is_ok());
        assert_eq!(state.counters.volumes_deleted, 1);
        assert_eq!(state.delete_volume("").expect_err("no id").code(), Code::InvalidArgument);
    }

    #[test]
    fn expansion_only_grows() {
        let range = |required_bytes, limit_bytes| Some(CapacityRange { required_bytes, limit_bytes });
        for (range, expected) in [
            (range(VOLUME_BYTES + 1, 0), Ok(VOLUME_BYTES + 1)),
            (range(1, 0), Ok(VOLUME_BYTES)),
            (range(1, VOLUME_BYTES - 1), Err(Code::OutOfRange)),
            (range(POOL_BYTES + 1, 0), Err(Code::ResourceExhausted)),
            (None, Err(Code::InvalidArgument)),
        ] {
            let mut state = state_with(&["v"]);
            let answer = state.expand_volume("vol-v", range, &context(9)).map_err(|refusal| refusal.code());
            assert_eq!(answer, expected, "{range:?}");
            assert_eq!(state.volumes["vol-v"].capacity_bytes, expected.unwrap_or(VOLUME_BYTES));
        }
        let unknown = State::default().expand_volume("vol-v", range(1, 0), &context(9));
        assert_eq!(unknown.expect_err("unknown").code(), Code::NotFound);
    }

    #[test]
    fn publishing_twice_must_be_the_same() {
        let mut state = state_with(&["v"]);
        let mount = |target: &str, read_only| Work::Mount {
            volume: "vol-v".to_owned(),
            target: target.to_owned(),
            read_only,
        };
        for (target, read_only) in [("/mnt", true), ("/mnt", true), ("/other", false)] {
            let change = state.publish_volume("vol-v", target, read_only).expect("publish");
            assert_eq!(change.work, [mount(target, read_only)]);
        }
        for (id, target, code) in [
            ("vol-v", "/mnt", Code::AlreadyExists),
            ("vol-x", "/mnt", Code::NotFound),
            ("", "/mnt", Code::InvalidArgument),
            ("vol-v", "", Code::InvalidArgument),
        ] {
            assert_eq!(state.publish_volume(id, target, false).expect_err("refused").code(), code);
        }
        assert_eq!(state.unpublish_volume("vol-x", "/mnt").expect_err("unknown").code(), Code::NotFound);
        assert_eq!(state.volumes["vol-v"].published.len(), 2);
    }

    #[test]
    fn a_claim_is_an_alias_where_the_provisioner_tells() {
        let key = |name: &str| format!("csi.storage.k8s.io/pvc/{name}");
        let parameters =
            Parameters::from([(key("name"), "data".to_owned()), (key("namespace"), "app".to_owned())]);
        let mut state = State::default();
        let request = NewVolume { parameters, ..sized("pvc-1", 0, 0) };
        let volume = state.create_volume(request, &context(1)).expect("create").reply;
        assert_eq!(volume.aliases(), ["vol-1", "pvc-1", "app/data"]);
    }
}
