//! A Kubernetes object as Velero sends it: JSON text with a view to read and edits to write.

use bytes::Bytes;
use serde_json::Value;

use super::document::{Document, EditError};
use super::identifier::{IdentifierError, ResourceIdentifier};

/// Why bytes are no item.
#[derive(Debug, thiserror::Error)]
pub enum ItemError {
    /// The bytes are not JSON.
    #[error("the item is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Velero's client refuses an item without kind, even one that is not restored.
    #[error("the item has no kind, so Velero would refuse it: send a whole Kubernetes object")]
    NoKind,
    /// An edit of the item was refused.
    #[error(transparent)]
    Edit(#[from] EditError),
}

/// A Kubernetes object.
///
/// The text stays beside the parsed value: an item that no edit touched goes back to Velero as the bytes that came,
/// and an edited one keeps every byte that the edit doesn't name.
#[derive(Debug, Clone)]
pub struct Item {
    text: Bytes,
    object: Value,
}

impl Item {
    /// Reads an object from its JSON text.
    ///
    /// # Errors
    ///
    /// When the text is no JSON object with a `kind`.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, ItemError> {
        let text = text.into();
        let object: Value = serde_json::from_slice(&text)?;
        match object.get("kind") {
            Some(Value::String(kind)) if !kind.is_empty() => Ok(Self { text, object }),
            _ => Err(ItemError::NoKind),
        }
    }

    /// The whole object, to read. Integers beyond 64 bits read as floats; the text keeps them.
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// The field at `path`; `None` where a part is absent. `null` reads as absent.
    pub fn get(&self, path: &[&str]) -> Option<&Value> {
        path.iter().try_fold(&self.object, |value, part| value.get(part)).filter(|value| !value.is_null())
    }

    /// The text at `path`; `None` where it is absent or no text.
    pub fn text_at(&self, path: &[&str]) -> Option<&str> {
        self.get(path)?.as_str()
    }

    /// `kind`.
    pub fn kind(&self) -> &str {
        self.text_at(&["kind"]).unwrap_or_default()
    }

    /// `apiVersion`, "" where absent.
    pub fn api_version(&self) -> &str {
        self.text_at(&["apiVersion"]).unwrap_or_default()
    }

    /// `metadata.name`, "" where absent.
    pub fn name(&self) -> &str {
        self.text_at(&["metadata", "name"]).unwrap_or_default()
    }

    /// `metadata.namespace`, "" for a cluster-scoped object. At restore: the namespace in the archive, not the
    /// one that it is restored into.
    pub fn namespace(&self) -> &str {
        self.text_at(&["metadata", "namespace"]).unwrap_or_default()
    }

    /// `metadata.uid`. Velero takes it away before a restore action sees the object.
    pub fn uid(&self) -> Option<&str> {
        self.text_at(&["metadata", "uid"])
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.text_at(&["metadata", "labels", key])
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.text_at(&["metadata", "annotations", key])
    }

    /// This object as an identifier of the given `resource` (lower-case plural).
    ///
    /// # Errors
    ///
    /// As [`ResourceIdentifier::new`].
    pub fn identifier(&self, resource: &str) -> Result<ResourceIdentifier, IdentifierError> {
        let group = self.api_version().split_once('/').map_or("", |(group, _)| group);
        ResourceIdentifier::new(group, resource, self.namespace(), self.name())
    }

    /// A changed copy: `edit` names the fields, all else keeps its bytes.
    ///
    /// # Errors
    ///
    /// What `edit` returns, and [`ItemError::NoKind`] where it took the kind away.
    pub fn edited(
        &self,
        edit: impl FnOnce(&mut Document) -> Result<(), EditError>,
    ) -> Result<Self, ItemError> {
        let mut document = Document::parse(&self.text)?;
        edit(&mut document)?;
        Self::parse(document.into_bytes())
    }

    /// The object's JSON text.
    pub fn as_bytes(&self) -> &Bytes {
        &self.text
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        self.text
    }
}

impl TryFrom<Value> for Item {
    type Error = ItemError;

    /// An object made from scratch. To change one that Velero sent use [`Item::edited`].
    fn try_from(object: Value) -> Result<Self, ItemError> {
        Self::parse(object.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_velero_would_refuse_are_refused_here() {
        assert!(matches!(Item::parse(""), Err(ItemError::Json(_))));
        for text in ["{}", r#"{"kind":""}"#, r#"{"kind":5}"#, "[]", "null"] {
            assert!(matches!(Item::parse(text), Err(ItemError::NoKind)), "{text}");
        }
    }

    #[test]
    fn reading_never_panics_on_absent_or_odd_fields() {
        let item = Item::parse(r#"{"kind":"Pod","metadata":{"labels":null,"annotations":[1]}}"#).unwrap();
        assert_eq!((item.name(), item.namespace(), item.uid()), ("", "", None));
        assert_eq!((item.label("a"), item.annotation("a")), (None, None));
    }

    #[test]
    fn an_edit_that_takes_the_kind_away_is_refused() {
        let item = Item::parse(r#"{"kind":"Pod"}"#).unwrap();
        let error = item.edited(|document| {
            document.remove(&["kind"]);
            Ok(())
        });
        assert!(matches!(error, Err(ItemError::NoKind)));
    }

    #[test]
    fn an_item_names_itself() {
        let item = Item::parse(
            r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"a","name":"b"}}"#,
        )
        .unwrap();
        assert_eq!(item.identifier("deployments").unwrap().to_string(), "deployments.apps a/b");
    }
}
