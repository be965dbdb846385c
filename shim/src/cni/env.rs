//! The environment that the runtime gives a plugin: `CNI_*`.

use std::ffi::OsString;

use super::error::{Code, Failure};

/// What the runtime wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Give the attachment its addresses.
    Add,
    /// End the attachment.
    Del,
    /// Are the addresses still the attachment's?
    Check,
    /// Release what is not in the runtime's list.
    Gc,
    /// Could an ADD be served?
    Status,
    /// Which versions are spoken?
    Version,
}

impl Verb {
    /// As in `CNI_COMMAND`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verb::Add => "ADD",
            Verb::Del => "DEL",
            Verb::Check => "CHECK",
            Verb::Gc => "GC",
            Verb::Status => "STATUS",
            Verb::Version => "VERSION",
        }
    }

    const ALL: [Verb; 6] =
        [Verb::Add, Verb::Del, Verb::Check, Verb::Gc, Verb::Status, Verb::Version];
}

/// The environment of one invocation. Variables that the verb does not have are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Env {
    /// `CNI_COMMAND`.
    pub verb: Verb,
    /// `CNI_CONTAINERID`.
    pub container_id: String,
    /// `CNI_NETNS`.
    pub netns: String,
    /// `CNI_IFNAME`.
    pub ifname: String,
    /// `CNI_ARGS`, unparsed: DEL must not fail over it.
    pub args: String,
    /// `CNI_NETNS_OVERRIDE`: the plugin's own namespace is meant.
    pub netns_override: bool,
    /// `TRACEPARENT`, if it may stand in a header.
    pub traceparent: Option<String>,
}

/// Why the environment is refused. The specification's code 4, each.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// `CNI_COMMAND` is none of the six.
    #[error("unknown CNI_COMMAND: {0}; use ADD, DEL, CHECK, GC, STATUS or VERSION")]
    UnknownCommand(String),
    /// All variables that the verb needs and that are missing.
    #[error("required env variables [{0}] missing")]
    Missing(String),
    /// A variable is not UTF-8.
    #[error("{0} is not valid UTF-8")]
    NotUnicode(&'static str),
    /// A variable is longer than any honest one.
    #[error("{name} is longer than {limit} bytes")]
    TooLong {
        /// The variable.
        name: &'static str,
        /// The most there may be.
        limit: usize,
    },
    /// The container id has other characters than the specification allows.
    #[error("invalid characters in CNI_CONTAINERID: it matches [a-zA-Z0-9][a-zA-Z0-9_.-]*")]
    ContainerId(String),
    /// The interface name is not one that Linux takes.
    #[error("invalid CNI_IFNAME {0:?}: at most 15 characters, no blank, / or :, not . or ..")]
    Ifname(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let details = match &error {
            Error::ContainerId(id) => id.clone(),
            _ => String::new(),
        };
        Failure::new(Code::Environment, error.to_string()).with_details(details)
    }
}

/// Bytes of a variable. `CNI_ARGS` of Multus stay far below.
const MAX_VARIABLE_BYTES: usize = 64 << 10;
/// Bytes of a container id: runtimes use 64 hexadecimal digits.
const MAX_CONTAINER_ID_BYTES: usize = 253;

impl Env {
    /// Reads the environment through `get`.
    ///
    /// # Errors
    /// What is missing or malformed; `Ok(None)` if there is no `CNI_COMMAND`, which is how a
    /// person calls a plugin.
    pub fn read(get: impl Fn(&str) -> Option<OsString>) -> Result<Option<Env>, Error> {
        let text = |name: &'static str| -> Result<String, Error> {
            let value = get(name).unwrap_or_default();
            if value.len() > MAX_VARIABLE_BYTES {
                return Err(Error::TooLong { name, limit: MAX_VARIABLE_BYTES });
            }
            value.into_string().map_err(|_bytes| Error::NotUnicode(name))
        };
        let command = text("CNI_COMMAND")?;
        if command.is_empty() {
            return Ok(None);
        }
        let verb = Verb::ALL
            .into_iter()
            .find(|verb| verb.as_str() == command)
            .ok_or_else(|| Error::UnknownCommand(command.chars().take(64).collect()))?;
        if verb == Verb::Version {
            return Ok(Some(Env::of(verb)));
        }
        let netns_override = text("CNI_NETNS_OVERRIDE")?;
        let env = Env {
            verb,
            container_id: text("CNI_CONTAINERID")?,
            netns: text("CNI_NETNS")?,
            ifname: text("CNI_IFNAME")?,
            args: text("CNI_ARGS")?,
            netns_override: netns_override == "1" || netns_override.eq_ignore_ascii_case("true"),
            traceparent: traceparent(text("TRACEPARENT").unwrap_or_default()),
        };
        env.require(!text("CNI_PATH")?.is_empty())?;
        env.validate()?;
        Ok(Some(env))
    }

    fn of(verb: Verb) -> Env {
        Env {
            verb,
            container_id: String::new(),
            netns: String::new(),
            ifname: String::new(),
            args: String::new(),
            netns_override: false,
            traceparent: None,
        }
    }

    /// What the verb needs. `CNI_PATH` only of GC: the specification makes it optional elsewhere.
    fn require(&self, path: bool) -> Result<(), Error> {
        let attachment = matches!(self.verb, Verb::Add | Verb::Del | Verb::Check);
        let netns = matches!(self.verb, Verb::Add | Verb::Check);
        let missing: Vec<&str> = [
            ("CNI_CONTAINERID", attachment, !self.container_id.is_empty()),
            ("CNI_NETNS", netns, !self.netns.is_empty()),
            ("CNI_IFNAME", attachment, !self.ifname.is_empty()),
            ("CNI_PATH", self.verb == Verb::Gc, path),
        ]
        .into_iter()
        .filter_map(|(name, needed, there)| (needed && !there).then_some(name))
        .collect();
        if missing.is_empty() { Ok(()) } else { Err(Error::Missing(missing.join(","))) }
    }

    fn validate(&self) -> Result<(), Error> {
        if self.container_id.len() > MAX_CONTAINER_ID_BYTES {
            return Err(Error::TooLong { name: "CNI_CONTAINERID", limit: MAX_CONTAINER_ID_BYTES });
        }
        if !self.container_id.is_empty() && !is_identifier(&self.container_id) {
            return Err(Error::ContainerId(self.container_id.clone()));
        }
        if !self.ifname.is_empty() && !is_ifname(&self.ifname) {
            return Err(Error::Ifname(self.ifname.chars().take(64).collect()));
        }
        Ok(())
    }
}

/// The pattern of container ids and network names: `[a-zA-Z0-9][a-zA-Z0-9_.-]*`.
pub fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

fn is_ifname(text: &str) -> bool {
    text.len() <= 15
        && text != "."
        && text != ".."
        && !text.contains(|c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control())
}

fn traceparent(text: String) -> Option<String> {
    let fits = !text.is_empty() && text.len() <= 256 && text.bytes().all(|b| b.is_ascii_graphic());
    fits.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::{Env, Error, OsString, Verb};

    fn read(variables: &[(&str, &str)]) -> Result<Option<Env>, Error> {
        Env::read(|name| {
            let found = variables.iter().find(|(key, _)| *key == name)?;
            Some(OsString::from(found.1))
        })
    }

    #[test]
    fn missing_variables_are_all_named() {
        let missing = |verb: &str| match read(&[("CNI_COMMAND", verb)]) {
            Err(Error::Missing(names)) => names,
            other => panic!("{verb}: {other:?}"),
        };
        assert_eq!(missing("ADD"), "CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME");
        assert_eq!(missing("CHECK"), "CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME");
        assert_eq!(missing("DEL"), "CNI_CONTAINERID,CNI_IFNAME");
        assert_eq!(missing("GC"), "CNI_PATH");
        assert!(read(&[("CNI_COMMAND", "STATUS")]).is_ok());
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[("CNI_COMMAND", "FOO")]), Err(Error::UnknownCommand("FOO".into())));
    }

    #[test]
    fn ids_and_interface_names_are_judged_as_the_reference_does() {
        let with = |id: &str, ifname: &str| {
            read(&[("CNI_COMMAND", "DEL"), ("CNI_CONTAINERID", id), ("CNI_IFNAME", ifname)])
        };
        for id in ["a", "9", "a_b.c-d"] {
            assert_eq!(with(id, "eth0").unwrap().unwrap().verb, Verb::Del, "{id}");
        }
        for id in ["a/b", "-x", ".x", "a b", "ä"] {
            assert_eq!(with(id, "eth0"), Err(Error::ContainerId(id.into())), "{id}");
        }
        for name in ["0123456789abcdef", "a b", "a/b", "a:b", ".", "..", "a\tb"] {
            assert_eq!(with("a", name), Err(Error::Ifname(name.into())), "{name}");
        }
        assert!(with("a", "0123456789abcde").is_ok());
    }
}
