//! The record of an operation, as the file `itemoperations` of a backup holds it.

use serde::{Deserialize, Serialize};

use crate::client::ResourceIdentifier;
use crate::go::time::Time;

/// One operation of a backup. The order of the fields is that of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// What it is.
    pub spec: Spec,
    /// How far it is.
    pub status: Status,
}

/// What an operation is; it never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The backup's name.
    pub backup_name: String,
    /// The backup's UID.
    #[serde(rename = "backupUID")]
    pub backup_uid: String,
    /// The plugin that started it, by which it is found again.
    pub backup_item_action: String,
    /// The item, as it was called before any action ran.
    pub resource_identifier: ResourceIdentifier,
    /// The plugin's own name for it.
    #[serde(rename = "operationID")]
    pub operation_id: String,
    /// Items to read again at the end; `null` for none.
    pub post_operation_items: Option<Vec<ResourceIdentifier>>,
}

/// How far an operation is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names of the protocol")]
pub struct Status {
    pub phase: OperationPhase,
    /// Why it failed; all that the user gets to see of it after the first poll.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_completed: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_total: i64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub operation_units: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// When the server was told of it; its time runs from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated: Option<Time>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// Where an operation is. There is no word for a cancelled one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "Velero's own words")]
pub enum OperationPhase {
    New,
    /// The plugin told when it started.
    InProgress,
    Completed,
    Failed,
}

impl OperationPhase {
    /// Whether it is polled no more.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }

    /// Velero's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "New",
            Self::InProgress => "InProgress",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
        }
    }
}

impl Operation {
    /// A new one, created at `now`.
    pub fn new(spec: Spec, now: Time) -> Self {
        let status = Status {
            phase: OperationPhase::New,
            error: String::new(),
            n_completed: 0,
            n_total: 0,
            operation_units: String::new(),
            description: String::new(),
            created: Some(now),
            started: None,
            updated: None,
        };
        Self { spec, status }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::go::json;

    #[test]
    fn a_record_is_written_as_the_server_writes_it() {
        let pod = ResourceIdentifier {
            resource: "pods".to_owned(),
            namespace: "ns".to_owned(),
            name: "p".to_owned(),
            ..ResourceIdentifier::default()
        };
        let spec = Spec {
            backup_name: "b".to_owned(),
            backup_uid: "u".to_owned(),
            backup_item_action: "example.io/a".to_owned(),
            resource_identifier: pod,
            operation_id: "id".to_owned(),
            post_operation_items: None,
        };
        let operation = Operation::new(spec, "2026-11-29T20:00:00Z".parse().map(Time::of).unwrap());
        let text = String::from_utf8(json::compact(&operation)).unwrap();
        assert_eq!(
            text,
            r#"{"spec":{"backupName":"b","backupUID":"u","backupItemAction":"example.io/a","resourceIdentifier":{"Group":"","Resource":"pods","Namespace":"ns","Name":"p"},"operationID":"id","postOperationItems":null},"status":{"phase":"New","created":"2026-11-29T20:00:00Z"}}"#
        );
        assert_eq!(serde_json::from_str::<Operation>(&text).unwrap(), operation);
    }
}
