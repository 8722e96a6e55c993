//! Waiting between attempts: exponential, bounded, and spread, so that many plugins don't come back at once.

use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use std::ops::ControlFlow;
use std::time::Duration;

/// Why a back-off was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBackoff {
    /// A first wait of zero would be a busy loop.
    #[error("the first wait must not be zero")]
    ZeroStart,
    /// The longest wait is shorter than the first.
    #[error("the longest wait must not be shorter than the first")]
    CapBelowStart,
}

/// How long to wait before each further attempt, and for how long in all.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    start: Duration,
    cap: Duration,
    limit: Duration,
}

impl Backoff {
    /// Waits of `start`, twice that, and so on up to `cap` each, until `limit` has been waited in all.
    ///
    /// # Errors
    ///
    /// When `start` is zero or above `cap`.
    pub fn new(start: Duration, cap: Duration, limit: Duration) -> Result<Self, InvalidBackoff> {
        match () {
            () if start.is_zero() => Err(InvalidBackoff::ZeroStart),
            () if cap < start => Err(InvalidBackoff::CapBelowStart),
            () => Ok(Self { start, cap, limit }),
        }
    }

    /// The waits, each spread over the upper half of its length.
    pub fn waits(self) -> impl Iterator<Item = Duration> {
        let mut next = self.start;
        let mut left = self.limit;
        std::iter::from_fn(move || {
            let wait = spread(next).min(left);
            next = next.saturating_mul(2).min(self.cap);
            left = left.saturating_sub(wait);
            (!wait.is_zero()).then_some(wait)
        })
    }
}

impl Default for Backoff {
    /// 100 ms to 5 s, a minute in all.
    fn default() -> Self {
        Self {
            start: Duration::from_millis(100),
            cap: Duration::from_secs(5),
            limit: Duration::from_secs(60),
        }
    }
}

/// Calls `attempt` until it succeeds, says that its error is final, or the waits of `backoff` are used up.
///
/// `attempt` returns [`ControlFlow::Break`] with what is final, good or bad, and [`ControlFlow::Continue`] with an
/// error that may pass and, if the other side named one, the least time to wait.
///
/// # Errors
///
/// The final error, or the last one when the waits are used up.
pub async fn retry<T, E, F>(backoff: Backoff, mut attempt: impl FnMut() -> F) -> Result<T, E>
where
    F: Future<Output = ControlFlow<Result<T, E>, (E, Option<Duration>)>>,
{
    let mut waits = backoff.waits();
    loop {
        match attempt().await {
            ControlFlow::Break(result) => return result,
            ControlFlow::Continue((error, at_least)) => match waits.next() {
                Some(wait) => tokio::time::sleep(wait.max(at_least.unwrap_or_default())).await,
                None => return Err(error),
            },
        }
    }
}

/// A random length between half of `wait` and all of it.
fn spread(wait: Duration) -> Duration {
    // A fresh hasher's keys are random: enough to spread by, without a dependency.
    let random = u32::try_from(RandomState::new().hash_one(()) >> 32).unwrap_or(u32::MAX);
    wait.mul_f64(0.5 + f64::from(random) / f64::from(u32::MAX) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn senseless_backoffs_are_refused() {
        let (zero, second) = (Duration::ZERO, Duration::from_secs(1));
        assert_eq!(Backoff::new(zero, second, second).unwrap_err(), InvalidBackoff::ZeroStart);
        assert_eq!(Backoff::new(second, zero, second).unwrap_err(), InvalidBackoff::CapBelowStart);
    }

    #[test]
    fn waits_grow_to_the_cap_and_end_at_the_limit() {
        let second = Duration::from_secs(1);
        let waits: Vec<_> = Backoff::new(second, second * 4, second * 60).unwrap().waits().collect();
        assert!(waits[0] >= second / 2 && waits[0] <= second);
        assert!(waits.iter().all(|wait| *wait <= second * 4));
        assert_eq!(waits.iter().sum::<Duration>(), second * 60);
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_pass_is_tried_again_and_what_is_final_is_not() {
        let calls = Cell::new(0);
        let result = retry(Backoff::default(), || async {
            calls.set(calls.get() + 1);
            if calls.get() < 3 { ControlFlow::Continue(("busy", None)) } else { ControlFlow::Break(Ok(7)) }
        });
        assert_eq!(result.await, Ok(7));
        let calls = Cell::new(0);
        let result: Result<(), _> = retry(Backoff::default(), || async {
            calls.set(calls.get() + 1);
            ControlFlow::Break(Err("forbidden"))
        })
        .await;
        assert_eq!((result, calls.get()), (Err("forbidden"), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_error_comes_out_when_the_waits_are_used_up() {
        let result: Result<(), _> = retry(Backoff::default(), || async {
            ControlFlow::Continue(("busy", Some(Duration::from_secs(9))))
        })
        .await;
        assert_eq!(result, Err("busy"));
    }
}
