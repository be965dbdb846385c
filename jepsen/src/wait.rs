//! Waiting for something to become true: by asking often, until a deadline.

use std::fmt::Display;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Asks until the answer is `Some`.
///
/// # Errors
/// `within` passed; says what was waited for, and the last reason why it was not so.
pub async fn until<T, Why: Display>(
    what: &str,
    within: Duration,
    mut ask: impl AsyncFnMut() -> Result<T, Why>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(why) if start.elapsed() >= within => {
                bail!("waited {within:?} in vain for {what}: {why:#}")
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_reason_is_told() {
        let mut left = 3;
        let answer = until("zero", Duration::from_secs(5), async || {
            left -= 1;
            if left == 0 { Ok("zero") } else { Err("not yet") }
        });
        assert_eq!(answer.await.unwrap(), "zero");
        let error = until::<(), _>("rain", Duration::ZERO, async || Err("sun")).await.unwrap_err();
        assert_eq!(error.to_string(), "waited 0ns in vain for rain: sun");
    }
}
