//! Names: which are valid, and how `generateName` makes one.

use crate::error::FieldError;

/// Letters of generated suffixes: no vowels, so that no words come out.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// A generated name's base is cut to this many bytes, so that base and suffix are a label value.
const BASE: usize = 58;
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
     '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
     start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// What is wrong with an object's name.
pub(crate) fn check(name: &str, is_namespace: bool) -> Vec<FieldError> {
    if name.is_empty() {
        return vec![FieldError::required("metadata.name", "name or generateName is required")];
    }
    let invalid = |why: &str| FieldError::invalid("metadata.name", format!("{name:?}: {why}"));
    let longest = if is_namespace { 63 } else { 253 };
    let mut errors = Vec::new();
    if name.len() > longest {
        errors.push(invalid(&format!("must be no more than {longest} bytes")));
    }
    if is_namespace && name.contains('.') {
        errors.push(invalid("must not contain dots"));
    } else if is_namespace && !label(name) {
        errors.push(invalid(LABEL));
    }
    if !is_namespace && !name.split('.').all(label) {
        errors.push(invalid(SUBDOMAIN));
    }
    errors
}

fn label(part: &str) -> bool {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = part.as_bytes();
    bytes.first().is_some_and(plain)
        && bytes.last().is_some_and(plain)
        && bytes.iter().all(|byte| plain(byte) || *byte == b'-')
}

/// A name from a `generateName` and five random letters.
pub(crate) fn generate(base: &str) -> String {
    let mut end = base.len().min(BASE);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    let random = uuid::Uuid::new_v4().into_bytes();
    let suffix = random.iter().take(5).map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]));
    base[..end].chars().chain(suffix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_taken_and_names_that_are_not() {
        for good in ["a", "a-b", "a.b", "0", "velero-del-0123456789"] {
            assert_eq!(check(good, false), [], "{good}");
        }
        for bad in ["", "A", "a_", "-a", "a-", "a..b", ".a", "a/b", &"a".repeat(254)] {
            assert_ne!(check(bad, false), [], "{bad}");
        }
        assert_ne!(check("a.b", true), []);
        assert_ne!(check(&"a".repeat(64), true), []);
    }

    #[test]
    fn generated_name_is_a_cut_base_and_five_letters() {
        let name = generate(&"b".repeat(80));
        assert_eq!(name.len(), 63);
        assert!(name.starts_with(&"b".repeat(58)));
        assert_eq!(check(&name, true), []);
        assert_ne!(generate("x-"), generate("x-"));
    }
}
