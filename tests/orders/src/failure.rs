//! How a call fails that an order hits.

use serde::{Deserialize, Serialize};

/// On which side of its effect a call is cut off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// Nothing was done.
    #[default]
    BeforeEffect,
    /// All was done, and the caller doesn't learn it.
    AfterEffect,
}

/// How a call fails, with what its caller gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure<A> {
    /// What the caller gets.
    pub answer: A,
    /// On which side of the effect.
    #[serde(default)]
    pub cut: Cut,
}

/// The first failure of the orders that hit a call, with the id of its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct First<A>(Option<(String, Failure<A>)>);

impl<A> Default for First<A> {
    fn default() -> Self {
        Self(None)
    }
}

impl<A: Clone> First<A> {
    /// Takes the failure of the order `id`, if it has one and is the first that has.
    pub fn or(&mut self, id: &str, failure: Option<&Failure<A>>) {
        if self.0.is_none() {
            self.0 = failure.map(|failure| (id.to_owned(), failure.clone()));
        }
    }

    /// The id of the order and what the caller gets, if the call fails on this side of the effect.
    pub fn at(&self, cut: Cut) -> Option<(&str, &A)> {
        let (id, failure) = self.0.as_ref()?;
        (failure.cut == cut).then_some((id.as_str(), &failure.answer))
    }
}
