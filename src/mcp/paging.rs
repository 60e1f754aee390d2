//! Pages of lists that are ordered by a key: a cursor names the last key seen, so that no write between two pages loses
//! or repeats an entry.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::listing::BadCursor;

/// How many entries a page holds.
const PAGE: usize = 200;

/// The page behind this cursor, and the cursor of the next one. `list` says which list the cursor belongs to; `items` are
/// in the order of their keys.
///
/// # Errors
/// [`BadCursor`].
pub(super) fn page<'a, T>(
    list: &str,
    items: &'a [T],
    key: impl Fn(&T) -> &str,
    cursor: Option<&str>,
) -> Result<(&'a [T], Option<String>), BadCursor> {
    let start = match cursor {
        None | Some("") => 0,
        Some(cursor) => {
            let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| BadCursor)?;
            let text = std::str::from_utf8(&bytes).map_err(|_| BadCursor)?;
            let last = text.strip_prefix(list).and_then(|rest| rest.strip_prefix(':')).ok_or(BadCursor)?;
            items.partition_point(|item| key(item) <= last)
        }
    };
    let end = items.len().min(start + PAGE);
    let next = (end < items.len()).then(|| URL_SAFE_NO_PAD.encode(format!("{list}:{}", key(&items[end - 1]))));
    Ok((&items[start..end], next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(numbers: impl Iterator<Item = usize>) -> Vec<String> {
        numbers.map(|number| format!("n{number:04}")).collect()
    }

    #[test]
    fn a_walk_loses_and_repeats_nothing_that_was_there_all_the_time() {
        let before = names((0..900).step_by(2));
        let (first, cursor) = page("prompts", &before, String::as_str, None).unwrap();
        assert_eq!(first.len(), PAGE);
        // The last one seen is deleted, and others come in before and behind it.
        let after: Vec<String> = names(0..900).into_iter().filter(|name| name != first.last().unwrap()).collect();
        let (mut seen, mut cursor) = (first.to_vec(), cursor);
        while let Some(at) = cursor {
            let (next, further) = page("prompts", &after, String::as_str, Some(&at)).unwrap();
            seen.extend_from_slice(next);
            cursor = further;
        }
        assert!(seen.is_sorted_by(|a, b| a < b));
        assert!(before.iter().all(|name| seen.contains(name)));
    }

    #[test]
    fn a_cursor_of_another_list_is_refused() {
        let all = names(0..300);
        let (_, cursor) = page("prompts", &all, String::as_str, Some("")).unwrap();
        assert!(page("resources", &all, String::as_str, cursor.as_deref()).is_err());
        for bad in ["x", "*", &URL_SAFE_NO_PAD.encode("prompts")] {
            assert!(page("prompts", &all, String::as_str, Some(bad)).is_err(), "{bad}");
        }
        assert_eq!(page("prompts", &all[..200], String::as_str, None).unwrap().1, None);
    }
}
