//! Reads the volume policies out of a ConfigMap.

use serde_json::{Map, Value};

use super::conditions::Condition;

/// The value of the parameter `provider` by which a policy leaves its volumes to this plugin.
pub const PROVIDER: &str = "csi-actions.velero-rs.io";

/// The one version there is.
const VERSION: &str = "v1";

/// One policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Policy {
    /// All of them must hold.
    pub conditions: Vec<Condition>,
    /// What of it is not understood, so that it may ask for more than the conditions.
    pub unknown: Vec<String>,
    /// What is to be done with the volume.
    pub action: Action,
}

/// What a policy says to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Action {
    /// The word for it.
    pub kind: Kind,
    /// Whether its parameters name this plugin.
    pub is_ours: bool,
}

/// The words that Velero knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A snapshot, by whoever takes the snapshots.
    Snapshot,
    /// Nothing.
    Skip,
    /// Pod volume backup.
    FsBackup,
    /// Nothing by Velero itself: a plugin does something of its own.
    Custom,
    /// Another word; the text says what is not understood.
    Unknown(String),
}

/// The policies in `yaml`, in their order. The error is what is not understood of the whole: then none of them can be relied on.
pub(super) fn policies(yaml: &str) -> Result<Vec<Policy>, String> {
    // `yes` and `on` are texts, as they are for Velero; an error is one line.
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    let document: Value =
        serde_saphyr::from_str_with_options(yaml, options).map_err(|error| format!("not YAML: {error}"))?;
    let Some(fields) = document.as_object() else { return Err("not a map of fields".to_owned()) };
    if let Some(unknown) = unknown(fields, &["version", "volumePolicies", "includeExcludePolicy"]) {
        return Err(format!("unknown field {unknown}"));
    }
    match &document["version"] {
        Value::String(version) if version == VERSION => {}
        version => return Err(format!("version {version}, where {VERSION:?} is known")),
    }
    match &document["volumePolicies"] {
        Value::Null => Ok(Vec::new()),
        Value::Array(policies) => policies.iter().map(policy).collect(),
        _ => Err("volumePolicies is no list".to_owned()),
    }
}

fn policy(value: &Value) -> Result<Policy, String> {
    let Some(fields) = value.as_object() else { return Err(format!("volumePolicies: {value} is no policy")) };
    let mut unknown: Vec<String> = unknown(fields, &["conditions", "action"])
        .map(|field| format!("field {field}"))
        .into_iter()
        .collect();
    let mut conditions = Vec::new();
    match &value["conditions"] {
        Value::Null => {}
        Value::Object(all) => {
            for (name, condition) in all {
                match Condition::read(name, condition) {
                    Ok(condition) => conditions.extend(condition),
                    Err(what) => unknown.push(what),
                }
            }
        }
        _ => unknown.push("conditions, which is no map".to_owned()),
    }
    Ok(Policy { conditions, unknown, action: action(&value["action"]) })
}

fn action(value: &Value) -> Action {
    let is_ours = value.pointer("/parameters/provider").is_some_and(|provider| provider == PROVIDER);
    let extra = value.as_object().and_then(|fields| unknown(fields, &["type", "parameters"]));
    let kind = match (value["type"].as_str().unwrap_or_default(), extra) {
        (_, Some(field)) => Kind::Unknown(format!("field {field} of the action")),
        ("snapshot", _) => Kind::Snapshot,
        ("skip", _) => Kind::Skip,
        ("fs-backup", _) => Kind::FsBackup,
        ("custom", _) => Kind::Custom,
        _ => Kind::Unknown(format!("action {}", value["type"])),
    };
    Action { kind, is_ours }
}

/// The first field that is none of the `known`.
fn unknown<'a>(fields: &'a Map<String, Value>, known: &[&str]) -> Option<&'a str> {
    fields.keys().map(String::as_str).find(|key| !known.contains(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_come_in_their_order_with_what_is_not_understood() {
        let read = policies(
            "version: v1\nvolumePolicies:\n\
             - conditions: {storageClass: [gold], capacity: ',10Gi', pvcLabels: {backup: yes}}\n  action: {type: skip}\n\
             - conditions: {csi: {driver: d.csi}, nodes: [n1]}\n  action: {type: snapshot}\n\
             - action: {type: custom, parameters: {provider: csi-actions.velero-rs.io, other: 1}}\n\
             - conditions:\n  action: {type: skip, parameters: {provider: another}}\n\
             includeExcludePolicy: {excludedClusterScopedResources: [nodes]}\n",
        )
        .unwrap();
        let seen: Vec<(usize, usize, &Kind, bool)> = read
            .iter()
            .map(|each| (each.conditions.len(), each.unknown.len(), &each.action.kind, each.action.is_ours))
            .collect();
        let expected = [
            (3, 0, &Kind::Skip, false),
            (1, 1, &Kind::Snapshot, false),
            (0, 0, &Kind::Custom, true),
            (0, 0, &Kind::Skip, false),
        ];
        assert_eq!(seen, expected);
        let labels = Condition::ClaimLabels(vec![("backup".to_owned(), "yes".to_owned())]);
        assert!(read[0].conditions.contains(&labels), "no quotes, and a text all the same: {:?}", read[0]);
        assert!(read[1].unknown[0].contains("nodes"), "{:?}", read[1]);
    }

    #[test]
    fn a_policy_without_a_known_action_is_kept_with_what_it_says() {
        for (action, what) in [
            ("{type: move}", "action \"move\""),
            ("{}", "action null"),
            ("{type: skip, when: night}", "field when of the action"),
        ] {
            let yaml = format!("version: v1\nvolumePolicies: [{{action: {action}}}]");
            assert_eq!(policies(&yaml).unwrap()[0].action.kind, Kind::Unknown(what.to_owned()));
        }
    }

    #[test]
    fn a_document_that_is_not_understood_as_a_whole_gives_no_policy() {
        for (yaml, what) in [
            ("", "not a map"),
            ("version: v2\nvolumePolicies: []", "version \"v2\""),
            ("volumePolicies: []", "version null"),
            ("version: v1\nvolumePolicy: []", "volumePolicy"),
            ("version: v1\nvolumePolicies: {}", "no list"),
            ("version: v1\nvolumePolicies: [5]", "5 is no policy"),
            ("version: v1\nversion: v1", "not YAML"),
            ("version: [", "not YAML"),
            ("version: v1\n---\nversion: v1\n", "not YAML"),
        ] {
            let error = policies(yaml).unwrap_err();
            assert!(error.contains(what) && !error.contains('\n'), "{yaml:?}: {error}");
        }
        assert_eq!(policies("version: v1"), Ok(Vec::new()));
    }
}
