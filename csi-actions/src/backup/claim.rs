//! What a claim and its volume tell of the snapshot to come.

use serde_json::Value;

use crate::object::text;
use crate::quantity;

/// The capacity of the volume in bytes, as the volume says it, else the claim.
pub(super) fn capacity(volume: &Value, claim: &Value) -> Option<u64> {
    let places = [
        (volume, ["spec", "capacity"].as_slice()),
        (claim, &["status", "capacity"]),
        (claim, &["spec", "resources", "requests"]),
    ];
    places.into_iter().find_map(|(object, path)| {
        let path: Vec<&str> = path.iter().copied().chain(["storage"]).collect();
        quantity::bytes(text(object, &path)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claim() -> Value {
        json!({"metadata": {"name": "data", "namespace": "a", "uid": "c1"},
            "spec": {"volumeName": "pv1", "resources": {"requests": {"storage": "1Gi"}}}, "status": {"phase": "Bound"}})
    }

    #[test]
    fn the_capacity_is_that_of_the_volume() {
        let volume = json!({"spec": {"capacity": {"storage": "2Gi"}}});
        assert_eq!(capacity(&volume, &claim()), Some(2 << 30));
        assert_eq!(capacity(&json!({}), &claim()), Some(1 << 30));
        assert_eq!(capacity(&json!({}), &json!({})), None);
    }
}
