//! The leader that was named last, in memory and, for the next process, in a file.
//!
//! The file is a convenience: it is not synced, never trusted beyond the configured endpoints
//! (it may be older than they are), and no error of it fails a call.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use quorate_proto::v1::Header;

use crate::endpoint::Endpoint;

/// A longer file is not one of ours.
const MAX_FILE_BYTES: u64 = 1024;

#[derive(Debug)]
pub(crate) struct Hint {
    file: Option<PathBuf>,
    leader: Mutex<Option<Endpoint>>,
}

impl Hint {
    /// Reads the file; what is missing, torn or not among the endpoints is no hint.
    pub(crate) fn load(file: Option<PathBuf>, endpoints: &[Endpoint]) -> Hint {
        let written = file.as_deref().and_then(read);
        let leader = written.and_then(|hint| listed(endpoints, &hint.name, &hint.address).cloned());
        Hint { file, leader: Mutex::new(leader) }
    }

    pub(crate) fn leader(&self) -> Option<Endpoint> {
        self.lock().clone()
    }

    /// Takes the leader from a response's header, if it names one.
    pub(crate) fn learn(&self, header: Option<&Header>, endpoints: &[Endpoint]) {
        let Some(leader) = header.and_then(|header| named(header, endpoints)) else { return };
        let mut known = self.lock();
        if known.as_ref() == Some(&leader) {
            return;
        }
        if let Some(file) = &self.file
            && let Err(error) = write(file, &leader)
        {
            tracing::debug!(file = %file.display(), %error, "leader hint not written");
        }
        *known = Some(leader);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Endpoint>> {
        // No code that holds the lock can panic half-way through a change.
        self.leader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn named(header: &Header, endpoints: &[Endpoint]) -> Option<Endpoint> {
    if header.leader.is_empty() {
        return None;
    }
    if let Some(endpoint) = listed(endpoints, &header.leader, &header.leader_address) {
        return Some(endpoint.clone());
    }
    let leader = Endpoint { name: header.leader.clone(), address: header.leader_address.clone() };
    // Plain text that stays on this machine must not be led off it.
    let stays = !endpoints.iter().all(Endpoint::is_loopback) || leader.is_loopback();
    (leader.check().is_ok() && stays).then_some(leader)
}

/// By name, since the address that a replica advertises may not be the one that we can reach.
fn listed<'a>(endpoints: &'a [Endpoint], name: &str, address: &str) -> Option<&'a Endpoint> {
    let by_name = endpoints.iter().find(|endpoint| endpoint.name == name);
    by_name.or_else(|| endpoints.iter().find(|endpoint| endpoint.address == address))
}

fn read(file: &Path) -> Option<Endpoint> {
    let mut text = String::new();
    let opened = fs::File::open(file).ok()?;
    opened.take(MAX_FILE_BYTES).read_to_string(&mut text).ok()?;
    // Without its line end it is torn.
    text.strip_suffix('\n')?.parse().ok()
}

fn write(file: &Path, leader: &Endpoint) -> std::io::Result<()> {
    let mut temporary = file.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    fs::write(&temporary, format!("{leader}\n"))?;
    fs::rename(&temporary, file)
}

#[cfg(test)]
mod tests {
    use super::{Endpoint, Header, Hint, fs};

    fn endpoints() -> Vec<Endpoint> {
        ["a=h:1", "b=h:2"].map(|text| text.parse().unwrap()).to_vec()
    }

    fn header(leader: &str, leader_address: &str) -> Header {
        Header { leader: leader.into(), leader_address: leader_address.into(), ..Header::default() }
    }

    #[test]
    fn a_leader_is_matched_by_name_then_by_address_then_taken_as_named() {
        let hint = Hint::load(None, &endpoints());
        assert_eq!(hint.leader(), None);
        for (name, address, expected) in [
            ("b", "pod:9", "b=h:2"),
            ("quorate-9", "h:1", "a=h:1"),
            ("c", "h:3", "c=h:3"),
            ("", "h:1", "c=h:3"),
            ("d", "nonsense", "c=h:3"),
        ] {
            hint.learn(Some(&header(name, address)), &endpoints());
            assert_eq!(hint.leader().unwrap().to_string(), expected, "{name} {address}");
        }
    }

    #[test]
    fn a_cluster_on_loopback_leads_nobody_off_it() {
        let local: Vec<Endpoint> = vec!["a=127.0.0.1:1".parse().unwrap()];
        let hint = Hint::load(None, &local);
        hint.learn(Some(&header("b", "10.0.0.1:1")), &local);
        assert_eq!(hint.leader(), None);
        hint.learn(Some(&header("b", "127.0.0.1:2")), &local);
        assert_eq!(hint.leader().unwrap().to_string(), "b=127.0.0.1:2");
    }

    #[test]
    fn the_next_process_reads_what_this_one_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("leader");
        Hint::load(Some(file.clone()), &endpoints()).learn(Some(&header("b", "")), &endpoints());
        let next = Hint::load(Some(file.clone()), &endpoints());
        assert_eq!(next.leader().unwrap().to_string(), "b=h:2");
        // Only the file itself is left.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        // An unchanged leader is not written again.
        fs::remove_file(&file).unwrap();
        next.learn(Some(&header("b", "")), &endpoints());
        assert!(!file.exists());
    }

    #[test]
    fn a_bad_file_is_no_hint_and_an_unwritable_one_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("leader");
        for bytes in [&b""[..], b"b=h:2", b"\xff\xfe\n", b"b\n", b"stranger=h:9\n", &[b'x'; 4096]] {
            fs::write(&file, bytes).unwrap();
            assert_eq!(Hint::load(Some(file.clone()), &endpoints()).leader(), None);
        }
        let nowhere = Hint::load(Some(folder.path().join("no/such/leader")), &endpoints());
        nowhere.learn(Some(&header("a", "")), &endpoints());
        assert_eq!(nowhere.leader().unwrap().name, "a");
    }
}
