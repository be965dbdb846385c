//! Versions of the CNI specification.

use std::fmt;

/// A version whose JSON we speak. Ordered by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// One address of each family.
    V0_1_0,
    /// As 0.1.0, and the verb VERSION.
    V0_2_0,
    /// Lists of addresses, each with its family.
    V0_3_0,
    /// As 0.3.0 for an IPAM plugin.
    V0_3_1,
    /// The verb CHECK.
    V0_4_0,
    /// Addresses without family.
    V1_0_0,
    /// The verbs GC and STATUS; routes with attributes.
    V1_1_0,
}

impl Version {
    /// All of them, oldest first.
    pub const ALL: [Version; 7] = [
        Version::V0_1_0,
        Version::V0_2_0,
        Version::V0_3_0,
        Version::V0_3_1,
        Version::V0_4_0,
        Version::V1_0_0,
        Version::V1_1_0,
    ];

    /// The newest.
    pub const NEWEST: Version = Version::V1_1_0;

    /// As the specification writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Version::V0_1_0 => "0.1.0",
            Version::V0_2_0 => "0.2.0",
            Version::V0_3_0 => "0.3.0",
            Version::V0_3_1 => "0.3.1",
            Version::V0_4_0 => "0.4.0",
            Version::V1_0_0 => "1.0.0",
            Version::V1_1_0 => "1.1.0",
        }
    }

    /// The version of that text, if we speak it. No text means 0.1.0, as in the reference
    /// library.
    pub fn parse(text: &str) -> Option<Version> {
        if text.is_empty() {
            return Some(Version::V0_1_0);
        }
        Version::ALL.into_iter().find(|version| version.as_str() == text)
    }

    /// Results of this version hold at most one address of each family.
    pub fn one_address_a_family(self) -> bool {
        self <= Version::V0_2_0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn every_version_reads_back_and_they_are_in_order() {
        for version in Version::ALL {
            assert_eq!(Version::parse(version.as_str()), Some(version));
        }
        assert!(Version::ALL.is_sorted());
        assert_eq!(Version::parse(""), Some(Version::V0_1_0));
        for text in ["9.9.9", "1.1", "v1.0.0", " 1.0.0"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }
}
