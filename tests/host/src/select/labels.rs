//! Label selectors in Kubernetes' text form, as plugins send them.

use std::collections::{BTreeMap, BTreeSet};

use kube::core::{Expression, Selector, SelectorExt as _};
use serde_json::Value;

/// A text that is no label selector; the whole backup, restore or deletion fails of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("couldn't parse the selector string {text:?}: {reason}")]
pub struct LabelError {
    text: String,
    reason: String,
}

/// A selector over labels; an empty one matches everything.
#[derive(Debug, Clone, Default)]
pub struct Labels(Selector);

impl Labels {
    /// Reads `a=b,c!=d,e in (f,g),h,!i`.
    ///
    /// # Errors
    ///
    /// When the text is none.
    pub fn parse(text: &str) -> Result<Self, LabelError> {
        let failed = |reason: String| LabelError { text: text.to_owned(), reason };
        let mut selector = Selector::default();
        if !text.trim().is_empty() {
            for requirement in requirements(text) {
                selector.extend([expression(requirement.trim()).map_err(failed)?]);
            }
        }
        Ok(Self(selector))
    }

    /// Of a `metav1.LabelSelector`, as a Backup's spec holds it.
    ///
    /// # Errors
    ///
    /// When it is none.
    pub fn of_object(object: &Value) -> Result<Self, LabelError> {
        let failed = |reason: String| LabelError { text: object.to_string(), reason };
        let typed: k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector =
            serde_json::from_value(object.clone()).map_err(|error| failed(error.to_string()))?;
        typed
            .try_into()
            .map(Self)
            .map_err(|error: kube::core::ParseExpressionError| failed(error.to_string()))
    }

    /// Whether the labels of `object` satisfy it.
    pub fn matches(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
        let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        let labels: BTreeMap<String, String> = labels.into_iter().flatten().filter_map(text).collect();
        self.0.matches(&labels)
    }

    /// In the form of a list request; `None` when everything matches.
    pub fn query(&self) -> Option<String> {
        (!self.0.selects_all()).then(|| self.0.to_string())
    }
}

/// The parts between the commas that are not in parentheses.
fn requirements(text: &str) -> Vec<&str> {
    let mut depth = 0;
    text.split(|character| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        character == ',' && depth == 0
    })
    .collect()
}

fn expression(text: &str) -> Result<Expression, String> {
    if let Some(absent) = text.strip_prefix('!') {
        return Ok(Expression::DoesNotExist(key(absent)?));
    }
    // The longer operators first: "!=" and "==" hold "=".
    for operator in ["!=", "==", "="] {
        if let Some((name, value)) = text.split_once(operator) {
            let (name, value) = (key(name)?, word(value)?);
            return Ok(if operator == "!=" {
                Expression::NotEqual(name, value)
            } else {
                Expression::Equal(name, value)
            });
        }
    }
    let mut words = text.splitn(2, char::is_whitespace);
    let name = words.next().unwrap_or_default();
    let Some(rest) = words.next().map(str::trim) else { return Ok(Expression::Exists(key(name)?)) };
    let (negative, list) = match (rest.strip_prefix("notin"), rest.strip_prefix("in")) {
        (Some(list), _) => (true, list),
        (None, Some(list)) => (false, list),
        (None, None) => return Err(format!("{rest:?}: expected one of '=', '!=', 'in', 'notin'")),
    };
    let list = list.trim().strip_prefix('(').and_then(|list| list.strip_suffix(')'));
    let list = list.ok_or_else(|| format!("{rest:?}: expected values in parentheses"))?;
    let values = list.split(',').map(word).collect::<Result<BTreeSet<_>, _>>()?;
    let name = key(name)?;
    Ok(if negative { Expression::NotIn(name, values) } else { Expression::In(name, values) })
}

fn key(text: &str) -> Result<String, String> {
    let text = text.trim();
    let name = text.split_once('/').map_or(text, |(_, name)| name);
    if name.is_empty() || name.contains('/') {
        return Err(format!("{text:?} is no label key"));
    }
    word(name)?;
    Ok(text.to_owned())
}

/// A label's value: letters, digits, '-', '_' and '.', at most 63, with a letter or digit at either end.
fn word(text: &str) -> Result<String, String> {
    let text = text.trim();
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends = [text.bytes().next(), text.bytes().last()];
    let fine =
        text.len() <= 63 && text.bytes().all(inner) && ends.iter().flatten().all(u8::is_ascii_alphanumeric);
    if fine { Ok(text.to_owned()) } else { Err(format!("{text:?} can't be part of a label")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_in_text() {
        let object = json!({"metadata": {"labels": {"app": "web", "tier": "", "example.io/role": "db"}}});
        let table = [
            ("", true),
            ("app=web", true),
            ("app == web , tier=", true),
            ("app!=web", false),
            ("other!=web", true),
            ("app in (api, web),tier", true),
            ("app notin (api,web)", false),
            ("other notin (a)", true),
            ("!other,example.io/role=db", true),
            ("!app", false),
            ("other", false),
        ];
        for (text, expected) in table {
            assert_eq!(Labels::parse(text).unwrap().matches(&object), expected, "{text}");
        }
        assert_eq!(Labels::parse("").unwrap().query(), None);
        assert!(Labels::parse("x").unwrap().matches(&json!({})).eq(&false));
    }

    #[test]
    fn texts_that_are_none() {
        for text in ["=invalid-selector", "a b", "a in b", "a/b/c", "a=b c", ",", "a=-", "in (a)", "!"] {
            assert!(Labels::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn selectors_of_a_backup() {
        let selector = json!({
            "matchLabels": {"a": "b"},
            "matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["d"]}],
        });
        let selector = Labels::of_object(&selector).unwrap();
        assert!(selector.matches(&json!({"metadata": {"labels": {"a": "b"}}})));
        assert!(!selector.matches(&json!({"metadata": {"labels": {"a": "b", "c": "d"}}})));
        assert!(Labels::of_object(&json!({"matchExpressions": [{"key": "c", "operator": "Like"}]})).is_err());
    }
}
