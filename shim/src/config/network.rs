//! What every verb needs of the configuration. Ranges are left unread: a DEL must not fail over
//! them, and may come with an `ipam` section that holds nothing but its type.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::error::Error;
use super::fields::Fields;
use crate::cni::env::is_identifier;
use crate::cni::{Verb, Version, output};

/// Bytes of a network name, as of any name of Kubernetes.
const MAX_NAME_BYTES: usize = 253;

/// The configuration of one invocation.
#[derive(Clone, Debug)]
pub struct Network {
    /// `cniVersion`.
    pub version: Version,
    /// `name`.
    pub name: String,
    /// `ipam.nodeFile`.
    pub node_file: Option<PathBuf>,
    /// `ipam.stateDir`: where to spool when the node file cannot be read.
    pub fallback_state_dir: Option<PathBuf>,
    /// `ipam.addTimeoutMs`.
    pub add_timeout: Option<Duration>,
    /// `ipam.delTimeoutMs`.
    pub del_timeout: Option<Duration>,
    /// `ipam.log_file`.
    pub log_file: Option<PathBuf>,
    /// `ipam.log_level`.
    pub log_level: Option<String>,
    /// What is left of `ipam`: see [`super::Addressing`].
    pub ipam: Fields,
    /// What is left of the top level: `args`, `runtimeConfig`, `prevResult`, lists of GC, and all
    /// that is the main plugin's.
    pub top: Fields,
    /// Told once the log is open.
    pub warnings: Vec<String>,
}

impl Network {
    /// Parses stdin for a verb.
    ///
    /// # Errors
    /// If it is not JSON, has no valid name, or a version that is not ours or lacks the verb.
    pub fn parse(verb: Verb, stdin: &[u8]) -> Result<Network, Error> {
        let value: Value = serde_json::from_slice(stdin).map_err(Error::NotJson)?;
        let Value::Object(_) = value else {
            return Err(undecodable("the network configuration", "an object", &value));
        };
        let mut top = Fields::of("", value)?;
        let version = version(&mut top)?;
        output::speak(version);
        allowed(verb, version)?;
        let name = name(&mut top)?;
        let mut warnings = Vec::new();
        let mut ipam = ipam(verb, &mut top, &mut warnings)?;
        let path = |fields: &mut Fields, key| Ok(fields.string(key)?.map(PathBuf::from));
        Ok(Network {
            version,
            name,
            node_file: path(&mut ipam, "nodeFile")?,
            fallback_state_dir: path(&mut ipam, "stateDir")?,
            add_timeout: timeout(&mut ipam, "addTimeoutMs")?,
            del_timeout: timeout(&mut ipam, "delTimeoutMs")?,
            log_file: path(&mut ipam, "log_file")?,
            log_level: ipam.string("log_level")?,
            ipam,
            top,
            warnings,
        })
    }
}

fn version(top: &mut Fields) -> Result<Version, Error> {
    let text = match top.take("cniVersion") {
        None => String::new(),
        Some(Value::String(text)) => text,
        Some(other) => return Err(undecodable("cniVersion", "a string", &other)),
    };
    Version::parse(&text).ok_or_else(|| Error::Version(super::error::cut(&text)))
}

fn undecodable(field: &'static str, expected: &'static str, value: &Value) -> Error {
    Error::Undecodable { field, expected, value: super::error::cut(&value.to_string()) }
}

fn allowed(verb: Verb, version: Version) -> Result<(), Error> {
    let needed = match verb {
        Verb::Add | Verb::Del | Verb::Version => Version::V0_1_0,
        Verb::Check => Version::V0_4_0,
        Verb::Gc | Verb::Status => Version::V1_1_0,
    };
    if version < needed { Err(Error::VerbTooNew { verb, version, needed }) } else { Ok(()) }
}

fn name(top: &mut Fields) -> Result<String, Error> {
    let remedy = "give the network a name of letters, digits, '_', '.' and '-'";
    let name = top.string("name")?;
    let name = name.ok_or(Error::Missing { field: "name".to_owned(), remedy })?;
    if !is_identifier(&name) {
        return Err(Error::invalid("name", name, format!("invalid network name: {remedy}")));
    }
    if name.len() > MAX_NAME_BYTES {
        let problem = format!("longer than {MAX_NAME_BYTES} bytes: shorten it");
        return Err(Error::invalid("name", name, problem));
    }
    Ok(name)
}

/// The `ipam` section. Only ADD and CHECK cannot do without; elsewhere a broken one is as good as a
/// stripped one.
fn ipam(verb: Verb, top: &mut Fields, warnings: &mut Vec<String>) -> Result<Fields, Error> {
    let needed = matches!(verb, Verb::Add | Verb::Check);
    match top.take("ipam") {
        None if needed => Err(Error::Missing {
            field: "ipam".to_owned(),
            remedy: "add \"ipam\": {\"type\": \"quorate\", \"range\": \"10.0.0.0/24\"}",
        }),
        None => Ok(Fields::default()),
        Some(value) => match Fields::of("ipam", value) {
            Err(error) if !needed => {
                warnings.push(error.to_string());
                Ok(Fields::default())
            }
            other => other,
        },
    }
}

/// What a budget may be: kubelet gives a sandbox 2 minutes.
const TIMEOUTS_MS: std::ops::RangeInclusive<u64> = 100..=120_000;

/// A time in milliseconds within [`TIMEOUTS_MS`].
///
/// # Errors
/// If it is outside, or no number.
pub(crate) fn timeout(fields: &mut Fields, key: &str) -> Result<Option<Duration>, Error> {
    let Some(ms) = fields.number(key)? else { return Ok(None) };
    if TIMEOUTS_MS.contains(&ms) {
        return Ok(Some(Duration::from_millis(ms)));
    }
    let (least, most) = (TIMEOUTS_MS.start(), TIMEOUTS_MS.end());
    let problem = format!("set {least} to {most} milliseconds");
    Err(Error::invalid(fields.name(key), ms.to_string(), problem))
}
