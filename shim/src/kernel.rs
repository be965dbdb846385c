//! What the kernel says: boot id, boot time, network namespaces.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use quorate_proto::v1;
use rustix::time::{ClockId, clock_gettime};

/// `NSFS_MAGIC` of `linux/magic.h`.
const NSFS_MAGIC: i64 = 0x6e73_6673;

/// The id of this boot.
///
/// # Errors
/// If `/proc` is not there.
pub fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// `CLOCK_BOOTTIME` in nanoseconds: monotonic, counts suspended time, starts anew with each boot.
pub fn boot_ns() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

/// The network namespace at a path, as this process sees it; zeros if it cannot be read, since
/// the path may be another mount namespace's.
pub fn netns(path: &str) -> v1::Netns {
    let seen = if path.is_empty() { None } else { fs::metadata(path).ok() };
    v1::Netns {
        path: path.to_owned(),
        device: seen.as_ref().map_or(0, MetadataExt::dev),
        inode: seen.as_ref().map_or(0, MetadataExt::ino),
    }
}

/// It is the namespace in which this process runs.
pub fn is_own(netns: &v1::Netns) -> bool {
    netns.inode != 0
        && fs::metadata("/proc/self/ns/net")
            .is_ok_and(|own| own.dev() == netns.device && own.ino() == netns.inode)
}

/// What has become of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is there.
    Alive,
    /// Its path is absent, or is another namespace.
    Gone,
    /// At its path is something else, such as the empty file that namespaces are mounted on: it is
    /// gone, or mounted there for other processes than this one.
    Uncovered,
    /// Nothing can be said: it was never seen, or where it was cannot be seen from here.
    Unknown,
}

/// What has become of a namespace that was recorded on this node, in this boot.
pub fn fate(recorded: &v1::Netns) -> Fate {
    if recorded.path.is_empty() || recorded.inode == 0 {
        return Fate::Unknown;
    }
    let path = Path::new(&recorded.path);
    match fs::metadata(path) {
        Ok(seen) => match rustix::fs::statfs(path) {
            Ok(system) if system.f_type != NSFS_MAGIC => Fate::Uncovered,
            Ok(_) if seen.ino() == recorded.inode && seen.dev() == recorded.device => Fate::Alive,
            Ok(_another) => Fate::Gone,
            Err(_error) => Fate::Unknown,
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound && parent_is_visible(path) => {
            Fate::Gone
        }
        Err(_error) => Fate::Unknown,
    }
}

/// Where a path leads as this process sees it: two paths of one place go through the same mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// `/proc`.
    Processes,
    /// A folder.
    Folder {
        /// Its `st_dev`.
        device: u64,
        /// Its `st_ino`.
        inode: u64,
    },
}

/// The place of a path; none if its folder cannot be seen.
pub fn place(path: &str) -> Option<Place> {
    let path = Path::new(path);
    if path.starts_with("/proc") {
        return Some(Place::Processes);
    }
    let folder = fs::metadata(path.parent()?).ok()?;
    Some(Place::Folder { device: folder.dev(), inode: folder.ino() })
}

/// A path whose folder is absent too may be one of another mount namespace, such as a container's
/// that runs the plugin: that says nothing. Folders of processes go with the process.
fn parent_is_visible(path: &Path) -> bool {
    path.starts_with("/proc") || path.parent().is_some_and(Path::is_dir)
}

#[cfg(test)]
mod tests {
    use super::{Fate, Place, boot_id, boot_ns, fate, is_own, netns, place};

    #[test]
    fn the_clock_runs_and_the_boot_has_an_id() {
        let before = boot_ns();
        assert!(before > 0 && boot_ns() >= before);
        assert_eq!(boot_id().unwrap().len(), 36);
    }

    #[test]
    fn a_namespace_is_alive_gone_or_unknown() {
        let own = netns("/proc/self/ns/net");
        assert!(is_own(&own));
        assert_eq!(fate(&own), Fate::Alive);
        let mut other = own.clone();
        other.inode += 1;
        assert_eq!(fate(&other), Fate::Gone);
        assert!(!is_own(&other));
        let folder = tempfile::tempdir().unwrap();
        let at = |path: std::path::PathBuf| {
            let mut moved = own.clone();
            moved.path = path.to_str().unwrap().to_owned();
            fate(&moved)
        };
        assert_eq!(at(folder.path().join("absent")), Fate::Gone);
        assert_eq!(at(folder.path().join("no/folder")), Fate::Unknown);
        assert_eq!(at("/proc/4294967295/ns/net".into()), Fate::Gone);
        assert_eq!(place(&own.path), Some(Place::Processes));
        let in_folder = |path: &str| place(folder.path().join(path).to_str().unwrap());
        assert!(in_folder("a").is_some() && in_folder("a") == in_folder("./b"));
        assert_eq!(in_folder("no/folder"), None);
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let plain = netns(file.to_str().unwrap());
        assert_eq!(fate(&plain), Fate::Uncovered, "not a namespace");
        assert_eq!(fate(&netns("")), Fate::Unknown);
        assert_eq!(fate(&netns("/no/such/path")), Fate::Unknown, "never seen");
    }
}
