//! Lists of globs to include and to exclude.

use globset::{Glob, GlobMatcher};

/// Two lists of globs. Exclusions win; an empty list of inclusions includes everything.
#[derive(Debug, Clone, Default)]
pub struct IncludesExcludes {
    includes: Vec<String>,
    excludes: Vec<String>,
    included: Vec<GlobMatcher>,
    excluded: Vec<GlobMatcher>,
}

impl IncludesExcludes {
    /// Of two lists of globs, in which `*` also crosses dots. A bad glob matches nothing.
    pub fn new(includes: Vec<String>, excludes: Vec<String>) -> Self {
        let compiled = |globs: &[String]| {
            globs.iter().filter_map(|glob| Glob::new(glob).ok()).map(|glob| glob.compile_matcher()).collect()
        };
        Self { included: compiled(&includes), excluded: compiled(&excludes), includes, excludes }
    }

    /// Whether `name` is meant.
    pub fn includes(&self, name: &str) -> bool {
        !self.excludes(name)
            && (self.includes.is_empty() || self.included.iter().any(|glob| glob.is_match(name)))
    }

    /// Whether `name` is excluded by its own list.
    pub fn excludes(&self, name: &str) -> bool {
        self.excluded.iter().any(|glob| glob.is_match(name))
    }

    /// Whether nothing at all is left out.
    pub fn includes_everything(&self) -> bool {
        let all = match self.includes.as_slice() {
            [] => true,
            [one] => one == "*",
            _ => false,
        };
        all && self.excludes.is_empty()
    }

    /// Whether both lists are empty.
    pub fn is_unset(&self) -> bool {
        self.includes.is_empty() && self.excludes.is_empty()
    }

    /// The inclusions as they were given.
    pub fn included(&self) -> &[String] {
        &self.includes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(includes: &[&str], excludes: &[&str]) -> IncludesExcludes {
        let owned = |list: &[&str]| list.iter().map(|&one| one.to_owned()).collect();
        IncludesExcludes::new(owned(includes), owned(excludes))
    }

    #[test]
    fn globs_with_exclusions_that_win() {
        let table: [(&[&str], &[&str], &str, bool); 10] = [
            (&[], &[], "pods", true),
            (&["*"], &[], "deployments.apps", true),
            (&["*.apps"], &[], "deployments.apps", true),
            (&["dep*"], &[], "deployments.apps", true),
            (&["pod?"], &[], "pods", true),
            (&["{pods,services}"], &[], "services", true),
            (&["pods"], &[], "podsx", false),
            (&["pods"], &["p*"], "pods", false),
            (&[], &["pods"], "pods", false),
            (&["[pods"], &[], "[pods", false),
        ];
        for (includes, excludes, name, expected) in table {
            assert_eq!(
                lists(includes, excludes).includes(name),
                expected,
                "{includes:?} {excludes:?} {name}"
            );
        }
    }

    #[test]
    fn everything_is_empty_or_one_star_without_exclusions() {
        assert!(lists(&[], &[]).includes_everything());
        assert!(lists(&["*"], &[]).includes_everything());
        assert!(!lists(&["*", "a"], &[]).includes_everything());
        assert!(!lists(&[], &["b"]).includes_everything());
    }
}
