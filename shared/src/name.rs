//! Names of plugins, by Velero's rule.

use std::fmt;

/// Why a name was refused. Velero does not start with a plugin that has a name like it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// There is not exactly one slash with something on both sides.
    #[error(
        "a plugin name is <domain>/<name> with exactly one slash and both parts filled, such as \"example.io/pvc-backup\""
    )]
    Form,
    /// The part before the slash is no DNS subdomain.
    #[error(
        "the part before the slash must be a DNS subdomain: lower-case letters, digits, '-' and '.', such as \"example.io\""
    )]
    Domain,
    /// `velero.io` is Velero's own: a second plugin of one name stops the server.
    #[error("the domain velero.io is Velero's own: use a domain of yours")]
    Reserved,
    /// Velero skips such actions while its `EnableCSI` feature is off.
    #[error(
        "a name that contains \"velero.io/csi-\" is skipped by Velero while EnableCSI is off: choose another"
    )]
    SkippedWithoutCsi,
}

/// The name under which a plugin is registered, `<domain>/<name>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PluginName(std::borrow::Cow<'static, str>);

impl PluginName {
    /// A name made at run time.
    ///
    /// # Errors
    ///
    /// When Velero would refuse or skip it.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        let name = name.into();
        match refusal(&name) {
            Some(error) => Err(error),
            None => Ok(Self(std::borrow::Cow::Owned(name))),
        }
    }

    /// A name known at compile time; use it through [`name!`](crate::name!), where a bad one does not compile.
    ///
    /// # Panics
    ///
    /// When Velero would refuse or skip the name.
    pub const fn from_static(name: &'static str) -> Self {
        match refusal(name) {
            None => Self(std::borrow::Cow::Borrowed(name)),
            Some(NameError::Form) => panic!("a plugin name is <domain>/<name>, with exactly one slash"),
            Some(NameError::Domain) => panic!("the part before the slash must be a lower-case DNS subdomain"),
            Some(NameError::Reserved) => panic!("the domain velero.io is Velero's own"),
            Some(NameError::SkippedWithoutCsi) => {
                panic!("Velero skips names that contain velero.io/csi- while EnableCSI is off")
            }
        }
    }

    /// The whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A [`PluginName`] that is checked when the plugin is compiled.
///
/// ```
/// let name = velero_plugin::name!("example.io/pvc-backup");
/// ```
///
/// ```compile_fail
/// let name = velero_plugin::name!("no-slash");
/// ```
///
/// ```compile_fail
/// let name = velero_plugin::name!("velero.io/csi-pvc-backupper");
/// ```
#[macro_export]
macro_rules! name {
    ($name:literal) => {
        const { $crate::PluginName::from_static($name) }
    };
}

const fn refusal(name: &str) -> Option<NameError> {
    let bytes = name.as_bytes();
    let mut slash = None;
    let mut index = 0;
    while index < bytes.len() {
        if bytes[index] == b'/' {
            if slash.is_some() {
                return Some(NameError::Form);
            }
            slash = Some(index);
        }
        index += 1;
    }
    let Some(slash) = slash else { return Some(NameError::Form) };
    if slash == 0 || slash + 1 == bytes.len() {
        return Some(NameError::Form);
    }
    let (domain, rest) = bytes.split_at(slash);
    if !is_dns_subdomain_bytes(domain) {
        return Some(NameError::Domain);
    }
    if ends_with(domain, b"velero.io") && starts_with(rest, b"/csi-") {
        return Some(NameError::SkippedWithoutCsi);
    }
    if domain.len() == b"velero.io".len() && ends_with(domain, b"velero.io") {
        return Some(NameError::Reserved);
    }
    None
}

const fn starts_with(text: &[u8], start: &[u8]) -> bool {
    text.len() >= start.len() && equal(text.split_at(start.len()).0, start)
}

const fn ends_with(text: &[u8], end: &[u8]) -> bool {
    text.len() >= end.len() && equal(text.split_at(text.len() - end.len()).1, end)
}

const fn equal(one: &[u8], other: &[u8]) -> bool {
    let mut index = 0;
    while index < one.len() {
        if one[index] != other[index] {
            return false;
        }
        index += 1;
    }
    one.len() == other.len()
}

/// RFC 1123: labels of lower-case letters, digits and inner '-', joined by dots, at most 253 bytes.
pub(crate) fn is_dns_subdomain(text: &str) -> bool {
    is_dns_subdomain_bytes(text.as_bytes())
}

const fn is_dns_subdomain_bytes(text: &[u8]) -> bool {
    if text.is_empty() || text.len() > 253 {
        return false;
    }
    let mut index = 0;
    while index < text.len() {
        let word = text[index].is_ascii_lowercase() || text[index].is_ascii_digit();
        let first = index == 0 || text[index - 1] == b'.';
        let last = index + 1 == text.len() || text[index + 1] == b'.';
        match text[index] {
            b'.' | b'-' if first || last => return false,
            b'.' | b'-' => {}
            _ if !word => return false,
            _ => {}
        }
        index += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_names_are_refused_with_the_rule_they_break() {
        let table = [
            ("noprefix", NameError::Form),
            ("a.io/b/c", NameError::Form),
            ("/x", NameError::Form),
            ("a.io/", NameError::Form),
            ("", NameError::Form),
            ("Upper.io/x", NameError::Domain),
            ("a_b.io/x", NameError::Domain),
            ("a b/x", NameError::Domain),
            ("-a.io/x", NameError::Domain),
            ("a..io/x", NameError::Domain),
            ("a.io-/x", NameError::Domain),
            ("velero.io/aws", NameError::Reserved),
            ("velero.io/csi-pvc-backupper", NameError::SkippedWithoutCsi),
            ("my.velero.io/csi-x", NameError::SkippedWithoutCsi),
        ];
        for (name, error) in table {
            assert_eq!(PluginName::new(name), Err(error), "{name:?}");
        }
        assert_eq!(PluginName::new(format!("{}/x", "a".repeat(254))), Err(NameError::Domain));
    }

    #[test]
    fn the_second_part_may_hold_anything_but_a_slash() {
        for name in
            ["ok.io/Any_Thing", "a/b c", "csi-actions.velero-rs.io/volumesnapshotcontent-backup", "1.2/x"]
        {
            assert_eq!(PluginName::new(name).map(|name| name.to_string()), Ok(name.to_owned()));
        }
    }
}
