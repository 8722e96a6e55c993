//! Many calls at once in one process, and many processes at once.

use e2e::item::{backup, pod};
use e2e::{Start, names};
use velero_plugin::client::proto::v1::ItemBlockActionGetRelatedItemsRequest;
use velero_plugin::client::proto::v1::item_block_action_client::ItemBlockActionClient;
use velero_plugin::client::proto::v2;

const SPECIMEN: &str = env!("CARGO_BIN_EXE_specimen");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_executes_and_related_items_run_at_once_without_a_mix_up() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let orders = ["", "edit", "sleep", "block"];
    let mut calls = Vec::new();
    for number in 0..64 {
        let mut item = pod(&format!("pod-{number}")).with("40").annotated("number", number.to_string());
        let order = orders[number % orders.len()];
        if !order.is_empty() {
            item = item.doing(order);
        }
        let mut client = specimen.backup_actions();
        let request = v2::ExecuteRequest {
            plugin: names::BACKUP.to_owned(),
            item: item.bytes(),
            backup: backup("InProgress"),
        };
        calls.push(tokio::spawn(async move {
            let reply = client.execute(request).await?.into_inner();
            let item: serde_json::Value = serde_json::from_slice(&reply.item)?;
            anyhow::ensure!(
                item["metadata"]["annotations"]["number"].as_str() == Some(&*number.to_string()),
                "{item}"
            );
            let edited = item["metadata"]["annotations"]["specimen.example/edited"] == "yes";
            anyhow::ensure!(edited == (order == "edit"), "{item}");
            Ok(())
        }));
        let mut client = ItemBlockActionClient::new(specimen.channel());
        let request = ItemBlockActionGetRelatedItemsRequest {
            plugin: names::RELATED.to_owned(),
            item: pod(&format!("pod-{number}")).doing("sleep").with("20").bytes(),
            backup: backup("InProgress"),
        };
        calls.push(tokio::spawn(async move {
            let reply = client.get_related_items(request).await?.into_inner();
            anyhow::ensure!(reply.related_items[0].name == format!("pod-{number}"), "{reply:?}");
            Ok(())
        }));
    }
    for call in calls {
        tokio::time::timeout(std::time::Duration::from_secs(60), call).await???;
    }
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn processes_of_one_binary_live_side_by_side() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut specimens = Vec::new();
    for _ in 0..8 {
        specimens.push(Start::new(SPECIMEN).env("TMPDIR", folder.path()).start().await?);
    }
    let sockets: std::collections::BTreeSet<_> =
        specimens.iter().map(|specimen| specimen.socket().to_owned()).collect();
    assert_eq!(sockets.len(), 8);
    for (number, specimen) in specimens.iter().enumerate() {
        let item = pod(&format!("pod-{number}"));
        assert_eq!(specimen.execute(item.clone()).await?.item, item.bytes());
    }
    for specimen in specimens {
        assert!(specimen.stop().await?.0.status.success());
    }
    assert_eq!(folder.path().read_dir()?.count(), 0);
    Ok(())
}

#[tokio::test]
async fn more_connections_than_one_are_served() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let mut connections = Vec::new();
    for _ in 0..16 {
        connections.push(e2e::raw::Connection::open(specimen.socket()).await?);
    }
    for connection in &connections {
        let reply = connection.call("unused", "/generated.PluginLister/ListPlugins", &[&[]]).await?;
        assert_eq!(reply.code(), Some(0));
    }
    let (stopped, _) = specimen.stop().await?;
    assert!(stopped.status.success() && !stopped.killed);
    Ok(())
}
