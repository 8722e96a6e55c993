//! The orders in force and how often each was selected and carried out. No I/O.

use serde::{Deserialize, Serialize};

use crate::Order;

/// An order and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderStatus<O> {
    /// The order.
    #[serde(flatten)]
    pub order: O,
    /// Calls that it selected, the skipped ones included.
    pub selected: u64,
    /// Calls that it hit.
    pub hits: u64,
}

/// The orders in force, in the order of their arrival.
#[derive(Debug, Clone)]
pub struct OrderTable<O> {
    orders: Vec<OrderStatus<O>>,
    named: u64,
}

impl<O> Default for OrderTable<O> {
    fn default() -> Self {
        Self { orders: Vec::new(), named: 0 }
    }
}

impl<O: Order> OrderTable<O> {
    /// Adds an order and answers its id. One with the same id is replaced, and counted anew.
    pub fn add(&mut self, mut order: O) -> String {
        if order.id().is_empty() {
            self.named += 1;
            order.set_id(format!("order-{}", self.named));
        }
        let id = order.id().to_owned();
        self.remove(&id);
        self.orders.push(OrderStatus { order, selected: 0, hits: 0 });
        id
    }

    /// Removes an order. Answers whether there was one.
    pub fn remove(&mut self, id: &str) -> bool {
        let before = self.orders.len();
        self.orders.retain(|status| status.order.id() != id);
        self.orders.len() < before
    }

    /// Removes all orders.
    pub fn clear(&mut self) {
        self.orders.clear();
    }

    /// Whether an order with this id is in force.
    pub fn holds(&self, id: &str) -> bool {
        self.orders.iter().any(|status| status.order.id() == id)
    }

    /// The orders in force, used-up ones included.
    pub fn orders(&self) -> &[OrderStatus<O>] {
        &self.orders
    }

    /// Counts one call for the orders that select it, and answers those that hit it.
    pub fn hit(&mut self, selects: impl Fn(&O) -> bool) -> Vec<&O> {
        let mut hits = Vec::new();
        for status in self.orders.iter_mut().filter(|status| selects(&status.order)) {
            status.selected += 1;
            let used_up = status.order.times().is_some_and(|times| status.hits >= times);
            if status.selected > status.order.skip() && !used_up {
                status.hits += 1;
                hits.push(&status.order);
            }
        }
        hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Test(String, u64, Option<u64>);

    impl Order for Test {
        fn id(&self) -> &str {
            &self.0
        }

        fn set_id(&mut self, id: String) {
            self.0 = id;
        }

        fn skip(&self) -> u64 {
            self.1
        }

        fn times(&self) -> Option<u64> {
            self.2
        }
    }

    #[test]
    fn skip_and_times_count_selected_calls_only() {
        for (skip, times, expected) in [
            (0, None, [true, true, true, true]),
            (1, None, [false, true, true, true]),
            (1, Some(2), [false, true, true, false]),
            (0, Some(0), [false, false, false, false]),
        ] {
            let mut table = OrderTable::default();
            table.add(Test(String::new(), skip, times));
            let hits = [(); 4].map(|()| {
                assert!(table.hit(|_| false).is_empty());
                table.hit(|_| true).len() == 1
            });
            assert_eq!(hits, expected, "skip {skip} times {times:?}");
            assert_eq!(table.orders()[0].selected, 4);
        }
    }

    #[test]
    fn a_known_id_replaces_its_order_and_an_empty_one_is_named() {
        let mut table = OrderTable::default();
        assert_eq!(table.add(Test("x".to_owned(), 0, None)), "x");
        table.hit(|_| true);
        table.add(Test("x".to_owned(), 5, None));
        assert_eq!(table.add(Test(String::new(), 0, None)), "order-1");
        assert_eq!(table.orders().len(), 2);
        assert_eq!((table.orders()[0].order.skip(), table.orders()[0].selected), (5, 0));
        assert!(table.holds("x") && table.remove("x") && !table.remove("x") && !table.holds("x"));
        table.clear();
        assert!(table.orders().is_empty());
    }
}
