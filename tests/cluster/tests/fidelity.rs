//! The request script on the embedded API and the scenarios on the simulator, against what was recorded from the real ones.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cluster::Cluster;
use cluster::scenario::{self, Storage};
use cluster::script::{self, Entry};
use cluster::simulator::{Settings, Simulator};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Made by `cargo run -p cluster -- record` on Kubernetes 1.36.3 with external-snapshotter 8.6's resources.
const RECORDED: &str = include_str!("../golden/kubernetes-1.36.3.json");
/// Made by `cargo run -p cluster -- compare-storage --record` with external-snapshotter 8.6 and external-provisioner 6.4.
const RECORDED_STORAGE: &str = include_str!("../golden/sidecars-8.6.json");

fn compare(ours: &[Entry], theirs: &[Entry], whose: &str) {
    let differences = script::differences(ours, theirs);
    assert!(differences.is_empty(), "embedded and {whose} differ: {differences:#?}");
}

async fn embedded() -> Vec<Entry> {
    let cluster = Cluster::start().await.unwrap();
    let client = Client::try_from(Config::new(cluster.url().parse().unwrap())).unwrap();
    script::run(&client, "script-embedded").await.unwrap()
}

#[tokio::test]
async fn embedded_api_answers_as_the_recorded_one() {
    let recorded: Vec<Entry> = serde_json::from_str(RECORDED).unwrap();
    assert_eq!(
        recorded.len(),
        script::steps("n").len(),
        "the recording is of another script, record it anew"
    );
    compare(&embedded().await, &recorded, "recorded");
}

/// `cargo test -p cluster -- --ignored` with `CLUSTER_SCRIPT_KUBECONFIG` naming a server that has the snapshot resources.
#[tokio::test]
#[ignore = "needs a real API server in CLUSTER_SCRIPT_KUBECONFIG"]
async fn embedded_api_answers_as_the_server_at_hand() {
    let file =
        std::env::var_os("CLUSTER_SCRIPT_KUBECONFIG").expect("CLUSTER_SCRIPT_KUBECONFIG names a server");
    let file = Kubeconfig::read_from(file).unwrap();
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    let namespace = format!("script-{}", std::process::id());
    let real = script::run(&Client::try_from(config).unwrap(), &namespace).await.unwrap();
    compare(&embedded().await, &real, "real");
}

#[tokio::test]
async fn simulator_comes_to_the_recorded_outcomes() {
    let recorded: Vec<Entry> = serde_json::from_str(RECORDED_STORAGE).unwrap();
    let cluster = Cluster::start().await.unwrap();
    let simulator = Simulator::start(&cluster, Settings::default(), &["csi.velero-rs.test"]);
    let client = Client::try_from(Config::new(cluster.url().parse().unwrap())).unwrap();
    let storage = Storage::Simulated(simulator.driver("csi.velero-rs.test").clone());
    let ours = scenario::play(&client, &storage, "csi.velero-rs.test", "scenario").await.unwrap();
    compare(&ours, &recorded, "recorded");
}
