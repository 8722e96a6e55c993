//! What a process learns about the drivers while it deletes one snapshot after the other.

use std::collections::{HashMap, HashSet};
use std::sync::PoisonError;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Mutex;

use crate::cluster::resource::{CLASSES, DRIVERS, NODES};
use crate::cluster::{ApiError, Cluster, Query, Reason};
use crate::object::text;

/// How long a driver gets for one deletion.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// As long as it has kept up.
    pub first: Duration,
    /// Once a deletion of its was not finished in time. Velero waits for one deletion after the other, so a driver that
    /// is down would hold a large backup for hours; its deletions go on without us.
    pub later: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { first: Duration::from_secs(30), later: Duration::from_secs(3) }
    }
}

/// The drivers that were met so far.
#[derive(Debug, Default)]
pub(super) struct Drivers {
    /// Whether a driver is absent.
    absent: Mutex<HashMap<String, bool>>,
    /// Those that did not keep up.
    late: std::sync::Mutex<HashSet<String>>,
}

impl Drivers {
    /// How long `driver` gets now.
    pub(super) fn limit(&self, driver: &str, patience: Patience) -> Duration {
        if self.late().contains(driver) { patience.later } else { patience.first }
    }

    /// Notes whether `driver` has finished a deletion in time.
    pub(super) fn note(&self, driver: &str, in_time: bool) {
        if in_time {
            self.late().remove(driver);
        } else {
            self.late().insert(driver.to_owned());
        }
    }

    fn late(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing in the cluster speaks for the driver: then a content would stay Terminating for ever. Asked once
    /// per driver.
    pub(super) async fn is_absent(&self, cluster: &Cluster, driver: &str) -> Result<bool, ApiError> {
        let mut absent = self.absent.lock().await;
        if let Some(known) = absent.get(driver) {
            return Ok(*known);
        }
        let found = is_present(cluster, driver).await?;
        absent.insert(driver.to_owned(), !found);
        Ok(!found)
    }
}

async fn is_present(cluster: &Cluster, driver: &str) -> Result<bool, ApiError> {
    // Who may not look must assume that it is there.
    let allowed = |result: Result<bool, ApiError>| match result {
        Err(error) if error.reason == Reason::Forbidden => Ok(true),
        other => other,
    };
    if allowed(cluster.find(DRIVERS, "", driver).await.map(|found| found.is_some()))? {
        return Ok(true);
    }
    let all = Query { cached: true, ..Query::default() };
    let of_driver = |class: &Value| text(class, &["driver"]) == Some(driver);
    if allowed(cluster.list(CLASSES, &all).await.map(|list| list.iter().any(of_driver)))? {
        return Ok(true);
    }
    let on_node = |node: &Value| {
        let drivers = node.pointer("/spec/drivers").and_then(Value::as_array);
        drivers.is_some_and(|drivers| drivers.iter().any(|each| text(each, &["name"]) == Some(driver)))
    };
    allowed(cluster.list(NODES, &all).await.map(|list| list.iter().any(on_node)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_was_late_gets_little_until_it_keeps_up_again() {
        let (drivers, patience) = (Drivers::default(), Patience::default());
        let of = |driver: &str| drivers.limit(driver, patience).as_secs();
        assert_eq!(of("slow"), 30);
        drivers.note("slow", false);
        assert_eq!((of("slow"), of("other")), (3, 30));
        drivers.note("slow", true);
        assert_eq!(of("slow"), 30);
    }
}
