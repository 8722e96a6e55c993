//! The storage side of a cluster without its programs: CSI drivers in memory, their sidecars, the snapshot
//! controller and the volume binder, one file per controller.
//!
//! Each controller follows its original (external-snapshotter 8.6, external-provisioner 6.4) step by step: informers that
//! lag, work queues with back-off, caches that ignore old versions. So what goes wrong there goes wrong here:
//! contents that are deleted before their status is known leak their snapshot; a deletion that meets a status
//! write can be overlooked until the next resync.
//!
//! ```
//! # use std::time::Duration;
//! # use serde_json::json;
//! use cluster::simulator::{Fault, Settings, Simulator};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cluster = cluster::Cluster::start().await?;
//! let simulator = Simulator::start(&cluster, Settings::default(), &["disk.csi.example"]);
//! let driver = simulator.driver("disk.csi.example");
//! driver.order(Fault::on("CreateSnapshot").volume("app/data").ready_after(Duration::from_secs(3)))?;
//! assert_eq!(driver.read(|state| state.snapshots.len()), 0);
//! # Ok(())
//! # }
//! ```

mod binder;
mod context;
mod controller;
mod driver;
mod group_controller;
mod group_snapshotter;
mod informer;
mod keys;
mod provisioner;
mod quantity;
mod queue;
mod sidecar;
mod snapshot_controller;
mod snapshotter;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

pub use csi_driver::fault::{Delay, Fault, InvalidFault};
pub use csi_driver::state::{Readiness, Source, State};

use self::context::Context;
use self::group_controller::GroupController;
use self::group_snapshotter::GroupSnapshotter;
use self::provisioner::Provisioner;
use self::snapshot_controller::SnapshotController;
use self::snapshotter::Snapshotter;
use crate::Cluster;

pub use self::driver::Driver;

/// How fast the controllers are. The defaults are shorter than those of the real ones, so that tests are quick.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Between a write and its arrival in the caches of the controllers.
    pub informer_lag: Duration,
    /// The first wait before a failed or unfinished object is looked at again; it doubles each time.
    pub retry_start: Duration,
    /// The longest such wait.
    pub retry_max: Duration,
    /// Between two looks at everything, changed or not.
    pub resync: Duration,
    /// How long a call of a driver may take.
    pub rpc_timeout: Duration,
    /// Objects that one controller works on at the same time.
    pub workers: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            informer_lag: Duration::from_millis(2),
            retry_start: Duration::from_millis(50),
            retry_max: Duration::from_secs(5),
            ..Self::real()
        }
    }
}

impl Settings {
    /// What the real programs use when they are not told otherwise.
    pub fn real() -> Self {
        Self {
            informer_lag: Duration::from_millis(5),
            retry_start: Duration::from_secs(1),
            retry_max: Duration::from_secs(300),
            resync: Duration::from_secs(15 * 60),
            rpc_timeout: Duration::from_secs(60),
            workers: 10,
        }
    }
}

/// The controllers and drivers beside a cluster, until it is dropped.
#[derive(Debug)]
pub struct Simulator {
    drivers: BTreeMap<String, Arc<Driver>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Simulator {
    /// Starts the controllers, and a driver with its sidecars for each name. Must be called inside of a tokio runtime.
    pub fn start(cluster: &Cluster, settings: Settings, drivers: &[&str]) -> Self {
        let api = cluster.api();
        let context = || Context::new(api.clone(), settings);
        let mut tasks = vec![
            tokio::spawn(binder::run(api.clone())),
            tokio::spawn(controller::run(SnapshotController::new(context()))),
            tokio::spawn(controller::run(GroupController::new(context()))),
        ];
        let drivers: BTreeMap<String, Arc<Driver>> =
            drivers.iter().map(|name| ((*name).to_owned(), Arc::new(Driver::new(name)))).collect();
        for driver in drivers.values() {
            tasks.push(tokio::spawn(controller::run(Snapshotter::new(context(), driver.clone()))));
            tasks.push(tokio::spawn(controller::run(GroupSnapshotter::new(context(), driver.clone()))));
            tasks.push(tokio::spawn(controller::run(Provisioner::new(context(), driver.clone()))));
        }
        Self { drivers, tasks }
    }

    /// The driver of that name.
    ///
    /// # Panics
    /// When none of that name was started.
    pub fn driver(&self, name: &str) -> &Arc<Driver> {
        match self.drivers.get(name) {
            Some(driver) => driver,
            None => panic!("no driver {name} was started"),
        }
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}
