//! Arguments: those of the servers up to 1.14, those since, and whatever a later one may say.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use e2e::Start;
use e2e::item::pod;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use velero_host::log::Level;
use velero_plugin::client::StartError;

const SPECIMEN: &str = env!("CARGO_BIN_EXE_specimen");

/// The levels of the lines that the specimen writes when it is asked for one of each, started with these arguments.
async fn levels(arguments: &[&str]) -> anyhow::Result<Vec<Level>> {
    let specimen = Start::bare(SPECIMEN).args(arguments).start().await?;
    let lines = ["fatal", "error", "warn", "info", "debug", "trace", "library"]
        .map(|level| serde_json::json!({"level": level, "message": "asked for", "value": "v"}));
    specimen.execute(pod("a").doing("log").with(serde_json::Value::from(lines.to_vec()).to_string())).await?;
    let (_, log) = specimen.stop().await?;
    let entries = e2e::specimen::entries(&log)?;
    Ok(entries.iter().filter(|entry| entry.message == "asked for").map(|entry| entry.level).collect())
}

#[tokio::test]
async fn the_level_is_found_among_flags_that_nobody_knows() -> anyhow::Result<()> {
    use Level::{Debug, Error, Info, Trace, Warn};

    // What `fatal`, `error`, `warn`, `info`, `debug`, `trace` and a library's error become.
    let trace = [Error, Warn, Warn, Info, Debug, Trace, Debug];
    let debug = [Error, Warn, Warn, Info, Debug, Debug];
    let info = [Error, Warn, Warn, Info];
    let warn = [Error, Warn, Warn];
    let error = [Error, Warn];
    let table: [(&str, &[Level]); 10] = [
        (
            "--features=EnableCSI --uploader-type=kopia --client-qps 50 --default-volume-snapshot-locations \
             aws:default --log-level debug --some-future-flag",
            &debug,
        ),
        ("--log-level trace", &trace),
        ("--log-level debug --features EnableCSI", &debug),
        ("--log-level=warning", &warn),
        ("--log-level error", &error),
        ("--log-level=fatal", &error),
        ("--log-level=loud", &info),
        ("--restore-only -v=4 --log-level=trace --log-level=info positional", &info),
        ("-n velero --log-format json", &info),
        ("", &info),
    ];
    for (arguments, expected) in table {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        assert_eq!(levels(&words).await?, expected, "{arguments:?}");
    }
    Ok(())
}

fn word() -> impl Strategy<Value = OsString> {
    let known = prop::sample::select(vec![
        "--log-level",
        "--log-level=",
        "--log-level=debug",
        "--features",
        "--features=",
        "--",
        "-",
        "-v=4",
        "-h",
        "--help",
        "--version",
        "--list",
        "--restore-only",
        "--namespace",
        "=",
        "--=",
        "-vmodule=a=1,b=2",
        "",
    ]);
    prop_oneof![
        known.prop_map(OsString::from),
        "\\PC{0,20}".prop_map(OsString::from),
        "--[a-z-]{1,12}(=[^\u{0}]{0,9})?".prop_map(OsString::from),
        // Not even text.
        prop::collection::vec(1_u8..=255, 0..12).prop_map(OsString::from_vec),
    ]
}

#[test]
fn no_arguments_keep_a_plugin_from_starting() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut runner = TestRunner::new(Config { cases: 100, ..Config::default() });
    let ran = runner.run(&prop::collection::vec(word(), 0..12), |words| {
        let listed = runtime.block_on(async {
            let specimen = Start::bare(SPECIMEN)
                .args(&words)
                .start()
                .await
                .map_err(|error: StartError| error.to_string())?;
            let listed = specimen.list().await.map_err(|status| status.to_string())?;
            specimen.stop().await.map_err(|error| error.to_string())?;
            Ok::<_, String>(listed)
        });
        let listed = listed.map_err(TestCaseError::fail)?;
        // What looks like a server up to 1.14 is not told of the kind that it does not know.
        let known_to_all = listed.iter().filter(|plugin| plugin.kind != "ItemBlockAction");
        prop_assert_eq!(known_to_all.count(), 7, "{:?}", listed);
        Ok(())
    });
    ran.expect("every plugin starts");
}

#[tokio::test]
async fn only_a_server_that_knows_item_block_actions_is_told_of_them() -> anyhow::Result<()> {
    // Servers up to 1.14 give exactly these arguments; later ones their own whole command line.
    for (words, told) in [
        (&["--log-level", "info"][..], false),
        (&["--log-level", "info", "--features", "EnableCSI"], false),
        (&["--features=EnableCSI", "--log-level", "info"], true),
        (&[], true),
    ] {
        let specimen = Start::bare(SPECIMEN).args(words).start().await?;
        let listed = specimen.list().await?;
        assert_eq!(listed.iter().any(|plugin| plugin.kind == "ItemBlockAction"), told, "{words:?}");
        specimen.stop().await?;
    }
    Ok(())
}
