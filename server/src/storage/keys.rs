//! Every key of both databases, and nothing else knows their bytes.
//!
//! Keys sort as what they name does. A string is escaped and ends in `00 01`, a zero byte in it is
//! `00 FF`, so that `a` sorts before `a\0` and before `ab`. Integers are big-endian. An address is
//! 4 or 6, then its bytes. The first byte says which part of the database a key is in; changing
//! any of this changes a disk format, [`FORMAT`].
//!
//! | log | |
//! | --- | --- |
//! | `00 'f'` | format |
//! | `00 'o'` | id of the replica that owns the log |
//! | `00 'v'`, `00 'c'`, `00 'p'` | vote, committed, purged |
//! | `01 index` | an entry |
//!
//! | state | |
//! | --- | --- |
//! | `00 'f'` | format |
//! | `00 'c'` | how far the state is, its membership and its digest |
//! | `00 'h'` | how many lines of history there are |
//! | `01 kind …` | a record |
//! | `02 space address !revision !ordinal` | a line of history, the newest of an address first |
//! | `03 revision ordinal` | space and address of that line, the oldest of all first |

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use quorate_state::Key;
use quorate_state::types::{AddressKey, AttachmentKey, NodeKey, PoolKey, Revision};

/// Version of the keys and values of both databases.
pub(super) const FORMAT: u32 = 1;

/// Where the format stands, in both databases.
pub(super) const META_FORMAT: &[u8] = b"\x00f";

pub(super) const LOG_OWNER: &[u8] = b"\x00o";
pub(super) const LOG_VOTE: &[u8] = b"\x00v";
pub(super) const LOG_COMMITTED: &[u8] = b"\x00c";
pub(super) const LOG_PURGED: &[u8] = b"\x00p";

pub(super) const STATE_CHECKPOINT: &[u8] = b"\x00c";
pub(super) const STATE_HISTORY_COUNT: &[u8] = b"\x00h";

const ENTRY: u8 = 1;
const RECORD: u8 = 1;
const HISTORY: u8 = 2;
const AGE: u8 = 3;

/// Bytes that are no key of ours: the disk that held them is damaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bytes {0:02x?} are no key")]
pub struct BadKey(pub Vec<u8>);

/// Key of a log entry.
pub(super) fn entry(index: u64) -> [u8; 9] {
    let mut key = [ENTRY; 9];
    key[1..].copy_from_slice(&index.to_be_bytes());
    key
}

/// Just after the last possible entry.
pub(super) const ENTRIES_END: &[u8] = &[ENTRY + 1];

/// Index of an entry's key, `None` if it is another key.
pub(super) fn entry_index(key: &[u8]) -> Option<u64> {
    let (&first, index) = key.split_first()?;
    let index = <[u8; 8]>::try_from(index).ok()?;
    (first == ENTRY).then(|| u64::from_be_bytes(index))
}

/// Before the first record.
pub(super) const RECORDS: &[u8] = &[RECORD];
/// Just after the last possible record.
pub(super) const RECORDS_END: &[u8] = &[RECORD + 1];

/// Key of a record.
pub(super) fn record(key: &Key) -> Vec<u8> {
    let mut out = Out(vec![RECORD]);
    match key {
        Key::Cluster => out.byte(0),
        Key::Pool(pool) => out.byte(1).pool(pool),
        Key::Cursor(pool) => out.byte(2).pool(pool),
        Key::Allocation(attachment) => out.byte(3).attachment(attachment),
        Key::Fence(attachment) => out.byte(4).attachment(attachment),
        Key::Node(node) => out.byte(5).node(node),
        Key::Cooling(address) => out.byte(6).address(&address.space, address.address),
        Key::Reservation(address) => out.byte(7).address(&address.space, address.address),
    };
    out.0
}

/// The record that a key names.
pub(super) fn parse_record(bytes: &[u8]) -> Result<Key, BadKey> {
    let read = |input: &mut In<'_>| {
        if input.byte()? != RECORD {
            return None;
        }
        Some(match input.byte()? {
            0 => Key::Cluster,
            1 => Key::Pool(input.pool()?),
            2 => Key::Cursor(input.pool()?),
            3 => Key::Allocation(input.attachment()?),
            4 => Key::Fence(input.attachment()?),
            5 => Key::Node(input.node()?),
            6 => Key::Cooling(input.address()?),
            7 => Key::Reservation(input.address()?),
            _ => return None,
        })
    };
    whole(bytes, read)
}

/// Which line of history: several can share a revision, and `ordinal` tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    pub revision: Revision,
    pub ordinal: u32,
}

/// Key of a line of history.
pub(super) fn history(space: &str, address: IpAddr, line: Line) -> Vec<u8> {
    let mut out = Out(history_of(space, address));
    out.0.extend_from_slice(&(!line.revision.index).to_be_bytes());
    out.0.extend_from_slice(&(!line.revision.position).to_be_bytes());
    out.0.extend_from_slice(&(!line.ordinal).to_be_bytes());
    out.0
}

/// What all lines of an address begin with.
pub(super) fn history_of(space: &str, address: IpAddr) -> Vec<u8> {
    let mut out = Out(vec![HISTORY]);
    out.address(space, address);
    out.0
}

/// The line that a key of [`history`] names.
pub(super) fn parse_history(bytes: &[u8]) -> Result<Line, BadKey> {
    let read = |input: &mut In<'_>| {
        if input.byte()? != HISTORY {
            return None;
        }
        input.address()?;
        let line = input.line()?;
        let Revision { index, position } = line.revision;
        let revision = Revision { index: !index, position: !position };
        Some(Line { revision, ordinal: !line.ordinal })
    };
    whole(bytes, read)
}

/// Before the first line by age.
pub(super) const AGES: &[u8] = &[AGE];
/// Just after the last possible line by age.
pub(super) const AGES_END: &[u8] = &[AGE + 1];

/// Key of a line by its age.
pub(super) fn age(line: Line) -> Vec<u8> {
    let mut out = Out(vec![AGE]);
    out.0.extend_from_slice(&line.revision.index.to_be_bytes());
    out.0.extend_from_slice(&line.revision.position.to_be_bytes());
    out.0.extend_from_slice(&line.ordinal.to_be_bytes());
    out.0
}

/// The line that a key of [`age`] names.
pub(super) fn parse_age(bytes: &[u8]) -> Result<Line, BadKey> {
    whole(bytes, |input| if input.byte()? == AGE { input.line() } else { None })
}

/// The value under a key of [`age`]: whose line it is.
pub(super) fn age_value(space: &str, address: IpAddr) -> Vec<u8> {
    let mut out = Out(Vec::new());
    out.address(space, address);
    out.0
}

/// Reads a value of [`age_value`].
pub(super) fn parse_age_value(bytes: &[u8]) -> Result<AddressKey, BadKey> {
    whole(bytes, |input| input.address())
}

struct Out(Vec<u8>);

impl Out {
    fn byte(&mut self, byte: u8) -> &mut Out {
        self.0.push(byte);
        self
    }

    fn text(&mut self, text: &str) -> &mut Out {
        for byte in text.bytes() {
            self.0.push(byte);
            if byte == 0 {
                self.0.push(0xff);
            }
        }
        self.0.extend_from_slice(&[0, 1]);
        self
    }

    fn pool(&mut self, pool: &PoolKey) -> &mut Out {
        self.text(&pool.space).text(&pool.name)
    }

    fn node(&mut self, node: &NodeKey) -> &mut Out {
        self.text(&node.cluster).text(&node.name)
    }

    fn attachment(&mut self, key: &AttachmentKey) -> &mut Out {
        self.node(&key.node).text(&key.container_id).text(&key.ifname).text(&key.network)
    }

    fn address(&mut self, space: &str, address: IpAddr) -> &mut Out {
        self.text(space);
        match address {
            IpAddr::V4(v4) => {
                self.0.push(4);
                self.0.extend_from_slice(&v4.octets());
            }
            IpAddr::V6(v6) => {
                self.0.push(6);
                self.0.extend_from_slice(&v6.octets());
            }
        }
        self
    }
}

/// Reads from the front; `None` means that the bytes are no key.
struct In<'a>(&'a [u8]);

impl In<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    fn text(&mut self) -> Option<String> {
        let mut text = Vec::new();
        loop {
            match self.byte()? {
                0 => match self.byte()? {
                    0xff => text.push(0),
                    1 => return String::from_utf8(text).ok(),
                    _ => return None,
                },
                byte => text.push(byte),
            }
        }
    }

    fn pool(&mut self) -> Option<PoolKey> {
        Some(PoolKey { space: self.text()?, name: self.text()? })
    }

    fn node(&mut self) -> Option<NodeKey> {
        Some(NodeKey { cluster: self.text()?, name: self.text()? })
    }

    fn attachment(&mut self) -> Option<AttachmentKey> {
        Some(AttachmentKey {
            node: self.node()?,
            container_id: self.text()?,
            ifname: self.text()?,
            network: self.text()?,
        })
    }

    fn address(&mut self) -> Option<AddressKey> {
        let space = self.text()?;
        let address = match self.byte()? {
            4 => IpAddr::V4(Ipv4Addr::from(self.array::<4>()?)),
            6 => IpAddr::V6(Ipv6Addr::from(self.array::<16>()?)),
            _ => return None,
        };
        Some(AddressKey { space, address })
    }

    fn line(&mut self) -> Option<Line> {
        let index = u64::from_be_bytes(self.array()?);
        let position = u32::from_be_bytes(self.array()?);
        let ordinal = u32::from_be_bytes(self.array()?);
        Some(Line { revision: Revision { index, position }, ordinal })
    }
}

/// What `read` makes of the bytes, if it takes all of them.
fn whole<T>(bytes: &[u8], read: impl FnOnce(&mut In<'_>) -> Option<T>) -> Result<T, BadKey> {
    let mut input = In(bytes);
    match read(&mut input) {
        Some(value) if input.0.is_empty() => Ok(value),
        _ => Err(BadKey(bytes.to_vec())),
    }
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
