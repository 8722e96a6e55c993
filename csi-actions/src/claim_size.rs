//! The size that a claim asks for when it is restored from a snapshot.

use serde_json::Value;

use crate::object::text;
use crate::quantity;

/// The size to ask for where the claim asks for less than the `needed` bytes; the provisioner would refuse it. `None`
/// where the claim's own request is enough, so that its words stay.
pub fn raised_request(claim: &Value, needed: Option<u64>) -> Option<String> {
    let needed = needed?;
    let asked = text(claim, &["spec", "resources", "requests", "storage"]).and_then(quantity::bytes);
    (asked.unwrap_or_default() < needed).then(|| quantity::format(needed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn c28_i45_the_request_is_raised_to_what_is_needed_and_never_lowered() {
        let asking = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
        let table = [
            (asking("1Gi"), Some(2 << 30), Some("2Gi")),
            (asking("50Mi"), Some(1 << 30), Some("1Gi")),
            (asking("5Gi"), Some(1 << 30), None),
            (asking("1Gi"), Some(1 << 30), None),
            (asking("1024Mi"), Some(1 << 30), None),
            (asking("1Gi"), None, None),
            (json!({"spec": {}}), Some(1 << 30), Some("1Gi")),
        ];
        for (claim, needed, raised) in table {
            assert_eq!(raised_request(&claim, needed).as_deref(), raised, "{claim} {needed:?}");
        }
    }
}
