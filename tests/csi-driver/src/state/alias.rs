//! By which names a test can mean the objects of a call: ids, names, and the keys of the Kubernetes objects.

use super::{Parameters, State};

/// The names that a call touches, for the selectors of faults and for the call log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aliases {
    /// Of the object that the call is about.
    pub names: Vec<String>,
    /// Of the volumes that the call is about or that its object was taken of.
    pub volumes: Vec<String>,
}

/// `namespace/name` of the Kubernetes object behind a request, where the sidecar tells (`--extra-create-metadata`).
///
/// `kind` is `pvc`, `volumesnapshot` or `volumegroupsnapshot`.
pub fn object_key(parameters: &Parameters, kind: &str) -> Option<String> {
    let part = |part: &str| parameters.get(&format!("csi.storage.k8s.io/{kind}/{part}"));
    Some(format!("{}/{}", part("namespace")?, part("name")?))
}

impl State {
    /// All names of the objects that a call gives by `names`, and of the volumes that it gives by `volumes`;
    /// what is unknown stands for itself.
    pub fn aliases(&self, names: &[String], volumes: &[String]) -> Aliases {
        let mut found = Aliases::default();
        for volume in volumes {
            self.add_volume(volume, &mut found.volumes);
        }
        for name in names {
            add(&mut found.names, [name.clone()]);
            let called = |object: &[&String]| object.contains(&name);
            for volume in self.volumes.values().filter(|volume| called(&[&volume.id, &volume.name])) {
                add(&mut found.names, volume.aliases());
                add(&mut found.volumes, volume.aliases());
            }
            for snapshot in self.snapshots.values().filter(|found| called(&[&found.id, &found.name])) {
                add(&mut found.names, snapshot.aliases());
                self.add_volume(&snapshot.volume_id, &mut found.volumes);
            }
            for group in self.groups.values().filter(|group| called(&[&group.id, &group.name])) {
                add(&mut found.names, [group.id.clone(), group.name.clone()]);
                for member in self.members(group) {
                    self.add_volume(&member.volume_id, &mut found.volumes);
                }
            }
        }
        found
    }

    fn add_volume(&self, id: &str, to: &mut Vec<String>) {
        match self.volumes.get(id) {
            Some(volume) => add(to, volume.aliases()),
            None => add(to, [id.to_owned()]),
        }
    }
}

/// Adds what is new and not empty, in order.
fn add(to: &mut Vec<String>, names: impl IntoIterator<Item = String>) {
    for name in names {
        if !name.is_empty() && !to.contains(&name) {
            to.push(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::super::{NewGroup, NewVolume};
    use super::*;

    #[test]
    fn a_snapshot_is_found_by_its_claim() {
        let key = |part: &str| format!("csi.storage.k8s.io/pvc/{part}");
        let parameters = [(key("namespace"), "app".to_owned()), (key("name"), "data".to_owned())].into();
        let mut state = State::default();
        let new = NewVolume { name: "pvc-1".to_owned(), parameters, ..NewVolume::default() };
        state.create_volume(new, &context(1)).expect("volume");
        let id = snapshot(&mut state, "s", "vol-1");
        let found = state.aliases(std::slice::from_ref(&id), &[]);
        assert_eq!(found.names, [id, "s".to_owned()]);
        assert_eq!(found.volumes, ["vol-1", "pvc-1", "app/data"]);
    }

    #[test]
    fn a_group_stands_for_the_volumes_of_its_members() {
        let mut state = state_with(&["v", "w"]);
        let volume_ids = vec!["vol-v".to_owned(), "vol-w".to_owned()];
        let new = NewGroup { name: "g".to_owned(), volume_ids, ..NewGroup::default() };
        state.create_group(new, ready(), &context(5)).expect("group");
        let found = state.aliases(&["g".to_owned()], &[]);
        assert_eq!(found.names, ["g", "group-5"]);
        assert_eq!(found.volumes, ["vol-v", "v", "vol-w", "w"]);
    }

    #[test]
    fn what_is_unknown_stands_for_itself() {
        let found = State::default().aliases(&["x".to_owned(), String::new()], &["y".to_owned()]);
        assert_eq!(found, Aliases { names: vec!["x".to_owned()], volumes: vec!["y".to_owned()] });
    }
}
