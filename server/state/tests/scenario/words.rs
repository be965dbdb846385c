//! Command lines as words: a verb, plain words, and `name=value` in order.

use std::fmt::Display;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use quorate_state::types::Stamp;

/// A command line in pieces.
pub(super) struct Words<'a> {
    pub(super) verb: &'a str,
    plain: Vec<&'a str>,
    /// In order, since slots are built from left to right; a plain word has no value.
    pub(super) pairs: Vec<(&'a str, &'a str)>,
}

/// `c{1..3}` anywhere in a line makes it three lines.
pub(super) fn braces(line: &str) -> Vec<String> {
    let expanded = || {
        let (before, rest) = line.split_once('{')?;
        let (span, after) = rest.split_once('}')?;
        let (first, last) = span.split_once("..")?;
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        Some((first..=last).map(|number| format!("{before}{number}{after}")).collect())
    };
    expanded().unwrap_or_else(|| vec![line.to_owned()])
}

impl<'a> Words<'a> {
    pub(super) fn of(line: &'a str) -> Words<'a> {
        let mut words = line.split_whitespace();
        let verb = words.next().unwrap_or_default();
        let mut plain = Vec::new();
        let mut pairs = Vec::new();
        for word in words {
            match word.split_once('=') {
                Some(pair) => pairs.push(pair),
                None => {
                    plain.push(word);
                    pairs.push((word, ""));
                }
            }
        }
        Words { verb, plain, pairs }
    }

    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    pub(super) fn text_or(&self, name: &str, default: &str) -> String {
        self.text(name).unwrap_or(default).to_owned()
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.plain.contains(&word)
    }

    /// The how-manieth plain word.
    pub(super) fn plain(&self, index: usize) -> Result<&'a str, String> {
        self.plain.get(index).copied().ok_or_else(|| format!("{} needs more words", self.verb))
    }

    pub(super) fn stamp(&self) -> Result<Option<Stamp>, String> {
        self.text("stamp").map(stamp).transpose()
    }

    /// Names that are not in `known` are mistakes of the scenario.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), String> {
        let unknown = |(name, _): &&(&str, &str)| {
            !known.contains(name) && !self.plain.iter().take(1).any(|first| first == name)
        };
        match self.pairs.iter().find(unknown) {
            Some((name, _)) => Err(format!("{} of {}", name, self.verb)),
            None => Ok(()),
        }
    }
}

/// `EPOCH:NANOSECONDS`.
pub(super) fn stamp(text: &str) -> Result<Stamp, String> {
    let (epoch, boot_ns) = text.split_once(':').ok_or_else(|| format!("stamp {text}"))?;
    Ok(Stamp { epoch: parse(epoch)?, boot_ns: parse(boot_ns)? })
}

pub(super) fn parse<T: FromStr>(text: &str) -> Result<T, String>
where
    T::Err: Display,
{
    text.parse().map_err(|error| format!("{text}: {error}"))
}

/// A network; host bits are dropped, as the plugin does.
pub(super) fn network(text: &str) -> Result<IpNet, String> {
    Ok(parse::<IpNet>(text)?.trunc())
}

/// Networks or bare addresses, with commas.
pub(super) fn networks(text: &str) -> Result<Vec<IpNet>, String> {
    text.split(',')
        .map(|one| if one.contains('/') { network(one) } else { Ok(parse::<IpAddr>(one)?.into()) })
        .collect()
}

/// `FIRST-LAST`, or one address.
pub(super) fn span(text: &str) -> Result<(IpAddr, IpAddr), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Ok((parse(first)?, parse(last)?))
}

/// `250ms`, `31s` or `10m`, in milliseconds.
pub(super) fn duration_ms(text: &str) -> Result<u64, String> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = parse(&text[..text.len() - unit.len()])?;
    match unit {
        "ms" => Ok(number),
        "s" => Ok(number * 1_000),
        "m" => Ok(number * 60_000),
        "h" => Ok(number * 3_600_000),
        _ => Err(format!("duration {text}")),
    }
}
