//! Waiting between attempts: exponential, bounded, and spread, so that many plugins don't come back at once.

use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use std::ops::ControlFlow;
use std::time::Duration;

use tokio::time::Instant;

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
    /// Waits of `start`, twice that, and so on up to `cap` each, for `limit` in all.
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

/// Calls `attempt` until it succeeds, says that its error is final, or the time of `backoff` is used up, that of the
/// attempts included.
///
/// `attempt` is told how long is left, zero where only one attempt is wanted, and keeps itself to that. It
/// returns [`ControlFlow::Break`] with what is final, good or bad, and [`ControlFlow::Continue`] with an error that may
/// pass and, if the other side named one, the least time to wait. A wait that would end too late is not begun.
///
/// # Errors
///
/// The final error, or the last one when the time is used up.
pub async fn retry<T, E, F>(backoff: Backoff, mut attempt: impl FnMut(Duration) -> F) -> Result<T, E>
where
    F: Future<Output = ControlFlow<Result<T, E>, (E, Option<Duration>)>>,
{
    let end = Instant::now() + backoff.limit;
    let left = || end.saturating_duration_since(Instant::now());
    let mut next = backoff.start;
    loop {
        match attempt(left()).await {
            ControlFlow::Break(result) => return result,
            ControlFlow::Continue((error, at_least)) => {
                let wait = spread(next).max(at_least.unwrap_or_default());
                if wait >= left() {
                    return Err(error);
                }
                tokio::time::sleep(wait).await;
                next = next.saturating_mul(2).min(backoff.cap);
            }
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
    fn a_wait_is_spread_over_the_upper_half_of_its_length() {
        let second = Duration::from_secs(1);
        for _ in 0..100 {
            let wait = spread(second);
            assert!(wait >= second / 2 && wait <= second, "{wait:?}");
        }
    }

    fn backoff(limit: u64) -> Backoff {
        Backoff::new(Duration::from_secs(1), Duration::from_secs(4), Duration::from_secs(limit)).unwrap()
    }

    /// The error after `retry` gave up, how long that took, and how many attempts it was.
    async fn given_up(limit: u64, takes: u64, at_least: Option<u64>) -> (Duration, u32) {
        let (began, calls) = (Instant::now(), Cell::new(0));
        let result: Result<(), _> = retry(backoff(limit), |_| async {
            calls.set(calls.get() + 1);
            tokio::time::sleep(Duration::from_secs(takes)).await;
            ControlFlow::Continue(("busy", at_least.map(Duration::from_secs)))
        })
        .await;
        assert_eq!(result, Err("busy"));
        (began.elapsed(), calls.get())
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_pass_is_tried_again_and_what_is_final_is_not() {
        let calls = Cell::new(0);
        let result = retry(Backoff::default(), |_| async {
            calls.set(calls.get() + 1);
            if calls.get() < 3 { ControlFlow::Continue(("busy", None)) } else { ControlFlow::Break(Ok(7)) }
        });
        assert_eq!(result.await, Ok(7));
        let calls = Cell::new(0);
        let result: Result<(), _> = retry(Backoff::default(), |_| async {
            calls.set(calls.get() + 1);
            ControlFlow::Break(Err("forbidden"))
        })
        .await;
        assert_eq!((result, calls.get()), (Err("forbidden"), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_the_attempts_counts() {
        let (took, calls) = given_up(60, 0, None).await;
        assert!(took <= Duration::from_secs(60) && calls > 10, "{took:?} {calls}");
        let (took, calls) = given_up(60, 25, None).await;
        assert!(took <= Duration::from_secs(80) && calls == 3, "{took:?} {calls}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_other_sides_wait_is_kept_but_never_beyond_the_end() {
        let (took, calls) = given_up(60, 0, Some(25)).await;
        assert!(took >= Duration::from_secs(50) && calls == 3, "{took:?} {calls}");
        let (took, calls) = given_up(60, 0, Some(3600)).await;
        assert!(took < Duration::from_secs(1) && calls == 1, "{took:?} {calls}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_is_told_how_long_is_left() {
        let left = Cell::new(Duration::MAX);
        let _: Result<(), _> = retry(backoff(10), |now| {
            assert!(now < left.get() && now <= Duration::from_secs(10));
            left.set(now);
            async { ControlFlow::Continue(("busy", None)) }
        })
        .await;
        let once: Result<(), _> = retry(backoff(0), |now| async move {
            assert!(now.is_zero());
            ControlFlow::Continue(("busy", None))
        })
        .await;
        assert_eq!(once, Err("busy"));
    }
}
