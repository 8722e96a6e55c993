//! What is backed up: a shop with three volumes on a storage that is quick, slow and once in trouble.

use std::time::Duration;

use cluster::simulator::Fault;
use serde_json::{Value, json};
use tonic::Code;

/// The namespace, where the cluster is the demo's own.
pub const NAMESPACE: &str = "shop";

/// A claim of the shop.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    /// Its name.
    pub name: &'static str,
    /// The size of its volume, as a quantity, where volumes cost nothing.
    pub size: &'static str,
    /// How long the storage takes until a snapshot of it can be used, where the storage takes orders.
    pub ready_after: Duration,
}

const fn claim(name: &'static str, size: &'static str, seconds: u64) -> Claim {
    Claim { name, size, ready_after: Duration::from_secs(seconds) }
}

/// All of them.
pub const CLAIMS: [Claim; 3] =
    [claim("catalog", "2Gi", 1), claim("media", "500Gi", 9), claim("orders", "40Gi", 5)];

/// The claim whose first snapshot the storage refuses, for a moment.
pub const TROUBLED: &str = "orders";

/// What is there to see, in [`NAMESPACE`].
pub fn told() -> String {
    let volumes = CLAIMS.len();
    format!("namespace {NAMESPACE} with {volumes} volumes; the storage refuses {TROUBLED} once")
}

/// What the storage is ordered to do with the snapshots of the shop in [`NAMESPACE`].
pub fn faults() -> Vec<Fault> {
    let of = |claim: &Claim| Fault::on("CreateSnapshot").volume(format!("{NAMESPACE}/{}", claim.name));
    let slow = CLAIMS.iter().map(|claim| of(claim).ready_after(claim.ready_after));
    let troubled = CLAIMS.iter().filter(|claim| claim.name == TROUBLED);
    slow.chain(troubled.map(|claim| of(claim).times(1).error(Code::Unavailable, "the array is busy")))
        .collect()
}

/// What the shop has beside its claims.
pub fn objects(namespace: &str) -> Vec<Value> {
    vec![
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": namespace}, "data": {"currency": "EUR"}}),
        json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "database", "namespace": namespace}, "data": {"password": "aHVudGVyMg=="}}),
    ]
}

impl Claim {
    /// The claim as an object, of this size and storage class.
    pub fn object(&self, namespace: &str, size: &str, storage_class: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": self.name, "namespace": namespace},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class,
                "resources": {"requests": {"storage": size}}}})
    }
}
