//! Faults ordered over the control API, and what a sidecar and the log see of them.

mod support;

use std::time::Duration;

use csi_driver::control::{Client, Code, ControlError, Counters, Delay, Fault};
use csi_driver::csi::{DeleteSnapshotRequest, ListSnapshotsRequest};
use support::{Harness, PATIENCE};
use tonic::Code as Grpc;

#[tokio::test]
async fn an_error_before_the_effect_leaves_nothing_behind() {
    let driver = Harness::start().await;
    let volume = driver.volume("v").await;
    let fault = Fault::on("CreateSnapshot").times(1).error(Grpc::ResourceExhausted, "no space left");
    driver.control.order(&fault).await.expect("order");

    let status = driver.snapshot("s", &volume.volume_id).await.expect_err("ordered");
    assert_eq!((status.code(), status.message()), (Grpc::ResourceExhausted, "no space left"));
    assert!(driver.control.snapshots().await.expect("snapshots").is_empty());
    driver.snapshot("s", &volume.volume_id).await.expect("second try");
}

#[tokio::test]
async fn an_error_after_the_effect_hides_a_snapshot_that_the_next_try_finds() {
    let driver = Harness::start().await;
    let volume = driver.volume("v").await;
    let fault = Fault::on("CreateSnapshot").times(1).error(Grpc::DeadlineExceeded, "lost").after_effect();
    let id = driver.control.order(&fault).await.expect("order");

    driver.snapshot("s", &volume.volume_id).await.expect_err("ordered");
    let hidden = driver.control.snapshots().await.expect("snapshots");
    let found = driver.snapshot("s", &volume.volume_id).await.expect("second try");
    assert_eq!(hidden.len(), 1);
    assert_eq!(found.snapshot_id, hidden[0].snapshot.id);
    assert_eq!(driver.control.counters().await.expect("counters").snapshots_created, 1);

    let calls = driver.control.calls_of("CreateSnapshot").await.expect("calls");
    let ends: Vec<_> = calls.iter().map(|call| call.end.as_ref().expect("ended")).collect();
    assert_eq!((ends[0].code, ends[0].effect), (Code(Grpc::DeadlineExceeded), true));
    assert_eq!((ends[1].code, ends[1].effect), (Code(Grpc::Ok), true));
    assert_eq!(calls[0].faults, [id]);
    assert!(calls[0].names.contains(&found.snapshot_id), "{:?}", calls[0].names);
}

#[tokio::test]
async fn a_snapshot_can_be_kept_from_being_ready() {
    let driver = Harness::start().await;
    let volume = driver.volume("slow").await;
    let fault = Fault::on("CreateSnapshot").volume("slow").never_ready().size(0);
    driver.control.order(&fault).await.expect("order");

    let snapshot = driver.snapshot("s", &volume.volume_id).await.expect("snapshot");
    assert_eq!((snapshot.ready_to_use, snapshot.size_bytes), (false, 0));
    let id = snapshot.snapshot_id;
    driver.control.set_readiness(&id, Delay::AfterMs(0)).await.expect("ready now");
    let request = ListSnapshotsRequest { snapshot_id: id.clone(), ..Default::default() };
    let list = driver.controller().list_snapshots(request).await.expect("list").into_inner();
    assert!(list.entries[0].snapshot.as_ref().expect("snapshot").ready_to_use);

    driver.control.set_readiness(&id, Delay::AfterMs(3_600_000)).await.expect("ready in an hour");
    assert!(!driver.control.snapshots().await.expect("snapshots")[0].ready_to_use);
    let unknown = driver.control.set_readiness("snap-none", Delay::Never).await.expect_err("unknown");
    assert!(matches!(unknown, ControlError::Refused { status, .. } if status == 404), "{unknown}");
}

#[tokio::test]
async fn a_snapshot_becomes_ready_by_itself_after_its_delay() {
    let driver = Harness::start().await;
    let volume = driver.volume("v").await;
    let fault = Fault::on("CreateSnapshot").ready_after(Duration::from_millis(20));
    driver.control.order(&fault).await.expect("order");
    let poll = async {
        while !driver.snapshot("s", &volume.volume_id).await.expect("snapshot").ready_to_use {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, poll).await.expect("ready");
    assert_eq!(driver.control.counters().await.expect("counters").snapshots_created, 1);
}

#[tokio::test]
async fn a_hanging_call_goes_on_when_its_order_is_removed() {
    let driver = Harness::start().await;
    let volume = driver.volume("v").await;
    let order = driver.control.order(&Fault::on("CreateSnapshot").hang()).await.expect("order");
    let call = driver.snapshot("s", &volume.volume_id);
    let release = async {
        let call = driver.wait_for_call("CreateSnapshot", |call| call.faults == [order.clone()]).await;
        assert_eq!(call.end, None);
        assert!(driver.control.snapshots().await.expect("snapshots").is_empty());
        driver.control.withdraw(&order).await.expect("withdraw");
    };
    let (reply, ()) = tokio::join!(call, release);
    reply.expect("snapshot");
}

#[tokio::test]
async fn a_caller_that_goes_away_is_in_the_log() {
    let driver = Harness::start().await;
    let volume = driver.volume("v").await;
    let fault = Fault::on("CreateSnapshot").hang().after_effect();
    driver.control.order(&fault).await.expect("order");
    {
        let call = driver.snapshot("s", &volume.volume_id);
        let taken = async {
            while driver.control.snapshots().await.expect("snapshots").is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            reply = call => panic!("answered: {reply:?}"),
            () = taken => {}
        }
    }
    let call = driver.wait_for_call("CreateSnapshot", |call| call.end.is_some()).await;
    let end = call.record.end.expect("ended");
    assert_eq!((end.code, end.effect), (Code(Grpc::Cancelled), true));
}

#[tokio::test]
async fn latency_holds_one_volume_up_and_not_another() {
    let driver = Harness::start().await;
    let slow = driver.volume("slow").await.volume_id;
    let fast = driver.volume("fast").await.volume_id;
    let fault = Fault::on("CreateSnapshot").volume("slow").latency(Duration::from_secs(3600));
    driver.control.order(&fault).await.expect("order");
    tokio::select! {
        reply = driver.snapshot("s", &slow) => panic!("answered: {reply:?}"),
        reply = driver.snapshot("f", &fast) => assert_eq!(reply.expect("snapshot").source_volume_id, fast),
    }
}

#[tokio::test]
async fn the_log_tells_who_deleted_what_and_is_emptied_on_demand() {
    let driver = Harness::start().await;
    let volume = driver.volume("v").await;
    let id = driver.snapshot("s", &volume.volume_id).await.expect("snapshot").snapshot_id;
    let secrets = [("password".to_owned(), "hidden".to_owned())].into();
    let request = DeleteSnapshotRequest { snapshot_id: id.clone(), secrets };
    driver.controller().delete_snapshot(request.clone()).await.expect("delete");
    driver.controller().delete_snapshot(request).await.expect("delete again");

    let calls = driver.control.calls_of("DeleteSnapshot").await.expect("calls");
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].names, [id, "s".to_owned()]);
    assert_eq!(calls[0].volumes, [volume.volume_id, "v".to_owned()]);
    assert_eq!(calls[0].secrets, ["password"]);
    let counters = driver.control.counters().await.expect("counters");
    assert_eq!((counters.snapshots_created, counters.snapshots_deleted), (1, 1));

    driver.control.forget_calls().await.expect("forget");
    driver.control.reset_counters().await.expect("reset");
    assert!(driver.control.calls().await.expect("calls").is_empty());
    assert_eq!(driver.control.counters().await.expect("counters"), Counters::default());
    assert_eq!(driver.control.volumes().await.expect("volumes").len(), 1);
}

#[tokio::test]
async fn orders_show_their_hits_and_senseless_ones_are_refused() {
    let driver = Harness::start().await;
    let control: &Client = &driver.control;
    control.order(&Fault::on("CreateVolume").id("x").skip(1).error(Grpc::Aborted, "")).await.expect("order");
    driver.volume("v").await;
    driver.create_volume("w", None).await.expect_err("ordered");
    let order = &control.orders().await.expect("faults")[0];
    assert_eq!((&*order.order.id, order.selected, order.hits), ("x", 2, 1));

    let refused = control.order(&Fault::on("CreateVolume")).await.expect_err("orders nothing");
    assert!(refused.to_string().contains("fault orders nothing"), "{refused}");
    let unknown = control.withdraw("y").await.expect_err("unknown");
    assert!(unknown.to_string().contains("order y does not exist"), "{unknown}");
    control.withdraw_all().await.expect("withdraw");
    assert!(control.orders().await.expect("faults").is_empty());
}
