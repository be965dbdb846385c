//! Lists, page by page to the end.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Error, Result};

/// Items asked for at once.
pub(super) const PAGE_SIZE: u32 = 1_000;

/// Calls `page` with the token of the next page and what is left of the budget, until there is
/// none.
pub(super) async fn all<T, F>(
    budget: Duration,
    mut page: impl FnMut(String, Duration) -> F,
) -> Result<Vec<T>>
where
    F: Future<Output = Result<(Vec<T>, String)>>,
{
    let deadline = Instant::now() + budget;
    let mut items = Vec::new();
    let mut token = String::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let (found, next) = page(token.clone(), left).await?;
        items.extend(found);
        if next.is_empty() {
            return Ok(items);
        }
        if next == token {
            return Err(Error::PageLoop);
        }
        token = next;
    }
}
