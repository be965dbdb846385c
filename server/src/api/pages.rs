//! Lists, a page at a time.

use quorate_state::types::PoolKey;
use tonic::Status;

use super::status;
use crate::codec::Malformed;

/// Most items of a page, and how many if the caller does not say.
const PAGE: usize = 1000;

/// How many items a page holds.
pub(super) fn size(asked: u32) -> usize {
    match usize::try_from(asked) {
        Ok(0) | Err(_) => PAGE,
        Ok(asked) => asked.min(PAGE),
    }
}

/// One page of what comes after the token, and the token of the next page if there is one.
pub(super) fn cut<T>(
    items: impl Iterator<Item = T>,
    size: usize,
    token: impl Fn(&T) -> String,
) -> (Vec<T>, String) {
    let mut page: Vec<T> = items.take(size + 1).collect();
    if page.len() <= size {
        return (page, String::new());
    }
    page.truncate(size);
    let next = page.last().map(token).unwrap_or_default();
    (page, next)
}

/// A token is made of names, which hold no white space.
pub(super) fn join(parts: &[&str]) -> String {
    parts.join(" ")
}

/// The names of a token.
pub(super) fn split<const N: usize>(token: &str) -> Result<Option<[&str; N]>, Status> {
    if token.is_empty() {
        return Ok(None);
    }
    let parts: Vec<&str> = token.split(' ').collect();
    let parts = <[&str; N]>::try_from(parts).map_err(|_parts| bad_token(token))?;
    Ok(Some(parts))
}

/// A token that this service did not make.
pub(super) fn bad_token(token: &str) -> Status {
    let problem = "is not a token of this list: start without one";
    status::malformed(&Malformed::new("page_token", token, problem))
}

/// The pool that a token stands for.
pub(super) fn pool(token: &str) -> Result<Option<PoolKey>, Status> {
    let key = split::<2>(token)?;
    Ok(key.map(|[space, name]| PoolKey { space: space.to_owned(), name: name.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_join_to_the_whole_list() {
        let all: Vec<u32> = (0..25).collect();
        let (mut seen, mut after) = (Vec::new(), None::<u32>);
        loop {
            let rest = all.iter().copied().filter(|i| after.is_none_or(|after| *i > after));
            let (page, next) = cut(rest, 10, ToString::to_string);
            seen.extend(page);
            if next.is_empty() {
                break;
            }
            after = Some(next.parse().unwrap());
        }
        assert_eq!(seen, all);
    }

    #[test]
    fn sizes_are_bounded_and_tokens_are_checked() {
        assert_eq!((size(0), size(7), size(u32::MAX)), (PAGE, 7, PAGE));
        assert_eq!(pool("").unwrap(), None);
        assert_eq!(pool("a b").unwrap().unwrap().name, "b");
        assert!(pool("a b c").is_err());
    }
}
