//! The configuration of a plugin: a ConfigMap that the user labels, found as Velero's own plugins find theirs.

use serde_json::Value;

use crate::kind::Kind;
use crate::model::{LabelSelector, SelectorError};
use crate::name::PluginName;

/// Why a plugin's configuration can't be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Two ConfigMaps carry the labels, so which one holds is a guess.
    #[error("found more than one ConfigMap with the labels {selector}: {names}; keep one")]
    Ambiguous {
        /// The labels that were looked for.
        selector: String,
        /// The names of the ConfigMaps found.
        names: String,
    },
}

/// The labels of the ConfigMap that configures the plugin `name` of `kind`: `velero.io/plugin-config` and
/// `<name>=<kind>`. List with it in the namespace of the Velero server, then [`select`].
///
/// # Errors
///
/// When `name` can't be a label's key, since its second part holds other characters than a label's key may.
pub fn selector(kind: Kind, name: &PluginName) -> Result<LabelSelector, SelectorError> {
    let plugin = LabelSelector::equals(name.as_str(), kind.as_str())?;
    Ok(LabelSelector::exists("velero.io/plugin-config")?.and(plugin))
}

/// The one ConfigMap of `found`, as [`selector`] listed them; `None` where there is none.
///
/// # Errors
///
/// [`ConfigError::Ambiguous`] with the names where there are several.
pub fn select<'a>(selector: &LabelSelector, found: &'a [Value]) -> Result<Option<&'a Value>, ConfigError> {
    match found {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => {
            let name = |map: &Value| map["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let names: Vec<String> = several.iter().map(name).collect();
            Err(ConfigError::Ambiguous { selector: selector.as_query(), names: names.join(", ") })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_config_map_is_found_by_its_labels_and_two_are_an_error() {
        let name = PluginName::from_static("acme.io/x");
        let selector = selector(Kind::BackupItemActionV2, &name).unwrap();
        assert_eq!(selector.as_query(), "velero.io/plugin-config,acme.io/x=BackupItemActionV2");
        let [one, two] = ["one", "two"].map(|name| json!({"metadata": {"name": name}}));
        assert_eq!(select(&selector, &[]).unwrap(), None);
        assert_eq!(select(&selector, std::slice::from_ref(&one)).unwrap(), Some(&one));
        let error = select(&selector, &[one, two]).unwrap_err().to_string();
        assert!(error.contains("one, two"), "{error}");
    }
}
