//! A table of orders that the tasks of a program share, and that hanging calls wait on.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::{Order, OrderStatus, OrderTable};

/// The orders in force.
#[derive(Debug)]
pub struct Orders<O> {
    table: Mutex<OrderTable<O>>,
    changes: watch::Sender<()>,
}

impl<O> Default for Orders<O> {
    fn default() -> Self {
        Self { table: Mutex::default(), changes: watch::Sender::new(()) }
    }
}

impl<O: Order + Clone> Orders<O> {
    /// Adds an order and answers its id; one with the same id is replaced.
    pub fn add(&self, order: O) -> String {
        self.change(|table| table.add(order))
    }

    /// Removes the order with this id and releases the calls that hang by it. Answers whether there was one.
    pub fn remove(&self, id: &str) -> bool {
        self.change(|table| table.remove(id))
    }

    /// Removes all orders and releases the calls that hang.
    pub fn clear(&self) {
        self.change(OrderTable::clear);
    }

    /// The orders and what became of them.
    pub fn list(&self) -> Vec<OrderStatus<O>> {
        self.lock().orders().to_vec()
    }

    /// Counts one call and answers the orders that hit it.
    pub fn hit(&self, selects: impl Fn(&O) -> bool) -> Vec<O> {
        self.lock().hit(selects).into_iter().cloned().collect()
    }

    /// Completes when no order with this id is in force.
    pub async fn released(&self, id: &str) {
        let mut changes = self.changes.subscribe();
        while self.lock().holds(id) {
            // Never an error: the sender lives as long as `self`.
            if changes.changed().await.is_err() {
                break;
            }
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut OrderTable<O>) -> T) -> T {
        let outcome = change(&mut self.lock());
        self.changes.send_replace(());
        outcome
    }

    fn lock(&self) -> MutexGuard<'_, OrderTable<O>> {
        // A panic elsewhere does not spoil the table.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone)]
    struct Named(String);

    impl Order for Named {
        fn id(&self) -> &str {
            &self.0
        }

        fn set_id(&mut self, id: String) {
            self.0 = id;
        }

        fn skip(&self) -> u64 {
            0
        }

        fn times(&self) -> Option<u64> {
            None
        }
    }

    #[tokio::test]
    async fn a_waiting_call_goes_on_when_its_order_is_removed_and_not_before() {
        let orders = Orders::default();
        orders.add(Named("x".to_owned()));
        orders.add(Named("y".to_owned()));
        let mut released = std::pin::pin!(orders.released("x"));
        assert!(futures::poll!(released.as_mut()).is_pending());
        orders.remove("y");
        assert!(futures::poll!(released.as_mut()).is_pending());
        orders.clear();
        released.await;
        orders.released("never there").await;
    }
}
