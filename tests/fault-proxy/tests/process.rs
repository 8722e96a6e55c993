//! The proxy as a process, ordered about over its control API.

mod support;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Stdio;

use fault_proxy::control::{Client, ControlError, RequestQuery};
use fault_proxy::rules::Rule;
use kube::config::Kubeconfig;
use support::{PATIENCE, Server, get};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

#[tokio::test]
async fn a_process_serves_listeners_rules_and_log_and_ends_on_demand() {
    let server = Server::start().await;
    let folder = tempfile::tempdir().expect("tempdir");
    let written = folder.path().join("kubeconfig");
    let mut child = Command::new(env!("CARGO_BIN_EXE_fault-proxy"))
        .args(["--server", &server.url(), "--listen", "velero=127.0.0.1:0", "--listen", "plugin=127.0.0.1:0"])
        .args(["--write-kubeconfig", &format!("plugin={}", written.display())])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("start");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    let mut addresses = BTreeMap::new();
    while !addresses.contains_key("control") {
        let line = timeout(PATIENCE, lines.next_line()).await.expect("in time").expect("line").expect("more");
        let (name, address) = line.rsplit_once(' ').expect("two words");
        addresses.insert(name.to_owned(), address.parse::<SocketAddr>().expect("address"));
    }

    let control = Client::new(addresses["control"]).expect("client");
    control.health().await.expect("health");
    let id = control.order(&Rule::on("get").client("plugin").times(1).fail(503)).await.expect("rule");
    let plugin = Kubeconfig::read_from(&written).expect("kubeconfig");
    let plugin =
        plugin.clusters[0].cluster.as_ref().and_then(|cluster| cluster.server.clone()).expect("server");
    assert_eq!(plugin, format!("http://{}", addresses["client plugin"]));
    let velero = format!("http://{}", addresses["client velero"]);
    for (base, code) in [(&velero, 202), (&plugin, 503), (&plugin, 202)] {
        assert_eq!(get(&format!("{base}/version")).await.expect("answer").0, code);
    }

    let rules = control.orders().await.expect("rules");
    assert_eq!((&*rules[0].order.id, rules[0].selected, rules[0].hits), (&*id, 2, 1));
    let query = RequestQuery { client: Some("plugin".to_owned()), ..RequestQuery::default() };
    let requests = control.requests(&query).await.expect("requests");
    let statuses: Vec<_> = requests.iter().map(|request| (request.number, request.status)).collect();
    assert_eq!(statuses, [(2, Some(503)), (3, Some(202))]);
    let counts = control.counts().await.expect("counts");
    assert_eq!(
        counts.iter().map(|count| (&*count.client, count.count)).collect::<Vec<_>>(),
        [("plugin", 2), ("velero", 1)]
    );

    control.forget_requests().await.expect("forget");
    assert!(control.requests(&RequestQuery::default()).await.expect("requests").is_empty());
    control.withdraw(&id).await.expect("withdraw");
    let unknown = control.withdraw(&id).await.expect_err("unknown");
    assert!(matches!(unknown, ControlError::Refused { status, .. } if status == 404), "{unknown}");
    let senseless = control.order(&Rule::any()).await.expect_err("orders nothing");
    assert!(senseless.to_string().contains("rule orders nothing"), "{senseless}");
    control.withdraw_all().await.expect("withdraw all");

    let id = child.id().expect("running").to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &id]).status().await.expect("kill").success());
    let status = timeout(PATIENCE, child.wait()).await.expect("in time").expect("wait");
    assert_eq!(status.code(), Some(0));
}
