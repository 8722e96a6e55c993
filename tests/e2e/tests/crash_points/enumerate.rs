//! Dry runs, and then every case that they lead to.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::fault::{After, Fault, Kind, Point};
use crate::world::World;

/// How many cases are run side by side by all tests: they mostly wait.
static TURNS: Semaphore = Semaphore::const_new(20);
/// The same for cases in which a request is not answered: they wait for the plugin's own limit, and need no processor meanwhile.
static LONG_TURNS: Semaphore = Semaphore::const_new(40);
/// How often a case is run until its request comes. A repetition of a request may be by the clock, and not come again.
const TRIES: usize = 3;

/// Runs `flow` without a fault, then with each fault at each of its requests, and fails with all that did not hold.
pub(crate) async fn all<F, R>(what: &'static str, afters: &'static [After], flow: F)
where
    F: Fn(Option<Fault>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<World>> + Send + 'static,
{
    each(what, |point| Kind::all(point, afters), flow).await;
}

/// The same with the faults that `kinds` gives to each request.
pub(crate) async fn each<F, R>(what: &'static str, kinds: impl Fn(&Point) -> Vec<Kind>, flow: F)
where
    F: Fn(Option<Fault>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<World>> + Send + 'static,
{
    let began = Instant::now();
    let flow = Arc::new(flow);
    let points = requests(&*flow).await;
    let cases = points.iter().flat_map(|point| {
        let kinds = kinds(point).into_iter();
        kinds.map(|kind| Fault { point: point.clone(), kind })
    });
    let mut running = JoinSet::new();
    for fault in cases {
        let flow = Arc::clone(&flow);
        running.spawn(async move {
            let turns = if fault.kind == Kind::Unanswered { &LONG_TURNS } else { &TURNS };
            let _turn = turns.acquire().await;
            let told = fault.to_string();
            case(&*flow, fault).await.with_context(|| told)
        });
    }
    let count = running.len();
    let (mut failures, mut missed): (Vec<String>, usize) = (Vec::new(), 0);
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => missed += 1,
            Ok(Err(error)) => failures.push(format!("{error:#}")),
            Err(panic) => failures.push(panic.to_string()),
        }
    }
    failures.sort();
    let (requests, seconds) = (points.len(), began.elapsed().as_secs_f64());
    eprintln!("{what}: {requests} requests, {count} cases, {missed} of them not met again, {seconds:.1} s");
    assert!(failures.is_empty(), "{} of {count} cases failed:\n{}", failures.len(), failures.join("\n\n"));
}

/// The requests that both of two dry runs make.
async fn requests<R: Future<Output = Result<World>>>(flow: &impl Fn(Option<Fault>) -> R) -> Vec<Point> {
    let first = flow(None).await.expect("the flow without a fault").points();
    let second = flow(None).await.expect("the flow without a fault").points();
    let both: Vec<Point> = first.into_iter().filter(|point| second.contains(point)).collect();
    assert!(!both.is_empty(), "the dry run made no request");
    both
}

/// Runs one case; whether its request came.
async fn case<R: Future<Output = Result<World>>>(
    flow: &impl Fn(Option<Fault>) -> R,
    fault: Fault,
) -> Result<bool> {
    for _ in 0..TRIES {
        if flow(Some(fault.clone())).await?.was_hit() {
            return Ok(true);
        }
    }
    anyhow::ensure!(!fault.point.always_comes(), "the request of the dry run did not come again");
    Ok(false)
}
