//! What an item may order, for every kind that is handed items.
//!
//! | order | with | what happens |
//! |---|---|---|
//! | (none) | | nothing |
//! | `edit` | | an annotation is set and another removed |
//! | `panic` | | a panic with a text |
//! | `panic-any` | | a panic with a payload that is no text |
//! | `panic-in-field` | | a panic while a field of a span is written |
//! | `error` | | an error with a chain of two |
//! | `status` | | a gRPC status of the action's own |
//! | `error-of` | bytes | an error with a text of that length |
//! | `sleep` | milliseconds | a call that takes its time |
//! | `block` | milliseconds | the same on a thread for blocking work |
//! | `hold` | milliseconds | the same on the one thread of all calls, as nobody should |
//! | `print` | bytes | so many bytes on standard output, without a newline |
//! | `eprint` | text | the text on standard error |
//! | `child` | seconds | a child that inherits the standard streams and lives so long; its id becomes an annotation |
//! | `log` | lines | see `chatter` |
//! | `log-threads` | bytes | 100 threads log a line of that length each |

use std::time::Duration;

use anyhow::Context as _;
use e2e::item::{DO, WITH};
use velero_plugin::{Error, Item, Result};

use crate::chatter;

/// Does what `item` orders; the changed item, if the order changes it.
pub(crate) async fn obey(item: &Item) -> Result<Option<Item>> {
    let with = item.annotation(WITH).unwrap_or_default();
    match item.annotation(DO).unwrap_or_default() {
        "" => {}
        "edit" => return Ok(Some(edited(item)?)),
        "panic" => panic!("boom {}", 7),
        "panic-any" => std::panic::panic_any(7),
        "panic-in-field" => chatter::panic_in_field(),
        "error" => {
            return Err(Error::wrap(anyhow::anyhow!("get PVC a/d").context("snapshot")));
        }
        "status" => Err(tonic::Status::failed_precondition("the volume is in use"))?,
        "error-of" => Err(Error::new("ü".repeat(number(with)? / "ü".len())))?,
        "sleep" => tokio::time::sleep(milliseconds(with)?).await,
        "block" => {
            let time = milliseconds(with)?;
            tokio::task::spawn_blocking(move || std::thread::sleep(time)).await?;
        }
        "hold" => std::thread::sleep(milliseconds(with)?),
        "print" => print(number(with)?),
        "eprint" => eprintln!("{with}"),
        "child" => return Ok(Some(with_child(item, with)?)),
        "log" => chatter::say(with)?,
        "log-threads" => chatter::say_from_threads(number(with)?),
        other => Err(Error::new(format!("the specimen knows no order {other:?}")))?,
    }
    Ok(None)
}

fn edited(item: &Item) -> Result<Item> {
    Ok(item.edited(|item| {
        item.set(&["metadata", "annotations", "specimen.example/edited"], "yes")?;
        item.remove(&["metadata", "annotations", DO]);
        Ok(())
    })?)
}

/// The item with the id of a child that outlives the call.
fn with_child(item: &Item, seconds: &str) -> Result<Item> {
    let child = std::process::Command::new("sleep").arg(seconds).spawn()?;
    let id = child.id().to_string();
    Ok(item.edited(|item| item.set(&["metadata", "annotations", "specimen.example/child"], id))?)
}

#[allow(clippy::print_stdout, reason = "the fault that this shows to be harmless")]
fn print(bytes: usize) {
    print!("{}", "x".repeat(bytes));
}

fn milliseconds(text: &str) -> Result<Duration> {
    Ok(Duration::from_millis(text.parse()?))
}

fn number(text: &str) -> Result<usize> {
    text.parse().with_context(|| format!("{text:?} is no number")).map_err(Error::wrap)
}
