//! What must be so; the demo fails where it isn't.

/// Expectations with what was seen.
#[derive(Debug, Default)]
pub(crate) struct Checks(Vec<Check>);

/// One expectation.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) what: String,
    pub(crate) seen: String,
    pub(crate) holds: bool,
}

impl Checks {
    /// `what` is `expected`.
    pub(crate) fn equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, seen: &T, expected: &T) {
        let told = if seen == expected { format!("{seen:?}") } else { format!("{seen:?}, not {expected:?}") };
        self.0.push(Check { what: what.to_owned(), seen: told, holds: seen == expected });
    }

    pub(crate) fn all(&self) -> &[Check] {
        &self.0
    }

    pub(crate) fn hold(&self) -> bool {
        self.0.iter().all(|check| check.holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_does_not_hold_is_enough() {
        let mut checks = Checks::default();
        checks.equal("one", &1, &1);
        assert!(checks.hold());
        checks.equal("two", &2, &3);
        assert!(!checks.hold());
        assert_eq!(checks.all()[1].seen, "2, not 3");
    }
}
