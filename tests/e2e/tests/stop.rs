//! The end of a process: at the host's request, in time, with exit code 0, whatever is still running.

use std::path::Path;
use std::time::{Duration, Instant};

use e2e::item::pod;
use e2e::{Specimen, Start};
use rustix::process::{Pid, Signal, kill_process};
use tonic::Code;
use velero_plugin::client::Unanswered;
use velero_plugin::client::proto::plugin::grpc_stdio_client::GrpcStdioClient;

const SPECIMEN: &str = env!("CARGO_BIN_EXE_specimen");
/// The host waits two seconds, then kills. Half of it is ample for what takes 200 ms at most.
const HOST_WAITS: Duration = Duration::from_secs(2);

/// How a stream of the host's, opened now, ends.
async fn stdio(specimen: &Specimen) -> anyhow::Result<tokio::task::JoinHandle<Code>> {
    let mut stream = GrpcStdioClient::new(specimen.channel()).stream_stdio(()).await?.into_inner();
    Ok(tokio::spawn(async move {
        match stream.message().await {
            Ok(Some(data)) => panic!("the stream is silent, not {data:?}"),
            Ok(None) => Code::Ok,
            Err(status) => Unanswered::of(&status).map_or(status.code(), |end| end.code),
        }
    }))
}

/// Starts a call that takes long and waits until it runs.
async fn running(specimen: &Specimen, order: &str) -> tokio::task::JoinHandle<Result<(), tonic::Status>> {
    let mut client = specimen.backup_actions();
    let request = velero_plugin::client::proto::v2::ExecuteRequest {
        plugin: e2e::names::BACKUP.to_owned(),
        item: pod("slow").doing(order).with("30000").bytes(),
        ..Default::default()
    };
    let call = tokio::spawn(async move { client.execute(request).await.map(|_| ()) });
    // A call after it is answered only when it was taken in: both go over one connection, in order.
    specimen.execute(pod("quick")).await.expect("a quick call beside a slow one");
    call
}

#[tokio::test]
async fn a_shutdown_ends_the_process_with_code_0_and_without_its_socket() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let socket = specimen.socket().to_owned();
    specimen.execute(pod("a")).await?;
    let (stopped, log) = specimen.stop().await?;
    assert_eq!((stopped.status.code(), stopped.killed), (Some(0), false));
    assert!(stopped.took < HOST_WAITS, "{stopped:?}");
    assert!(!socket.exists());
    e2e::specimen::entries(&log)?;
    Ok(())
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_calls_nor_for_the_hosts_streams() -> anyhow::Result<()> {
    for order in ["sleep", "block"] {
        let specimen = Start::new(SPECIMEN).start().await?;
        let stdio = stdio(&specimen).await?;
        let call = running(&specimen, order).await;
        let (stopped, _) = specimen.stop().await?;
        assert_eq!((stopped.status.code(), stopped.killed), (Some(0), false), "{order}");
        assert!(stopped.took < HOST_WAITS, "{order}: {stopped:?}");
        assert_eq!(stdio.await?, Code::Ok, "{order}");
        assert!(call.await?.is_err(), "{order}");
    }
    Ok(())
}

/// What the crate's documentation warns of: it holds up the rest, but breaks nothing.
#[tokio::test]
async fn a_call_that_blocks_the_thread_holds_up_the_end_only_while_it_lasts() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let mut client = specimen.backup_actions();
    let request = velero_plugin::client::proto::v2::ExecuteRequest {
        plugin: e2e::names::BACKUP.to_owned(),
        item: pod("a").doing("hold").with("1000").bytes(),
        ..Default::default()
    };
    let call = tokio::spawn(async move { client.execute(request).await });
    // No call can tell that the thread is held, so this only makes it likely.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let (stopped, _) = specimen.stop().await?;
    assert_eq!((stopped.status.code(), stopped.killed), (Some(0), false));
    let _ = call.await?;
    Ok(())
}

#[tokio::test]
async fn a_call_that_ends_within_the_grace_is_answered() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let mut client = specimen.backup_actions();
    let request = velero_plugin::client::proto::v2::ExecuteRequest {
        plugin: e2e::names::BACKUP.to_owned(),
        item: pod("a").doing("sleep").with("50").bytes(),
        ..Default::default()
    };
    let call = tokio::spawn(async move { client.execute(request).await });
    specimen.execute(pod("b")).await?;
    // Over the same connection, so that it is still there for the reply.
    velero_plugin::client::proto::plugin::grpc_controller_client::GrpcControllerClient::new(
        specimen.channel(),
    )
    .shutdown(velero_plugin::client::proto::plugin::Empty {})
    .await?;
    assert_eq!(call.await??.into_inner().item, pod("a").doing("sleep").with("50").bytes());
    assert!(specimen.wait().await?.status.success());
    Ok(())
}

#[tokio::test]
async fn the_stdio_stream_ends_well_in_every_kind_of_end() -> anyhow::Result<()> {
    // An end by any other status than these is an error line in the log of a running backup.
    let fine = [Code::Ok, Code::Cancelled, Code::Unavailable];
    for (name, order, signal) in [
        ("idle, shutdown", None, None),
        ("after a panic, shutdown", Some("panic"), None),
        ("idle, terminated", None, Some(Signal::TERM)),
        ("after a panic, terminated", Some("panic"), Some(Signal::TERM)),
    ] {
        let specimen = Start::new(SPECIMEN).start().await?;
        let stdio = stdio(&specimen).await?;
        if let Some(order) = order {
            specimen.execute(pod("a").doing(order)).await.expect_err(order);
            assert!(!stdio.is_finished(), "{name}");
        }
        let status = match signal {
            Some(signal) => {
                specimen.signal(signal)?;
                specimen.wait().await?.status
            }
            None => specimen.stop().await?.0.status,
        };
        let code = stdio.await?;
        assert!(fine.contains(&code), "{name}: {code:?}");
        assert_eq!(status.code(), Some(0), "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn a_child_that_inherits_the_standard_streams_does_not_hold_the_host() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let reply = specimen.execute(pod("a").doing("child").with("40")).await?;
    let item: serde_json::Value = serde_json::from_slice(&reply.item)?;
    let child = &item["metadata"]["annotations"]["specimen.example/child"];
    let child = child.as_str().and_then(|id| Pid::from_raw(id.parse().ok()?)).expect("a child's id");
    let _ended = scopeguard(child);
    assert!(Path::new(&format!("/proc/{}", child.as_raw_nonzero())).exists());
    let began = Instant::now();
    let (stopped, _) = specimen.stop().await?;
    // The host reads stdout and stderr to their ends, which come when the last holder is gone.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(stopped.status.success() && !stopped.killed);
    Ok(())
}

/// Kills a child at the end of the test.
fn scopeguard(child: Pid) -> impl Drop {
    struct Killed(Pid);

    impl Drop for Killed {
        fn drop(&mut self) {
            let _ = kill_process(self.0, Signal::KILL);
        }
    }

    Killed(child)
}

#[tokio::test]
async fn the_host_may_disconnect_and_connect_again() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let list = "/generated.PluginLister/ListPlugins";
    for _ in 0..2 {
        let connection = e2e::raw::Connection::open(specimen.socket()).await?;
        assert_eq!(connection.call("unused", list, &[&[]]).await?.code(), Some(0));
        drop(connection);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_call_goes_on_when_the_host_disconnects() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let specimen = Start::new(SPECIMEN).env(e2e::FOLDER, folder.path()).start().await?;
    let connection = e2e::raw::Connection::open(specimen.socket()).await?;
    let mut request = e2e::raw::naming(e2e::names::DELETE);
    let item = pod("a").doing("sleep").with("300").bytes();
    prost::encoding::bytes::encode(2, &item, &mut request);
    std::fs::write(folder.path().join("snapshot-a"), "{}")?;
    let mut call = connection.start("unused", "/generated.DeleteItemAction/Execute").await?;
    call.send.send_data(e2e::raw::frame(&request), true)?;
    // Until the request was surely taken in.
    connection.call("unused", "/generated.PluginLister/ListPlugins", &[&[]]).await?;
    drop((call, connection));
    let gone = async {
        while folder.path().join("snapshot-a").exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), gone).await?;
    specimen.stop().await?;
    Ok(())
}
