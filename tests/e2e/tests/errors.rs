//! Errors: what a user gets to read of them, and what Go's client accepts.

use e2e::item::pod;
use e2e::raw::{Connection, frame, naming};
use e2e::{Start, names};
use prost::Message as _;
use tonic::Code;
use velero_plugin::client::Place;
use velero_plugin::client::proto::generated;
use velero_plugin::client::proto::generated::backup_item_action_client::BackupItemActionClient;

const SPECIMEN: &str = env!("CARGO_BIN_EXE_specimen");
const GO_LIKE: &str = env!("CARGO_BIN_EXE_go_like");

#[tokio::test]
async fn an_error_carries_its_chain_outermost_first_and_its_place() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let status = specimen.execute(pod("a").doing("error")).await.expect_err("an error");
    assert_eq!((status.code(), status.message()), (Code::Unknown, "snapshot: get PVC a/d"));
    let place = Place::of(&status).expect("a place");
    assert!(place.file.ends_with("specimen/order.rs") && place.line > 0, "{place:?}");
    assert!(place.function.ends_with("Backup::execute"), "{place:?}");
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_status_of_the_actions_own_keeps_its_code() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let status = specimen.execute(pod("a").doing("status")).await.expect_err("an error");
    assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, "the volume is in use"));
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn an_error_logs_nothing_that_counts() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    specimen.execute(pod("a").doing("error")).await.expect_err("an error");
    let (_, log) = specimen.stop().await?;
    let entries = e2e::specimen::entries(&log)?;
    let counted: Vec<_> =
        entries.iter().filter(|entry| entry.level >= velero_host::log::Level::Warn).collect();
    assert!(counted.is_empty(), "the server logs what is returned: {counted:?}");
    Ok(())
}

#[tokio::test]
async fn the_details_are_a_status_with_the_same_code_and_text() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let connection = Connection::open(specimen.socket()).await?;
    for (order, code) in [("error", 2), ("status", 9), ("panic", 10), ("error-of", 2)] {
        let mut request = naming(names::BACKUP);
        prost::encoding::bytes::encode(2, &pod("a").doing(order).with("100000").bytes(), &mut request);
        let reply = connection.call("unused", "/v2.BackupItemAction/Execute", &[&request]).await?;
        assert_eq!((reply.status.as_u16(), reply.code()), (200, Some(code)), "{order}");
        let details = reply.details()?;
        assert_eq!((details.code, details.message), (code, reply.message()), "{order}");
        assert_eq!(details.details.len(), 1, "{order}");
        assert_eq!(details.details[0].type_url, "type.googleapis.com/generated.Stack", "{order}");
        let stack = generated::Stack::decode(details.details[0].value.as_slice())?;
        assert!(!stack.frames[0].file.is_empty() && stack.frames[0].line > 0, "{order}: {stack:?}");
    }
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_huge_text_is_cut_so_that_every_client_can_read_it() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let status = specimen.execute(pod("a").doing("error-of").with("300000")).await.expect_err("an error");
    assert_eq!(status.code(), Code::Unknown);
    assert!(status.message().starts_with("üüü") && status.message().len() < 20_000);
    assert!(status.message().ends_with("bytes left out)"), "{:.100}", status.message());
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn an_unknown_name_is_answered_in_the_words_of_a_go_plugin() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let request = generated::BackupItemActionAppliesToRequest { plugin: "acme.io/old".to_owned() };
    let status =
        BackupItemActionClient::new(specimen.channel()).applies_to(request).await.expect_err("an error");
    assert_eq!(status.code(), Code::Unknown);
    assert!(
        status.message().ends_with("plugin: acme.io/old was not found or has an invalid name format"),
        "{}",
        status.message()
    );
    specimen.execute(pod("a")).await?;
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_request_that_can_not_be_read_fails_alone() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let connection = Connection::open(specimen.socket()).await?;
    // No protobuf at all, and a frame that promises more than comes.
    let reply = connection.call("unused", "/v2.BackupItemAction/Execute", &[b"\xff\xff\xff\xff"]).await?;
    assert_ne!(reply.code(), Some(0));
    let mut call = connection.start("unused", "/v2.BackupItemAction/Execute").await?;
    call.send.send_data(frame(&[7; 100]).slice(..50), true)?;
    assert_ne!(call.reply().await?.code(), Some(0));
    let status = specimen.execute("not json").await.expect_err("an error");
    assert!(status.message().starts_with("read the item of the request: "), "{status:?}");
    specimen.execute(pod("a")).await?;
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn an_error_of_a_go_plugin_with_its_whole_stack_reaches_the_host() -> anyhow::Result<()> {
    // More than the 16 KiB of headers that an HTTP/2 client of this kind takes by itself.
    let go = Start::bare(GO_LIKE).start().await?;
    let status = go.execute(pod("a")).await.expect_err("an error");
    assert_eq!(status.code(), Code::Aborted);
    assert!(status.message().starts_with("plugin panicked: ") && status.message().len() > 64 * 1024);
    assert_eq!(Place::of(&status).map(|place| place.line), Some(1));
    Ok(())
}
