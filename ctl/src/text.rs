//! Text from elsewhere, for a terminal.

/// The same text with control characters escaped: names of pods and notes come from others, and
/// must not move the cursor or change the title of an operator's window.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            out.extend(c.escape_debug());
        } else {
            out.push(c);
        }
    }
    out
}

/// A dash where there is nothing, so that columns stay.
pub(crate) fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { plain(text) }
}

/// Milliseconds as people write them, in the largest unit that is whole.
pub(crate) fn duration_ms(ms: u64) -> String {
    match ms {
        0 => "0s".to_owned(),
        ms if ms % 3_600_000 == 0 => format!("{}h", ms / 3_600_000),
        ms if ms % 60_000 == 0 => format!("{}m", ms / 60_000),
        ms if ms % 1_000 == 0 => format!("{}s", ms / 1_000),
        ms => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::{duration_ms, plain};

    #[test]
    fn control_characters_are_shown_not_obeyed() {
        assert_eq!(plain("a\u{1b}]0;b\u{7}\nc é"), "a\\u{1b}]0;b\\u{7}\\nc é");
    }

    #[test]
    fn durations_read_back() {
        for text in ["0s", "1500ms", "30s", "90s", "2m", "36h"] {
            let ms = crate::cli::parse::duration(text).unwrap().as_millis();
            assert_eq!(duration_ms(u64::try_from(ms).unwrap()), text);
        }
    }
}
