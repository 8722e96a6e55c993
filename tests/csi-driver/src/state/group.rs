//! Group snapshots: snapshots of several volumes, taken at one time and deleted together.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::refusal::required;
use super::snapshot::{PREFIX as SNAPSHOT_PREFIX, cut};
use super::{Change, Context, Kind, Parameters, Refusal, Shape, Snapshot, State};

/// How the ids of groups begin.
const PREFIX: &str = "group-";

/// A group snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The handle that Kubernetes keeps in the group snapshot content.
    pub id: String,
    /// The name in the request.
    pub name: String,
    /// The members, in the order of the volumes in the request.
    pub snapshot_ids: Vec<String>,
    /// When all members were cut.
    pub created: Timestamp,
    /// The class's parameters.
    pub parameters: Parameters,
}

/// A request for a group snapshot.
#[derive(Debug, Clone, Default)]
pub struct NewGroup {
    /// The name, which makes the request repeatable.
    pub name: String,
    /// The volumes; their order does not matter.
    pub volume_ids: Vec<String>,
    /// The class's parameters.
    pub parameters: Parameters,
}

impl State {
    /// Takes snapshots of all volumes or of none, or finds the group that the same request made before.
    ///
    /// # Errors
    ///
    /// See [`Refusal`]: name or volumes missing, given twice or unknown, name taken by a group of other volumes.
    pub fn create_group(
        &mut self,
        new: NewGroup,
        shape: Shape,
        context: &Context,
    ) -> Result<Change<Group>, Refusal> {
        required("name", &new.name)?;
        let volume_ids: BTreeSet<&str> = new.volume_ids.iter().map(String::as_str).collect();
        if volume_ids.is_empty() {
            return Err(Refusal::Missing { field: "source_volume_ids" });
        }
        if volume_ids.len() != new.volume_ids.len() {
            let reason = "a volume is given twice".to_owned();
            return Err(Refusal::Invalid { field: "source_volume_ids", reason });
        }
        if let Some(existing) = self.groups.values().find(|group| group.name == new.name) {
            let members = self.members(existing);
            let difference =
                if members.map(|member| &*member.volume_id).collect::<BTreeSet<_>>() != volume_ids {
                    "set of volumes"
                } else if existing.parameters != new.parameters {
                    "set of parameters"
                } else {
                    return Ok(Change::none(existing.clone()));
                };
            return Err(Refusal::Exists { kind: Kind::Group, name: new.name, difference });
        }
        let id = format!("{PREFIX}{}", context.unique);
        let mut members = Vec::with_capacity(new.volume_ids.len());
        for (number, volume_id) in new.volume_ids.iter().enumerate() {
            let member_id = format!("{SNAPSHOT_PREFIX}{}-{number}", context.unique);
            let name = format!("{}/{volume_id}", new.name);
            let snapshot = cut(member_id, name, self.volume(volume_id)?, shape, context);
            members.push(Snapshot { group_id: Some(id.clone()), ..snapshot });
        }
        let work = members.iter().map(|member| self.add_snapshot(member)).collect();
        let group = Group {
            id: id.clone(),
            name: new.name,
            snapshot_ids: members.into_iter().map(|member| member.id).collect(),
            created: context.now,
            parameters: new.parameters,
        };
        self.groups.insert(id, group.clone());
        self.counters.groups_created += 1;
        Ok(Change { reply: group, work })
    }

    /// Deletes a group with its members; one that does not exist counts as deleted.
    ///
    /// `snapshot_ids` are the members that the caller knows; an empty list is not compared.
    ///
    /// # Errors
    ///
    /// [`Refusal::MemberMismatch`] when the group has other members.
    pub fn delete_group(&mut self, id: &str, snapshot_ids: &[String]) -> Result<Change<()>, Refusal> {
        required("group_snapshot_id", id)?;
        let Some(group) = self.groups.get(id) else {
            return Ok(Change::none(()));
        };
        group.consists_of(snapshot_ids)?;
        let members = group.snapshot_ids.clone();
        self.groups.remove(id);
        self.counters.groups_deleted += 1;
        let work = members.iter().filter_map(|member| self.remove_snapshot(member)).collect();
        Ok(Change { reply: (), work })
    }

    /// The group with this id. `snapshot_ids` as in [`State::delete_group`].
    ///
    /// # Errors
    ///
    /// [`Refusal::NotFound`], [`Refusal::MemberMismatch`].
    pub fn group(&self, id: &str, snapshot_ids: &[String]) -> Result<&Group, Refusal> {
        required("group_snapshot_id", id)?;
        let group =
            self.groups.get(id).ok_or_else(|| Refusal::NotFound { kind: Kind::Group, id: id.to_owned() })?;
        group.consists_of(snapshot_ids)?;
        Ok(group)
    }

    /// The members of a group.
    pub fn members<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = &'a Snapshot> {
        group.snapshot_ids.iter().filter_map(|id| self.snapshots.get(id))
    }
}

impl Group {
    fn consists_of(&self, snapshot_ids: &[String]) -> Result<(), Refusal> {
        let given: BTreeSet<&String> = snapshot_ids.iter().collect();
        if !given.is_empty() && given != self.snapshot_ids.iter().collect() {
            return Err(Refusal::MemberMismatch { id: self.id.clone() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::super::testing::*;
    use super::super::{Place, Work};
    use super::*;

    fn new(name: &str, volume_ids: &[&str]) -> NewGroup {
        let volume_ids = volume_ids.iter().map(|id| (*id).to_owned()).collect();
        NewGroup { name: name.to_owned(), volume_ids, ..NewGroup::default() }
    }

    #[test]
    fn a_group_is_made_once_whatever_the_order_of_its_volumes() {
        let mut state = state_with(&["v", "w"]);
        let first = state.create_group(new("g", &["vol-v", "vol-w"]), ready(), &context(5)).expect("create");
        assert_eq!(first.work.len(), 2);
        assert_eq!(first.reply.snapshot_ids, ["snap-5-0", "snap-5-1"]);
        assert!(state.snapshots.values().all(|member| member.group_id.as_deref() == Some("group-5")));
        let second = state.create_group(new("g", &["vol-w", "vol-v"]), ready(), &context(6)).expect("repeat");
        assert_eq!(second, Change::none(first.reply));
        assert_eq!((state.counters.groups_created, state.counters.snapshots_created), (1, 2));
    }

    #[test]
    fn wrong_requests_leave_no_member_behind() {
        let mut state = state_with(&["v", "w"]);
        state.create_group(new("g", &["vol-v", "vol-w"]), ready(), &context(5)).expect("create");
        for (request, code) in [
            (new("", &["vol-v"]), Code::InvalidArgument),
            (new("h", &[]), Code::InvalidArgument),
            (new("h", &["vol-v", "vol-v"]), Code::InvalidArgument),
            (new("h", &["vol-v", "vol-none"]), Code::NotFound),
            (new("g", &["vol-v"]), Code::AlreadyExists),
        ] {
            let before = state.clone();
            assert_eq!(state.create_group(request, ready(), &context(9)).expect_err("refused").code(), code);
            assert_eq!(state, before);
        }
    }

    #[test]
    fn members_go_with_their_group_only() {
        let mut state = state_with(&["v", "w"]);
        state.create_group(new("g", &["vol-v", "vol-w"]), ready(), &context(5)).expect("create");
        assert_eq!(state.delete_snapshot("snap-5-0").expect_err("member").code(), Code::InvalidArgument);
        let some = ["snap-5-0".to_owned()];
        let all = ["snap-5-1".to_owned(), "snap-5-0".to_owned()];
        assert_eq!(state.group("group-5", &some).expect_err("mismatch").code(), Code::InvalidArgument);
        assert_eq!(state.delete_group("group-5", &some).expect_err("mismatch").code(), Code::InvalidArgument);
        assert!(state.group("group-5", &all).is_ok() && state.group("group-5", &[]).is_ok());
        let work = state.delete_group("group-5", &all).expect("delete").work;
        let removed = |id: &str| Work::Remove(Place::Snapshot(id.to_owned()));
        assert_eq!(work, [removed("snap-5-0"), removed("snap-5-1")]);
        assert!(state.snapshots.is_empty());
        assert_eq!(state.delete_group("group-5", &all), Ok(Change::none(())));
        assert_eq!(state.group("group-5", &[]).expect_err("gone").code(), Code::NotFound);
    }
}
