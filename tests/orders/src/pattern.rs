//! Patterns of names: `*` and `?` are wild, `|` separates alternatives.

use serde::{Deserialize, Serialize};
use wildmatch::WildMatch;

/// A pattern; the empty one matches the empty name only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// Whether it matches.
    pub fn matches(&self, name: &str) -> bool {
        self.0.split('|').any(|alternative| WildMatch::new(alternative).matches(name))
    }

    /// Whether it matches one of these; true when there is no pattern.
    pub fn any<'a>(pattern: Option<&Self>, names: impl IntoIterator<Item = &'a str>) -> bool {
        pattern.is_none_or(|pattern| names.into_iter().any(|name| pattern.matches(name)))
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Pattern {
    fn from(pattern: T) -> Self {
        Self(pattern.into())
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn stars_question_marks_and_bars_have_a_meaning() {
        for (pattern, name, matches) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("app/slow-?", "app/slow-1", true),
            ("app/slow-?", "app/slow-12", false),
            ("create|patch", "patch", true),
            ("create|patch", "create|patch", false),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(Pattern::from(pattern).matches(name), matches, "{pattern} {name}");
        }
        assert!(Pattern::any(None, []));
        assert!(!Pattern::any(Some(&"*".into()), []));
        assert!(Pattern::any(Some(&"b".into()), ["a", "b"]));
    }
}
