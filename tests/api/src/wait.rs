//! Waiting for a state of the world, with a limit and the last sight of it in the error.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// What one look at the world found.
pub enum Look<T> {
    /// There it is.
    Found(T),
    /// Not yet; the text says what is there instead.
    NotYet(String),
}

/// Looks every 100 ms until the state is found.
///
/// # Errors
/// When a look fails, or `limit` passes: then with what the last look saw.
pub async fn until<T, F>(what: &str, limit: Duration, mut look: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<Look<T>>>,
{
    let began = Instant::now();
    loop {
        match look().await? {
            Look::Found(found) => return Ok(found),
            Look::NotYet(sight) if began.elapsed() > limit => {
                bail!("{what}: not after {} s, last seen: {sight}", limit.as_secs());
            }
            Look::NotYet(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}
