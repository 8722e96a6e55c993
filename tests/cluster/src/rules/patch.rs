//! Merge and JSON patches.

use serde_json::Value;

use crate::error::ApiError;
use crate::kind::Kind;

const CUSTOM: &[&str] =
    &["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];

/// How the body of a PATCH is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    /// RFC 6902.
    Json,
    /// RFC 7396. A strategic patch is taken as one: lists are replaced and not merged by key.
    Merge,
    /// Server-side apply.
    Apply,
}

impl PatchKind {
    /// The kind of patch that a content type asks for.
    ///
    /// # Errors
    /// 415 for other content types, and for a strategic patch of a custom resource.
    pub(crate) fn of(content_type: &str, kind: &Kind) -> Result<Self, ApiError> {
        let media = content_type.split(';').next().unwrap_or_default().trim();
        match media {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" if !kind.custom => Ok(Self::Merge),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            _ if kind.custom => Err(ApiError::UnknownFormat(CUSTOM)),
            _ => Err(ApiError::UnsupportedMediaType),
        }
    }
}

/// The object with the patch applied.
pub(crate) fn patched(old: &Value, kind: PatchKind, body: &[u8]) -> Result<Value, ApiError> {
    let unreadable = |error: serde_json::Error| ApiError::BadRequest(error.to_string());
    let mut object = old.clone();
    if kind == PatchKind::Json {
        let patch: json_patch::Patch = serde_json::from_slice(body).map_err(unreadable)?;
        json_patch::patch(&mut object, &patch).map_err(|_| ApiError::PatchRejected)?;
    } else {
        let patch: Value = serde_json::from_slice(body).map_err(unreadable)?;
        json_patch::merge(&mut object, &patch);
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds;

    #[test]
    fn content_types_of_built_in_and_custom_kinds() {
        let kinds = kinds::initial();
        let pods = kinds.get(&"pods".into()).unwrap();
        let snapshots = kinds.get(&"volumesnapshots.snapshot.storage.k8s.io".into()).unwrap();
        let strategic = "application/strategic-merge-patch+json";
        assert_eq!(PatchKind::of(strategic, &pods), Ok(PatchKind::Merge));
        assert_eq!(PatchKind::of(strategic, &snapshots).unwrap_err().code(), 415);
        assert_eq!(PatchKind::of("application/merge-patch+json; charset=utf-8", &pods), Ok(PatchKind::Merge));
        assert_eq!(PatchKind::of("application/json", &pods).unwrap_err().code(), 415);
    }

    #[test]
    fn patches_change_remove_and_refuse() {
        let old = json!({"a": 1, "b": {"c": 2, "d": 3}});
        let merge = patched(&old, PatchKind::Merge, br#"{"a":null,"b":{"c":5}}"#).unwrap();
        assert_eq!(merge, json!({"b": {"c": 5, "d": 3}}));
        let replace =
            patched(&old, PatchKind::Json, br#"[{"op":"replace","path":"/b/c","value":7}]"#).unwrap();
        assert_eq!(replace["b"]["c"], 7);
        let failed_test = br#"[{"op":"replace","path":"/a","value":9},{"op":"test","path":"/a","value":1}]"#;
        assert_eq!(patched(&old, PatchKind::Json, failed_test), Err(ApiError::PatchRejected));
        assert_eq!(patched(&old, PatchKind::Merge, b"{").unwrap_err().code(), 400);
    }
}
