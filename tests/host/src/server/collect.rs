//! Collects the items that a backup's spec names.

use std::collections::BTreeSet;

use serde_json::Value;

use super::filters::Filters;
use crate::client::ResourceIdentifier;
use crate::cluster::{Cluster, ClusterError};
use crate::discovery::{Discovery, Resource};
use crate::log::Level;
use crate::select::Labels;
use crate::session::Journal;

/// An object with its resource.
#[derive(Debug, Clone)]
pub(crate) struct Collected {
    pub(crate) resource: Resource,
    pub(crate) object: Value,
}

impl Collected {
    pub(crate) fn identifier(&self) -> ResourceIdentifier {
        ResourceIdentifier {
            group: self.resource.group.clone(),
            resource: self.resource.plural.clone(),
            namespace: namespace(&self.object).to_owned(),
            name: name(&self.object).to_owned(),
        }
    }
}

pub(crate) fn namespace(object: &Value) -> &str {
    object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

/// All items, in the order of discovery. A resource that can't be listed is an error in the log and no more.
pub(crate) async fn collect(
    cluster: &dyn Cluster,
    discovery: &Discovery,
    filters: &Filters,
    journal: &Journal,
) -> Vec<Collected> {
    let mut items: Vec<Collected> = Vec::new();
    let mut seen = BTreeSet::new();
    for resource in discovery.resources() {
        // The same objects show in two groups: the first one is taken.
        let twin = cohabits(resource) && !seen.insert(resource.plural.clone());
        if twin || !filters.includes(resource) {
            continue;
        }
        match list(cluster, resource, filters).await {
            Ok(objects) => {
                items.extend(
                    objects.into_iter().map(|object| Collected { resource: resource.clone(), object }),
                );
            }
            Err(error) => {
                let fields = [("resource", resource.plural.as_str()), ("error", &error.to_string())];
                journal.host_with(Level::Error, "Error listing items", &fields);
            }
        }
    }
    let inhabited: BTreeSet<String> = items.iter().map(|item| namespace(&item.object).to_owned()).collect();
    let mut labelled = filters.selectors().into_iter();
    let labels = labelled.by_ref().collect::<Vec<_>>();
    items.retain(|item| {
        item.resource.group_resource() != "namespaces"
            || is_wanted(&item.object, filters, &labels, &inhabited)
    });
    for missing in filters.namespaces.included().iter().filter(|name| !name.contains(['*', '?', '[', '{'])) {
        let exists = |item: &Collected| item.resource.plural == "namespaces" && name(&item.object) == missing;
        if !items.iter().any(exists) && !inhabited.contains(missing) {
            let text =
                format!("fail to get the namespace {missing} specified in backup.Spec.IncludedNamespaces");
            journal.host(Level::Error, &text);
        }
    }
    items
}

/// A namespace is wanted when it is included and has an item in the backup, or is what the labels ask for.
fn is_wanted(object: &Value, filters: &Filters, labels: &[Labels], inhabited: &BTreeSet<String>) -> bool {
    let asked_for = !filters.asks_for_labels() || labels.iter().any(|labels| labels.matches(object));
    filters.namespaces.includes(name(object)) && (asked_for || inhabited.contains(name(object)))
}

async fn list(
    cluster: &dyn Cluster,
    resource: &Resource,
    filters: &Filters,
) -> Result<Vec<Value>, ClusterError> {
    let is_namespaces = resource.group_resource() == "namespaces";
    let places = if resource.namespaced { filters.namespaces_to_list() } else { vec![String::new()] };
    // Namespaces are chosen afterwards, by what was found in them.
    let selectors = if is_namespaces { vec![Labels::default()] } else { filters.selectors() };
    let mut objects = Vec::new();
    let mut names = BTreeSet::new();
    for place in places {
        for labels in &selectors {
            for object in cluster.list(resource, &place, labels).await? {
                let key = (namespace(&object).to_owned(), name(&object).to_owned());
                let included = key.0.is_empty() || filters.namespaces.includes(&key.0);
                if included && names.insert(key) {
                    objects.push(object);
                }
            }
        }
    }
    Ok(objects)
}

fn cohabits(resource: &Resource) -> bool {
    let groups: &[&str] = match resource.plural.as_str() {
        "deployments" | "daemonsets" | "replicasets" => &["extensions", "apps"],
        "networkpolicies" => &["extensions", "networking.k8s.io"],
        "events" => &["", "events.k8s.io"],
        _ => return false,
    };
    groups.contains(&resource.group.as_str())
}
