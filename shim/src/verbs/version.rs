//! VERSION: which versions are spoken.

use serde_json::{Value, json};

use crate::cni::Version;

/// The answer; it echoes the version of what is on stdin, if there is one.
pub(super) fn document(stdin: &[u8]) -> Value {
    let given: Option<Value> = serde_json::from_slice(stdin).ok();
    let version = given.as_ref().and_then(|value| value.get("cniVersion")?.as_str());
    let version = version.filter(|text| !text.is_empty() && text.len() <= 32);
    json!({
        "cniVersion": version.unwrap_or(Version::NEWEST.as_str()),
        "supportedVersions": Version::ALL.map(Version::as_str),
    })
}
