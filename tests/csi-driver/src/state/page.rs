//! Lists in pages: a token is the last id of the page before, so pages stay right while objects come and go.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::Refusal;

/// Which part of a list is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageRequest<'a> {
    /// At most so many entries; zero is no bound.
    pub max_entries: i32,
    /// What the page before ended with; empty for the first page.
    pub starting_token: &'a str,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The entries in the order of their creation.
    pub entries: Vec<T>,
    /// The token of the next page, empty when this is the last.
    pub next_token: String,
}

/// The page of the objects in `all` that `wanted` lets through. `prefix` is how their ids begin.
pub(super) fn page<T: Clone>(
    all: &BTreeMap<String, T>,
    prefix: &str,
    request: PageRequest<'_>,
    wanted: impl Fn(&T) -> bool,
) -> Result<Page<T>, Refusal> {
    let token = request.starting_token;
    if !token.is_empty() && !token.starts_with(prefix) {
        return Err(Refusal::Token { token: token.to_owned() });
    }
    let limit = match usize::try_from(request.max_entries) {
        Ok(0) => usize::MAX,
        Ok(limit) => limit,
        Err(_) => {
            let reason = "a number of entries is not negative".to_owned();
            return Err(Refusal::Invalid { field: "max_entries", reason });
        }
    };
    let start = if token.is_empty() { Bound::Unbounded } else { Bound::Excluded(token) };
    let mut rest =
        all.range::<str, _>((start, Bound::Unbounded)).filter(|(_, object)| wanted(object)).peekable();
    let mut entries = Vec::new();
    let mut last = "";
    while entries.len() < limit
        && let Some((id, object)) = rest.next()
    {
        entries.push(object.clone());
        last = id;
    }
    let next_token = if rest.peek().is_some() { last.to_owned() } else { String::new() };
    Ok(Page { entries, next_token })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(ids: &[&str]) -> BTreeMap<String, String> {
        ids.iter().map(|id| ((*id).to_owned(), (*id).to_owned())).collect()
    }

    fn list(all: &BTreeMap<String, String>, max: i32, token: &str) -> Result<(Vec<String>, String), Refusal> {
        let request = PageRequest { max_entries: max, starting_token: token };
        page(all, "x-", request, |_| true).map(|page| (page.entries, page.next_token))
    }

    #[test]
    fn pages_cover_the_list_once() {
        let objects = all(&["x-1", "x-2", "x-3", "x-4", "x-5"]);
        for (max, token, entries, next) in [
            (0, "", 5, ""),
            (5, "", 5, ""),
            (6, "", 5, ""),
            (2, "", 2, "x-2"),
            (2, "x-2", 2, "x-4"),
            (2, "x-4", 1, ""),
            (0, "x-2", 3, ""),
            (0, "x-5", 0, ""),
        ] {
            let (found, token) = list(&objects, max, token).expect("page");
            assert_eq!((found.len(), &*token), (entries, next), "{max}");
        }
    }

    #[test]
    fn a_token_outlives_the_object_that_it_names() {
        let mut objects = all(&["x-1", "x-2", "x-3"]);
        let (_, token) = list(&objects, 2, "").expect("page");
        objects.remove("x-2");
        assert_eq!(list(&objects, 0, &token).expect("page").0, ["x-3"]);
    }

    #[test]
    fn foreign_tokens_and_negative_sizes_are_refused() {
        let objects = all(&["x-1"]);
        assert_eq!(list(&objects, 0, "invalid-token").expect_err("token").code(), tonic::Code::Aborted);
        assert_eq!(list(&objects, -1, "").expect_err("size").code(), tonic::Code::InvalidArgument);
    }

    #[test]
    fn filtered_entries_do_not_fill_a_page() {
        let objects = all(&["x-1", "x-2", "x-3"]);
        let request = PageRequest { max_entries: 1, starting_token: "" };
        let page = page(&objects, "x-", request, |id| id == "x-3").expect("page");
        assert_eq!(page, Page { entries: vec!["x-3".to_owned()], next_token: String::new() });
    }
}
