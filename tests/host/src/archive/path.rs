//! Where an item lies in an archive.

/// What follows the version of an item in its group's preferred version.
pub(crate) const PREFERRED: &str = "-preferredversion";

/// The path of an item of `group_resource`; under a folder for `version` where that is not empty.
pub fn item_path(group_resource: &str, namespace: &str, name: &str, version: &str) -> String {
    let version = if version.is_empty() { String::new() } else { format!("{version}/") };
    if namespace.is_empty() {
        format!("resources/{group_resource}/{version}cluster/{name}.json")
    } else {
        format!("resources/{group_resource}/{version}namespaces/{namespace}/{name}.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let table = [
            ("", "", "resources/resource/cluster/item.json"),
            ("namespace", "", "resources/resource/namespaces/namespace/item.json"),
            ("", "v1", "resources/resource/v1/cluster/item.json"),
            ("namespace", "v1", "resources/resource/v1/namespaces/namespace/item.json"),
        ];
        for (namespace, version, path) in table {
            assert_eq!(item_path("resource", namespace, "item", version), path);
        }
    }
}
