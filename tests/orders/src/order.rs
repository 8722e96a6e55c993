//! What all orders have in common.

/// What the table needs to know of an order.
pub trait Order {
    /// Its name; empty in a new order that the table shall name.
    fn id(&self) -> &str;
    /// Names it.
    fn set_id(&mut self, id: String);
    /// So many selected calls pass untouched first.
    fn skip(&self) -> u64;
    /// So many selected calls are hit, then no more; for ever when absent.
    fn times(&self) -> Option<u64>;
}

/// Makes an [`Order`] of a struct with the fields `id`, `skip`, `times` and `failure`, whose callers get an `$answer`, and gives
/// it the methods by which every order is built.
///
/// It is a macro because the fields stand among others in one JSON object that refuses fields it does not know, which
/// serde does not do for a part of an object.
#[macro_export]
macro_rules! order {
    ($order:ty, $answer:ty) => {
        impl $order {
            /// Names the order, to replace or remove it later.
            #[must_use]
            pub fn id(self, id: impl Into<String>) -> Self {
                Self { id: id.into(), ..self }
            }

            /// Lets so many calls pass untouched first.
            #[must_use]
            pub fn skip(self, calls: u64) -> Self {
                Self { skip: calls, ..self }
            }

            /// Hits so many calls, then no more.
            #[must_use]
            pub fn times(self, calls: u64) -> Self {
                Self { times: Some(calls), ..self }
            }

            /// Moves the failure behind the effect.
            #[must_use]
            pub fn after_effect(mut self) -> Self {
                if let Some(failure) = &mut self.failure {
                    failure.cut = $crate::Cut::AfterEffect;
                }
                self
            }

            fn failing(self, answer: $answer, cut: $crate::Cut) -> Self {
                Self { failure: Some($crate::Failure { answer, cut }), ..self }
            }
        }

        impl $crate::Order for $order {
            fn id(&self) -> &str {
                &self.id
            }

            fn set_id(&mut self, id: String) {
                self.id = id;
            }

            fn skip(&self) -> u64 {
                self.skip
            }

            fn times(&self) -> Option<u64> {
                self.times
            }
        }
    };
}
