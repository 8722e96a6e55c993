//! Items: the bytes that come in, and those that go back.

use bytes::Bytes;
use e2e::item::{DO, backup, pod, restore};
use e2e::{Specimen, Start, names};
use serde_json::{Value, json};
use velero_plugin::client::LARGEST_MESSAGE;
use velero_plugin::client::proto::generated::backup_item_action_client::BackupItemActionClient;
use velero_plugin::client::proto::generated::restore_item_action_client::RestoreItemActionClient as RestoreV1Client;
use velero_plugin::client::proto::v1::item_block_action_client::ItemBlockActionClient;
use velero_plugin::client::proto::v2::restore_item_action_client::RestoreItemActionClient;
use velero_plugin::client::proto::{generated, v1, v2};

const SPECIMEN: &str = env!("CARGO_BIN_EXE_specimen");

/// Objects whose bytes tell whether somebody wrote them anew: numbers that no float holds, forms of numbers, escapes, the
/// order of keys, empty values, spaces.
fn awkward_items() -> Vec<String> {
    let values = [
        "9007199254740993",
        "18446744073709551615",
        "-9223372036854775808",
        "123456789012345678901234567890",
        "1e3",
        "1.0",
        "0.1",
        "-0",
        "1E+2",
        "\"\\u003cb\\u003e \\u0026 <>&\"",
        "\"ü 漢 🦀 \\u00fc \\ud83e\\udd80 \\n\\t\\\\ \\/\"",
        "null",
        "{}",
        "[]",
        "[ 1,  null, {\"z\":1,\"a\":2} ]",
        "true",
    ];
    let item = |value| {
        format!(
            "{{\"zebra\":{value},\"kind\":\"Widget\",\"apiVersion\":\"a.io/v1\",\"metadata\":{{\"name\":\"w\"}},\"a\":{value}}}"
        )
    };
    values.iter().map(item).collect()
}

async fn restored(
    specimen: &Specimen,
    item: Bytes,
    from_backup: Bytes,
) -> anyhow::Result<v2::RestoreItemActionExecuteResponse> {
    let mut client =
        RestoreItemActionClient::new(specimen.channel()).max_decoding_message_size(LARGEST_MESSAGE);
    let request = v2::RestoreItemActionExecuteRequest {
        plugin: names::RESTORE.to_owned(),
        item,
        restore: restore(),
        item_from_backup: from_backup,
    };
    Ok(client.execute(request).await?.into_inner())
}

#[tokio::test]
async fn an_unchanged_item_goes_back_byte_for_byte_in_every_kind() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let (mut backups, mut restores) =
        (BackupItemActionClient::new(specimen.channel()), RestoreV1Client::new(specimen.channel()));
    for item in awkward_items() {
        assert_eq!(specimen.execute(item.clone()).await?.item, item);
        let request = generated::ExecuteRequest {
            plugin: names::BACKUP_V1.to_owned(),
            item: item.clone().into(),
            backup: backup("InProgress"),
        };
        assert_eq!(backups.execute(request).await?.into_inner().item, item);
        let request = generated::RestoreItemActionExecuteRequest {
            plugin: names::RESTORE_V1.to_owned(),
            item: item.clone().into(),
            restore: restore(),
            item_from_backup: item.clone().into(),
        };
        assert_eq!(restores.execute(request).await?.into_inner().item, item);
        assert_eq!(restored(&specimen, item.clone().into(), item.clone().into()).await?.item, item);
    }
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn an_edited_item_keeps_every_byte_that_the_edit_does_not_name() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    for item in awkward_items() {
        let with = |annotations: &str| {
            item.replace(
                "\"metadata\":{\"name\":\"w\"}",
                &format!("\"metadata\":{{\"name\":\"w\",\"annotations\":{{{annotations}}}}}"),
            )
        };
        let came = with(&format!("\"{DO}\":\"edit\",\"b\":\"\\u003c\""));
        let expected = with("\"b\":\"\\u003c\",\"specimen.example/edited\":\"yes\"");
        let text = String::from_utf8(specimen.execute(came).await?.item.to_vec())?;
        assert_eq!(text, expected);
    }
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_skipped_item_goes_back_whole_too() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let item = pod("a").doing("skip").bytes();
    let reply = restored(&specimen, item.clone(), item.clone()).await?;
    assert!(reply.skip_restore);
    assert_eq!(reply.item, item);
    let request = generated::RestoreItemActionExecuteRequest {
        plugin: names::RESTORE_V1.to_owned(),
        item: item.clone(),
        ..Default::default()
    };
    let reply = RestoreV1Client::new(specimen.channel()).execute(request).await?.into_inner();
    assert!(reply.skip_restore);
    assert_eq!(reply.item, item);
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn an_item_that_velero_would_refuse_is_refused_with_a_reason() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    for (item, words) in [
        ("", "the item is not JSON"),
        ("{}", "has no kind"),
        (r#"{"kind":""}"#, "has no kind"),
        ("[]", "has no kind"),
    ] {
        let status = specimen.execute(item).await.expect_err(item);
        assert!(status.message().contains(words), "{item:?}: {status:?}");
    }
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn two_items_of_8_mib_and_their_reply_pass() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let weight = 8 * 1024 * 1024;
    let (item, from_backup) =
        (pod("a").doing("original").weighing(weight).bytes(), pod("a").weighing(weight).bytes());
    assert_eq!(restored(&specimen, item, from_backup.clone()).await?.item, from_backup);
    assert_eq!(specimen.execute(from_backup.clone()).await?.item, from_backup);
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_host_without_a_second_copy_restores_from_the_first() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let item = pod("a").doing("original").bytes();
    assert_eq!(restored(&specimen, item.clone(), Bytes::new()).await?.item, item);
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn fields_of_a_later_host_are_passed_over() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let connection = e2e::raw::Connection::open(specimen.socket()).await?;
    let item = pod("a").bytes();
    let mut request = e2e::raw::naming(names::BACKUP);
    prost::encoding::bytes::encode(2, &item, &mut request);
    let newer = json!({"status": {"phase": "Dreaming", "unheard": [1]}, "spec": {"unheard": {"of": null}}})
        .to_string();
    prost::encoding::string::encode(3, &newer, &mut request);
    prost::encoding::string::encode(99, &"unheard of".to_owned(), &mut request);
    prost::encoding::uint64::encode(100, &7, &mut request);
    let reply = connection.call("unused", "/v2.BackupItemAction/Execute", &[&request]).await?;
    assert_eq!(reply.code(), Some(0), "{}", reply.message());
    let message: v2::ExecuteResponse = prost::Message::decode(reply.messages()?.remove(0))?;
    assert_eq!(message.item, item);
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_selector_arrives_as_it_was_built() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let request = v2::BackupItemActionAppliesToRequest { plugin: names::BACKUP.to_owned() };
    let reply = specimen.backup_actions().applies_to(request).await?.into_inner();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let expected = generated::ResourceSelector {
        included_namespaces: words(&["shop", "web-*"]),
        excluded_namespaces: words(&["kube-system"]),
        included_resources: words(&["pods", "deployments.apps"]),
        excluded_resources: words(&["secrets"]),
        selector: "specimen.example/wanted".to_owned(),
    };
    assert_eq!(reply.resource_selector, Some(expected));
    let request = generated::RestoreItemActionAppliesToRequest { plugin: names::RESTORE_V1.to_owned() };
    let reply = RestoreV1Client::new(specimen.channel()).applies_to(request).await?.into_inner();
    assert_eq!(reply.resource_selector.unwrap_or_default(), generated::ResourceSelector::default());
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn additional_and_related_items_are_named_by_their_plural() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let named = |resource: &str, name: &str| generated::ResourceIdentifier {
        group: String::new(),
        resource: resource.to_owned(),
        namespace: "shop".to_owned(),
        name: name.to_owned(),
    };
    let reply = specimen.execute(pod("a").doing("additional").with("b,c")).await?;
    assert_eq!(reply.additional_items, [named("pods", "b"), named("pods", "c")]);
    let request = v1::ItemBlockActionGetRelatedItemsRequest {
        plugin: names::RELATED.to_owned(),
        item: pod("a").bytes(),
        backup: backup("InProgress"),
    };
    let reply = ItemBlockActionClient::new(specimen.channel()).get_related_items(request).await?.into_inner();
    assert_eq!(reply.related_items, [named("persistentvolumeclaims", "a")]);
    // One without a name can't be made, so it can't be sent.
    specimen.execute(pod("a").doing("additional").with("")).await.expect_err("an empty name");
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_restored_item_waits_for_its_claim_as_long_as_the_action_says() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let specimen = Start::new(SPECIMEN).env(e2e::FOLDER, folder.path()).start().await?;
    for (with, timeout) in [("", None), ("1500", Some((1, 500_000_000))), ("0", Some((0, 1)))] {
        let item = pod("a").doing("wait").with(with).bytes();
        let reply = restored(&specimen, item.clone(), item).await?;
        assert!(reply.wait_for_additional_items);
        let sent = reply.additional_items_ready_timeout.map(|timeout| (timeout.seconds, timeout.nanos));
        // Zero on the wire would be the server's default of ten minutes.
        assert_eq!(sent, timeout, "{with:?}");
        assert_eq!(reply.additional_items.len(), 1);
    }
    let ready = |specimen: &Specimen| {
        let mut client = RestoreItemActionClient::new(specimen.channel());
        let claim = generated::ResourceIdentifier {
            resource: "persistentvolumeclaims".to_owned(),
            namespace: "shop".to_owned(),
            name: "a".to_owned(),
            ..Default::default()
        };
        let request = v2::RestoreItemActionItemsReadyRequest {
            plugin: names::RESTORE.to_owned(),
            restore: restore(),
            additional_items: vec![claim],
        };
        async move { client.are_additional_items_ready(request).await.map(|reply| reply.into_inner().ready) }
    };
    assert!(!ready(&specimen).await?);
    let asked: Value = serde_json::from_slice(&std::fs::read(folder.path().join("asked"))?)?;
    assert_eq!(asked, json!(["persistentvolumeclaims shop/a"]));
    std::fs::write(folder.path().join("ready"), "{}")?;
    assert!(ready(&specimen).await?);
    specimen.stop().await?;
    Ok(())
}
