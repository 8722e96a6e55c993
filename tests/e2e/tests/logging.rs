//! The log: whatever a plugin logs, no line of it ends the server, none is lost in a raw form, and none counts by accident.

use e2e::item::pod;
use e2e::specimen::entries;
use e2e::{Specimen, Start};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use velero_host::log::{BUFFER, Level, LogLine};

const SPECIMEN: &str = env!("CARGO_BIN_EXE_specimen");

/// The entries that the specimen's log holds after these lines were ordered.
async fn logged(lines: &[Value]) -> anyhow::Result<Vec<LogLine>> {
    let specimen = Start::new(SPECIMEN).start().await?;
    specimen.execute(pod("a").doing("log").with(Value::from(lines).to_string())).await?;
    entries(&specimen.stop().await?.1)
}

fn find<'a>(entries: &'a [LogLine], message: &str) -> &'a LogLine {
    entries.iter().find(|entry| entry.message == message).expect("the line was logged")
}

#[tokio::test]
async fn a_line_is_one_object_with_the_fields_of_its_event_and_its_place() -> anyhow::Result<()> {
    let message = "bound \"a/d\"\nto its volume \u{1b}[31mred";
    let logged = logged(&[json!({"level": "info", "message": message, "value": 3})]).await?;
    let LogLine { level, fields, .. } = find(&logged, message);
    assert_eq!(*level, Level::Info);
    assert_eq!(fields["pvc"], 3);
    assert_eq!((&fields["outer"], &fields["late"]), (&json!("Number(3)"), &json!(5)));
    assert_eq!(fields["@logSourceSetBy"], "plugin");
    let source = fields["logSource"].as_str().expect("a source");
    assert!(source.contains("specimen/chatter.rs:"), "{source}");
    Ok(())
}

#[tokio::test]
async fn a_process_says_its_version_once() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    specimen.list().await?;
    let logged = entries(&specimen.stop().await?.1)?;
    let first = &logged[0];
    assert_eq!((first.level, first.message.as_str()), (Level::Debug, "plugin started"));
    let version = first.fields["version"].as_str().expect("a version");
    assert!(version.starts_with(concat!("e2e ", env!("CARGO_PKG_VERSION"))), "{version}");
    assert_eq!(logged.iter().filter(|entry| entry.message == "plugin started").count(), 1);
    Ok(())
}

#[tokio::test]
async fn only_a_line_that_is_meant_to_fail_a_backup_is_an_error() -> anyhow::Result<()> {
    let lines = ["fatal", "error", "warn", "library"]
        .map(|level| json!({"level": level, "message": level, "value": 1}));
    let logged = logged(&lines).await?;
    let level = |message| find(&logged, message).level;
    assert_eq!([level("fatal"), level("error"), level("warn")], [Level::Error, Level::Warn, Level::Warn]);
    assert_eq!(level("library"), Level::Debug);
    Ok(())
}

#[tokio::test]
async fn calls_that_succeed_log_nothing_that_counts() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let specimen = Start::new(SPECIMEN).env(e2e::FOLDER, folder.path()).start().await?;
    specimen.list().await?;
    for item in [
        pod("a"),
        pod("b").doing("edit"),
        pod("c").doing("start").with("{}"),
        pod("d").doing("additional").with("e"),
    ] {
        specimen.execute(item).await?;
    }
    // A host that leaves without a word, and one that asks for what there is not.
    drop(e2e::raw::Connection::open(specimen.socket()).await?);
    e2e::raw::Connection::open(specimen.socket()).await?.call("unused", "/nope.Nope/X", &[&[]]).await?;
    let (_, log) = specimen.stop().await?;
    let counted: Vec<LogLine> =
        entries(&log)?.into_iter().filter(|entry| entry.level >= Level::Warn).collect();
    assert_eq!(counted, []);
    Ok(())
}

#[tokio::test]
async fn lines_of_a_hundred_threads_stay_whole() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    specimen.execute(pod("a").doing("log-threads").with("30000")).await?;
    specimen.execute(pod("b").doing("log-threads").with("200000")).await?;
    let (_, log) = specimen.stop().await?;
    assert!(log.iter().all(|line| line.len() < BUFFER));
    let logged = entries(&log)?;
    let messages: Vec<&str> = logged
        .iter()
        .filter(|entry| entry.fields.contains_key("thread"))
        .map(|entry| entry.message.as_str())
        .collect();
    assert_eq!(messages.len(), 200);
    let whole = "ß\n".repeat(30_000 / 3);
    assert_eq!(messages.iter().filter(|message| **message == whole).count(), 100);
    assert_eq!(messages.iter().filter(|message| message.contains("… (cut, the line had ")).count(), 100);
    Ok(())
}

#[tokio::test]
async fn plain_text_of_an_action_reaches_no_log() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    // The first would make every later line an error of the backup, the second counts as one.
    for text in ["panic: not ours", "[ERROR] not ours", "plain"] {
        specimen.execute(pod("a").doing("eprint").with(text)).await?;
    }
    entries(&specimen.stop().await?.1)?;
    Ok(())
}

// === any line at all ===

fn message() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "\\PC{0,40}",
        "[\\x00-\\x1f\"\\\\\u{7f}\u{2028}\u{feff}]{1,8}",
        Just("é{\"@level\":5}".to_owned())
    ];
    let short = prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat());
    let long = ("\\PC{1,8}", 500_usize..3_000).prop_map(|(text, times)| text.repeat(times));
    prop_oneof![9 => short, 1 => long]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        message().prop_map(Value::from),
        message().prop_map(|text| json!([text, 5, null])),
        message().prop_map(|text| json!({"name": text, "n": 5})),
    ]
}

fn line() -> impl Strategy<Value = Value> {
    let level = prop::sample::select(vec!["fatal", "library", "error", "warn", "info", "debug", "trace"]);
    (level, message(), value())
        .prop_map(|(level, message, value)| json!({"level": level, "message": message, "value": value}))
}

/// The level at which a line of this order must come out.
fn expected(order: &Value) -> Level {
    match order["level"].as_str() {
        Some("fatal") => Level::Error,
        Some("error" | "warn") => Level::Warn,
        Some("info") => Level::Info,
        Some("debug" | "library") => Level::Debug,
        _ => Level::Trace,
    }
}

/// The line that ends a case.
const END: &str = "the case's end";

/// The lines of the log between those of the last case and [`END`].
async fn lines_of_case(specimen: &Specimen, orders: &[Value], seen: usize) -> anyhow::Result<Vec<String>> {
    specimen.execute(pod("a").doing("log").with(Value::from(orders).to_string())).await?;
    let end = json!([{"level": "info", "message": END, "value": 0}]);
    specimen.execute(pod("a").doing("log").with(end.to_string())).await?;
    loop {
        let mut log = specimen.log_after(seen);
        if let Some(at) = log.iter().position(|line| line.contains(END)) {
            log.truncate(at + 1);
            return Ok(log);
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

#[test]
fn whatever_is_logged_comes_out_as_entries_of_the_right_level() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let specimen = runtime.block_on(Start::new(SPECIMEN).start())?;
    let seen = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config { cases: 200, max_shrink_iters: 100, ..Config::default() });
    runner.run(&prop::collection::vec(line(), 1..4), |orders| {
        let log = runtime.block_on(lines_of_case(&specimen, &orders, seen.get()));
        let log = log.map_err(|error| TestCaseError::fail(error.to_string()))?;
        seen.set(seen.get() + log.len());
        check(&orders, &log)
    })?;
    Ok(())
}

fn check(orders: &[Value], log: &[String]) -> Result<(), TestCaseError> {
    for line in log {
        prop_assert!(line.len() < BUFFER, "{} bytes", line.len());
        prop_assert!(!line.contains('\n') && !line.contains("@timestamp"), "{line:.300}");
    }
    let entries = entries(log).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let ours: Vec<&LogLine> =
        entries.iter().filter(|entry| entry.fields.contains_key("late") && entry.message != END).collect();
    prop_assert_eq!(ours.len(), orders.len());
    for (entry, order) in ours.iter().zip(orders) {
        prop_assert_eq!(entry.level, expected(order));
        let message = order["message"].as_str().unwrap_or_default();
        let cut = entry.message.split("… (cut, the line had ").next().unwrap_or_default();
        prop_assert!(entry.message == message || message.starts_with(cut), "{:.200}", entry.message);
        prop_assert!(entry.fields["name"].is_string());
    }
    Ok(())
}
