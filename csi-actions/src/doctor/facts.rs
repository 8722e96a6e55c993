//! What is read from the cluster. A question that can't be answered is a fact too; only a cluster that can't be reached at
//! all ends the look.

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use velero_plugin::Backup;

use super::claims::ahead;
use super::order::Order;
use super::server::{Server, group_label};
use crate::backup::group::Group;
use crate::cluster::permissions::{PERMISSIONS, Permission};
use crate::cluster::resource::{
    ACCESS_REVIEWS, BACKUPS, CLAIMS, CLASSES, CONTENTS, DEPLOYMENTS, DRIVERS, GROUP_SNAPSHOT_GROUP,
    OWN_ACCESS_REVIEWS, Resource, SNAPSHOT_GROUP, SNAPSHOTS, STORAGE_CLASSES, VOLUMES,
};
use crate::cluster::{ApiError, Cluster, Query, Reason};
use crate::group_api::GroupApi;
use crate::policy::{Decision, Decisions, PolicyError};
use crate::settings::Mode;

/// How many questions of a kind are under way at once.
const AT_ONCE: usize = 8;

/// An answer, or why there is none.
pub(super) type Look<T> = Result<T, String>;

/// A right that the account lacks: the entry and the verb.
pub(super) type Missing = (&'static Permission, &'static str);

/// A claim, and what the actions would decide about it.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    pub(super) claim: Value,
    pub(super) decision: Result<Decision, PolicyError>,
    /// The volume of one that is left out but is cut with its group, where it could be read.
    pub(super) volume: Option<Value>,
}

impl Judged {
    /// The volume of the claim, as far as it matters.
    pub(super) fn volume(&self) -> Option<&Value> {
        match &self.decision {
            Ok(Decision::Take(volume)) => Some(volume),
            _ => self.volume.as_ref(),
        }
    }
}

/// All that was read.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// The server's namespace.
    pub(super) namespace: String,
    pub(super) server: Look<Option<Server>>,
    /// The versions in which snapshots and group snapshots are served; `None` where they are not.
    pub(super) snapshot_versions: Look<Option<Vec<String>>>,
    pub(super) group_versions: Look<Option<Vec<String>>>,
    /// Of the namespaces that were asked for, each with what the actions would decide.
    pub(super) claims: Look<Vec<Judged>>,
    pub(super) storage_classes: Look<Vec<Value>>,
    pub(super) classes: Look<Vec<Value>>,
    pub(super) drivers: Look<Vec<Value>>,
    pub(super) snapshots: Look<Vec<Value>>,
    pub(super) contents: Look<Vec<Value>>,
    /// The same of groups; none where they are not served.
    pub(super) group_classes: Look<Vec<Value>>,
    pub(super) groups: Look<Vec<Value>>,
    pub(super) group_contents: Look<Vec<Value>>,
    pub(super) backups: Look<Vec<Value>>,
    /// The backup that is decided for: the named one before it ran, else one that orders nothing.
    pub(super) backup: Look<Backup>,
    /// Whose rights were asked for, and what is missing.
    pub(super) account: String,
    pub(super) missing: Look<Vec<Missing>>,
}

impl Facts {
    /// Reads it all.
    ///
    /// # Errors
    ///
    /// When the cluster can't be reached.
    pub(super) async fn gather(cluster: &Cluster, order: &Order) -> Result<Self, ApiError> {
        let deployment = match cluster.find(DEPLOYMENTS, &order.namespace, "velero").await {
            Err(error) if ends_the_look(&error) => return Err(error),
            found => found,
        };
        let server =
            deployment.map(|found| found.as_ref().and_then(Server::of)).map_err(|error| error.to_string());
        let namespace = &order.namespace;
        let as_server = order.as_server.then_some(&server);
        let account = match as_server {
            None => "the account that this runs as".to_owned(),
            Some(Ok(Some(server))) => format!("the server's account {namespace}/{}", server.account),
            Some(_) => "the server's account".to_owned(),
        };
        let missing = match as_server {
            None => missing(cluster, None).await,
            Some(Ok(Some(server))) => missing(cluster, Some((namespace, &server.account))).await,
            Some(_) => Err("the server's Deployment does not tell it".to_owned()),
        };
        let backup = match &order.backup {
            None => Ok(Backup::from(json!({}))),
            Some(name) => cluster
                .get(BACKUPS, namespace, name)
                .await
                .map(Backup::from)
                .map_err(|error| error.to_string()),
        };
        let known = server.as_ref().ok().and_then(Option::as_ref);
        let mode = known.map_or(Mode::Standalone, Server::mode);
        // Velero's own actions cut groups where they are on.
        let group_label = group_label(known).filter(|_| mode == Mode::Standalone);
        let backup = backup.map(|backup| ahead(&backup, group_label));
        let claims = match &backup {
            Ok(backup) => judged(cluster, mode, backup, order).await,
            Err(error) => Err(error.clone()),
        };
        let group_versions = cluster.versions(GROUP_SNAPSHOT_GROUP).await.map_err(|error| error.to_string());
        let api = group_api(&group_versions);
        Ok(Self {
            namespace: namespace.clone(),
            server,
            snapshot_versions: cluster.versions(SNAPSHOT_GROUP).await.map_err(|error| error.to_string()),
            claims,
            storage_classes: all(cluster, STORAGE_CLASSES).await,
            classes: all(cluster, CLASSES).await,
            drivers: all(cluster, DRIVERS).await,
            snapshots: all(cluster, SNAPSHOTS).await,
            contents: all(cluster, CONTENTS).await,
            group_classes: of_groups(cluster, &api, GroupApi::classes).await,
            groups: of_groups(cluster, &api, GroupApi::groups).await,
            group_contents: of_groups(cluster, &api, GroupApi::contents).await,
            group_versions,
            backups: all(cluster, BACKUPS).await,
            backup,
            account,
            missing,
        })
    }
}

/// The claims, and what the actions would decide about each.
async fn judged(cluster: &Cluster, mode: Mode, backup: &Backup, order: &Order) -> Look<Vec<Judged>> {
    let decisions = &Decisions::new(cluster.clone(), mode);
    let claims = all(cluster, CLAIMS).await?;
    let claims = claims.into_iter().filter(|claim| order.includes(crate::object::namespace(claim)));
    let judged = stream::iter(claims).map(|claim| async move {
        let decision = decisions.of(&claim, backup).await;
        let mut volume = None;
        if !matches!(decision, Ok(Decision::Take(_)))
            && let Some(group) = Group::of(&claim, backup)
            && let Ok(name) = group.volume_of(&claim)
        {
            volume = cluster.find(VOLUMES, "", name).await.ok().flatten();
        }
        Judged { claim, decision, volume }
    });
    Ok(judged.buffered(AT_ONCE).collect().await)
}

fn ends_the_look(error: &ApiError) -> bool {
    let hopeless = [Reason::NoCluster, Reason::Unreachable, Reason::Unauthorized, Reason::TimedOut];
    hopeless.contains(&error.reason)
}

/// The API of groups in the version that the actions would take; `None` where they would take none.
pub(super) fn group_api(versions: &Look<Option<Vec<String>>>) -> Look<Option<GroupApi>> {
    versions.clone().map(|versions| GroupApi::among(&versions.unwrap_or_default()))
}

async fn of_groups(
    cluster: &Cluster,
    api: &Look<Option<GroupApi>>,
    resource: fn(GroupApi) -> Resource,
) -> Look<Vec<Value>> {
    match api {
        Ok(Some(api)) => all(cluster, resource(*api)).await,
        Ok(None) => Ok(Vec::new()),
        Err(error) => Err(error.clone()),
    }
}

async fn all(cluster: &Cluster, resource: Resource) -> Look<Vec<Value>> {
    cluster.list(resource, &Query::default()).await.map_err(|error| error.to_string())
}

/// What the list of permissions has and the service account `of` (its namespace and name) lacks; whoever asks, without
/// one.
async fn missing(cluster: &Cluster, of: Option<(&str, &str)>) -> Look<Vec<Missing>> {
    let asked = PERMISSIONS.iter().flat_map(|each| each.verbs.iter().map(move |verb| (each, *verb)));
    let answers = stream::iter(asked).map(|(each, verb)| async move {
        let (resource, review) = review(each, verb, of);
        let answer = cluster.create(resource, "", &review).await.map_err(|error| error.to_string())?;
        Ok((answer["status"]["allowed"] != true).then_some((each, verb)))
    });
    let answers: Vec<Look<Option<Missing>>> = answers.buffered(AT_ONCE).collect().await;
    answers.into_iter().filter_map(Result::transpose).collect()
}

fn review(each: &Permission, verb: &str, of: Option<(&str, &str)>) -> (Resource, Value) {
    let Permission { resource, subresource, .. } = each;
    let attributes = json!({"group": resource.group, "version": resource.version, "resource": resource.plural,
        "subresource": subresource, "verb": verb});
    let (of_resource, kind, spec) = match of {
        None => (OWN_ACCESS_REVIEWS, "SelfSubjectAccessReview", json!({"resourceAttributes": attributes})),
        Some((namespace, account)) => {
            let groups = [
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ];
            let user = format!("system:serviceaccount:{namespace}:{account}");
            let spec = json!({"user": user, "groups": groups, "resourceAttributes": attributes});
            (ACCESS_REVIEWS, "SubjectAccessReview", spec)
        }
    };
    (of_resource, json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_names_the_account_with_the_groups_that_rules_may_be_bound_to() {
        let each = PERMISSIONS.iter().find(|each| each.subresource == "status").unwrap();
        let (resource, review) = review(each, "patch", Some(("velero", "velero-server")));
        assert_eq!(resource.plural, "subjectaccessreviews");
        assert_eq!(review["spec"]["user"], "system:serviceaccount:velero:velero-server");
        assert_eq!(review["spec"]["groups"][1], "system:serviceaccounts:velero");
        assert_eq!(review["spec"]["resourceAttributes"]["subresource"], "status");
        let (own, review) = super::review(each, "patch", None);
        assert_eq!(own.plural, "selfsubjectaccessreviews");
        assert_eq!(review["spec"].as_object().unwrap().len(), 1);
    }
}
