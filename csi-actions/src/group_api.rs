//! The API of group snapshots, in the version that the cluster serves.

use crate::cluster::resource::{GROUP_CLASSES, GROUP_CONTENTS, GROUP_SNAPSHOT_GROUP, GROUPS, Resource};
use crate::cluster::{ApiError, Cluster};

/// The versions that the actions know, the best one first. They differ in nothing that the actions read or write.
const KNOWN: [&str; 2] = ["v1", "v1beta2"];

/// What to tell a user whose cluster serves none of them.
pub const NOT_SERVED: &str = "groupsnapshot.storage.k8s.io is served in neither v1 nor v1beta2";

/// The API of group snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupApi {
    version: &'static str,
}

impl GroupApi {
    /// That of the cluster; `None` where it serves none that is known.
    ///
    /// # Errors
    ///
    /// When that can't be told.
    pub async fn of(cluster: &Cluster) -> Result<Option<Self>, ApiError> {
        Ok(Self::among(&cluster.versions(GROUP_SNAPSHOT_GROUP).await?.unwrap_or_default()))
    }

    pub(crate) fn among(served: &[String]) -> Option<Self> {
        let version = KNOWN.into_iter().find(|known| served.iter().any(|served| served == known))?;
        Some(Self { version })
    }

    /// Groups.
    pub fn groups(self) -> Resource {
        Resource { version: self.version, ..GROUPS }
    }

    /// Their contents.
    pub fn contents(self) -> Resource {
        Resource { version: self.version, ..GROUP_CONTENTS }
    }

    /// Their classes.
    pub fn classes(self) -> Resource {
        Resource { version: self.version, ..GROUP_CLASSES }
    }

    /// The `apiVersion` of all three.
    pub fn api_version(self) -> String {
        format!("{GROUP_SNAPSHOT_GROUP}/{}", self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_version_that_is_served_is_taken_and_an_older_one_is_none() {
        let of = |served: &[&str]| {
            let served: Vec<String> = served.iter().map(|version| (*version).to_owned()).collect();
            GroupApi::among(&served).map(|api| api.version)
        };
        assert_eq!(of(&["v1beta2", "v1beta1", "v1"]), Some("v1"));
        assert_eq!(of(&["v1beta2", "v1beta1"]), Some("v1beta2"));
        assert_eq!(of(&["v1beta1", "v1alpha1"]), None);
        assert_eq!(of(&[]), None);
    }
}
