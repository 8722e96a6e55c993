//! What a process remembers of the waits of its restore. Velero restores one claim after the other and does not say, when
//! it asks, which claim it asks for; nor that it has given a wait up.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a claim waits for a driver that did not get an earlier one ready in time. All snapshots are imported side by
/// side, so what is not ready by then is hardly worth a wait of its own, and a restore of many claims must not wait
/// minutes for each of them while the driver is down.
const AFTER_A_TIMEOUT: Duration = Duration::from_secs(20);

/// How often a content that stays unready is touched. A sidecar on a busy machine loses sight of it, and would look again after a
/// quarter of an hour.
const TOUCH: Duration = Duration::from_secs(20);

/// What a claim waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Awaited {
    /// A restored snapshot that Velero does not know of: its namespace and name.
    Made(String, String),
    /// One that Velero was to restore: its name in the archive.
    Archived(String),
}

/// The waits.
#[derive(Debug, Default)]
pub(super) struct Waits(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The wait that has not ended, and the driver that it is for.
    current: Option<(Awaited, String)>,
    /// Drivers that did not get ready in time.
    late: HashSet<String>,
    /// The last reason for a wait.
    told: String,
    /// When the wait began, or what it waits for was touched last.
    touched: Option<Instant>,
}

impl Waits {
    /// The next claim comes. A wait that was not seen to end was ended by its time-out.
    pub(super) fn next_claim(&self) {
        let mut state = self.state();
        if let Some((_, driver)) = state.current.take() {
            state.late.insert(driver);
        }
    }

    /// The claim waits for `awaited` of `driver`; how long, where `patience` is the longest.
    pub(super) fn begin(&self, awaited: Awaited, driver: &str, patience: Duration) -> Duration {
        let mut state = self.state();
        state.current = Some((awaited, driver.to_owned()));
        state.touched = Some(Instant::now());
        if state.late.contains(driver) { patience.min(AFTER_A_TIMEOUT) } else { patience }
    }

    /// What the claim waits for.
    pub(super) fn awaited(&self) -> Option<Awaited> {
        self.state().current.as_ref().map(|(awaited, _)| awaited.clone())
    }

    /// The wait is over, for better or worse.
    pub(super) fn end(&self) {
        self.state().current = None;
    }

    /// Whether what the claim waits for is to be touched now.
    pub(super) fn is_touch_due(&self, now: Instant) -> bool {
        let mut state = self.state();
        let is_due = state.touched.is_some_and(|touched| now.duration_since(touched) >= TOUCH);
        if is_due {
            state.touched = Some(now);
        }
        is_due
    }

    /// Tells why the claim waits, once for each reason and not once a second: of a wait that it gives up Velero says only
    /// that it did.
    pub(super) fn tell(&self, why: String) {
        let mut state = self.state();
        if state.told != why {
            tracing::info!("waiting: {why}");
            state.told = why;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_mins(5);

    fn begin(waits: &Waits, driver: &str) -> u64 {
        waits.next_claim();
        waits.begin(Awaited::Archived("s".to_owned()), driver, PATIENCE).as_secs()
    }

    #[test]
    fn a_driver_that_was_given_up_on_gets_little_time_for_later_claims_and_others_all_of_it() {
        let waits = Waits::default();
        assert_eq!(begin(&waits, "good"), 300);
        waits.end();
        assert_eq!(begin(&waits, "good"), 300);
        waits.end();
        assert_eq!(begin(&waits, "down"), 300);
        assert_eq!(begin(&waits, "down"), 20);
        assert_eq!(begin(&waits, "good"), 300);
        assert_eq!(
            waits.begin(Awaited::Archived("s".to_owned()), "down", Duration::from_secs(5)).as_secs(),
            5
        );
    }

    #[test]
    fn what_is_not_ready_after_a_while_is_touched_now_and_then() {
        let waits = Waits::default();
        assert!(!waits.is_touch_due(Instant::now()), "nothing waits");
        begin(&waits, "d");
        let began = Instant::now();
        let touches: Vec<u64> =
            (0..50).filter(|second| waits.is_touch_due(began + Duration::from_secs(*second))).collect();
        assert_eq!(touches, [20, 40]);
    }

    #[test]
    fn what_is_awaited_is_forgotten_with_the_end_and_with_the_next_claim() {
        let waits = Waits::default();
        assert_eq!(waits.awaited(), None);
        begin(&waits, "d");
        assert_eq!(waits.awaited(), Some(Awaited::Archived("s".to_owned())));
        waits.end();
        assert_eq!(waits.awaited(), None);
        begin(&waits, "d");
        waits.next_claim();
        assert_eq!(waits.awaited(), None);
    }
}
