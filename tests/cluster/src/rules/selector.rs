//! Label and field selectors, as list and watch take them.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::error::ApiError;
use crate::kind::Kind;
use crate::object;

/// What an object must satisfy to be listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Missing,
    In(BTreeSet<String>),
    /// Also true of objects that lack the label.
    NotIn(BTreeSet<String>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    pointer: String,
    value: String,
    equal: bool,
}

impl Selector {
    /// Reads both selectors of a request.
    ///
    /// # Errors
    /// A selector that cannot be read, or a field that the kind cannot be selected by.
    pub(crate) fn parse(labels: &str, fields: &str, kind: &Kind) -> Result<Self, ApiError> {
        Ok(Self { labels: parse_labels(labels)?, fields: parse_fields(fields, kind)? })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        let label_fits = |requirement: &Requirement| {
            let value = labels[&requirement.key].as_str();
            match &requirement.test {
                Test::Exists => value.is_some(),
                Test::Missing => value.is_none(),
                Test::In(values) => value.is_some_and(|value| values.contains(value)),
                Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            }
        };
        let field_fits = |field: &Field| (object::text(object, &field.pointer) == field.value) == field.equal;
        self.labels.iter().all(label_fits) && self.fields.iter().all(field_fits)
    }
}

fn parse_labels(text: &str) -> Result<Vec<Requirement>, ApiError> {
    let mut requirements = Vec::new();
    for part in outside_of_brackets(text) {
        let part = part.trim();
        if !part.is_empty() {
            requirements.push(requirement(part)?);
        } else if !text.trim().is_empty() {
            return Err(unreadable("found ',', expected: identifier after ','"));
        }
    }
    Ok(requirements)
}

/// Splits at the commas that are not inside of `(a,b)`.
fn outside_of_brackets(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_u32, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn requirement(part: &str) -> Result<Requirement, ApiError> {
    if let Some(key) = part.strip_prefix('!') {
        return Ok(Requirement { key: key_of(key)?, test: Test::Missing });
    }
    for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
        if let Some((key, value)) = part.split_once(operator) {
            let values = BTreeSet::from([value_of(value)?]);
            let test = if equal { Test::In(values) } else { Test::NotIn(values) };
            return Ok(Requirement { key: key_of(key)?, test });
        }
    }
    if let Some((before, values)) = part.split_once('(') {
        let values = values.strip_suffix(')').ok_or_else(|| unreadable("found '', expected: ',' or ')'"))?;
        let values = values.split(',').map(value_of).collect::<Result<_, _>>()?;
        return match before.split_whitespace().collect::<Vec<_>>()[..] {
            [key, "in"] => Ok(Requirement { key: key_of(key)?, test: Test::In(values) }),
            [key, "notin"] => Ok(Requirement { key: key_of(key)?, test: Test::NotIn(values) }),
            _ => {
                Err(unreadable(&format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", before.trim())))
            }
        };
    }
    Ok(Requirement { key: key_of(part)?, test: Test::Exists })
}

fn key_of(text: &str) -> Result<String, ApiError> {
    word(text.trim(), "/").filter(|key| !key.is_empty()).ok_or_else(|| {
        unreadable(&format!("found '{}', expected: !, identifier, or 'end of string'", text.trim()))
    })
}

fn value_of(text: &str) -> Result<String, ApiError> {
    let text = text.trim();
    match text.chars().next() {
        Some(first @ ('=' | '!')) => Err(unreadable(&format!("found '{first}', expected: identifier"))),
        _ => word(text, "").ok_or_else(|| unreadable(&format!("values: Invalid value: {text:?}"))),
    }
}

fn word(text: &str, also: &str) -> Option<String> {
    let allowed =
        |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter) || also.contains(letter);
    text.chars().all(allowed).then(|| text.to_owned())
}

fn unreadable(why: &str) -> ApiError {
    ApiError::BadRequest(format!("unable to parse requirement: {why}"))
}

fn parse_fields(text: &str, kind: &Kind) -> Result<Vec<Field>, ApiError> {
    text.split(',').filter(|part| !part.is_empty()).map(|part| field(part, kind)).collect()
}

fn field(part: &str, kind: &Kind) -> Result<Field, ApiError> {
    let split = [("!=", false), ("==", true), ("=", true)]
        .into_iter()
        .find_map(|(operator, equal)| part.split_once(operator).map(|(path, value)| (path, value, equal)));
    let Some((path, value, equal)) = split else {
        return Err(ApiError::BadRequest(format!("invalid selector: '{part}'; can't understand '{part}'")));
    };
    let common = ["metadata.name", "metadata.namespace"];
    if !common.contains(&path) && !kind.fields.contains(&path) {
        // The wording of the generic conversion; types with fields of their own word it differently.
        return Err(ApiError::BadRequest(if kind.custom {
            format!("field label not supported: {path}")
        } else {
            format!("{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        }));
    }
    Ok(Field { pointer: format!("/{}", path.replace('.', "/")), value: value.to_owned(), equal })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds;

    fn parse(labels: &str, fields: &str) -> Result<Selector, ApiError> {
        Selector::parse(labels, fields, &kinds::initial().get(&"pods".into()).unwrap())
    }

    #[test]
    fn labels_select_as_the_server_does() {
        let object =
            json!({"metadata": {"labels": {"app": "db", "velero.io/backup-name": "b1", "empty": ""}}});
        for (selector, expected) in [
            ("", true),
            ("app", true),
            ("!app", false),
            ("tier", false),
            ("!tier", true),
            ("app=db", true),
            ("app==db", true),
            ("app = db , tier != web", true),
            ("app!=db", false),
            ("tier!=web", true),
            ("app in (web, db)", true),
            ("app in (web)", false),
            ("app notin (web,cache)", true),
            ("tier notin (web)", true),
            ("app notin (db)", false),
            ("velero.io/backup-name=b1", true),
            ("app in (web,db),velero.io/backup-name in (b1),!x", true),
            ("empty=", true),
            ("tier=", false),
        ] {
            assert_eq!(parse(selector, "").unwrap().matches(&object), expected, "{selector}");
        }
    }

    #[test]
    fn unreadable_selectors_are_refused() {
        for selector in ["a===b", "=b", "a in (b", "a is (b)", "a,,b", "a b", "a=b c", "!"] {
            assert_eq!(parse(selector, "").unwrap_err().code(), 400, "{selector}");
        }
    }

    #[test]
    fn fields_select_by_name_namespace_and_what_the_kind_offers() {
        let pod = json!({"metadata": {"name": "x", "namespace": "a"}, "status": {"phase": "Running"}});
        for (selector, expected) in [
            ("metadata.name=x", true),
            ("metadata.name!=x", false),
            ("metadata.name=x,metadata.namespace=b", false),
            ("status.phase==Running", true),
            ("spec.nodeName=", true),
        ] {
            assert_eq!(parse("", selector).unwrap().matches(&pod), expected, "{selector}");
        }
        assert!(parse("", "spec.volumes=x").is_err());
        assert!(parse("", "metadata.name").is_err());
    }
}
