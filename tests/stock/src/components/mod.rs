//! The parts of a stack, each with its start, its sign of readiness and the flags that are not obvious.

pub(crate) mod api_server;
pub(crate) mod bucket;
pub(crate) mod controllers;
pub(crate) mod crds;
pub(crate) mod driver;
pub(crate) mod etcd;
pub(crate) mod kubectl;
pub(crate) mod proxy;
pub(crate) mod snapshots;
pub(crate) mod storage;
pub(crate) mod velero;

use std::time::Duration;

/// How long a component may take to be ready on a busy machine.
pub(crate) const START_LIMIT: Duration = Duration::from_secs(90);
