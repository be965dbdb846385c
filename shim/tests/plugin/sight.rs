//! What GC takes for gone, and through which mounts. A folder of links to the namespaces of living
//! processes stands for `/run/netns`: an empty one looks as that does behind other mounts.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use quorate_proto::v1;
use serde_json::{Value, json};

use crate::other_verbs::{gc, held, left};
use crate::support::{Node, Outcome, Server};

/// A namespace that was seen under that name in the folder, and is there no more.
fn absent(folder: &Path, name: &str) -> v1::Netns {
    let path = folder.join(name).to_str().unwrap().to_owned();
    let own = fs::metadata("/proc/self/ns/net").unwrap();
    v1::Netns { path, device: own.dev(), inode: own.ino() }
}

/// One that is there.
fn present(folder: &Path, name: &str) -> v1::Netns {
    let path = folder.join(name);
    let own = format!("/proc/{}/ns/net", std::process::id());
    symlink(own, &path).unwrap();
    absent(folder, name)
}

/// One whose name leads to another one by now.
fn replaced(folder: &Path, name: &str) -> v1::Netns {
    let mut netns = present(folder, name);
    netns.inode += 1;
    netns
}

fn listing(containers: &[&str]) -> Value {
    let list = containers.iter().map(|id| json!({"containerID": id, "ifname": "eth0"}));
    json!({"cni.dev/valid-attachments": list.collect::<Vec<_>>()})
}

/// GC with these attachments, and what it leaves of them.
fn collect(held_by: &[(&str, v1::Netns)], listed: &[&str]) -> (Vec<String>, Outcome) {
    let server = Server::healthy();
    let node = Node::of(&server);
    let mut earlier = held("earlier", v1::Netns::default());
    earlier.boot_id = "an earlier boot".into();
    server.insert(earlier);
    for (container, netns) in held_by {
        server.insert(held(container, netns.clone()));
    }
    let outcome = gc(&node, listing(listed));
    outcome.assert_silent();
    (left(&server), outcome)
}

#[test]
fn behind_other_mounts_only_what_is_of_an_earlier_boot_is_released() {
    let folder = tempfile::tempdir().unwrap();
    let (empty, missing) = (folder.path(), &folder.path().join("missing"));
    for place in [empty, missing] {
        for listed in [&[][..], &["b"], &["unknown"]] {
            let held_by = [("a", absent(place, "a")), ("b", absent(place, "b"))];
            let (left, outcome) = collect(&held_by, listed);
            assert_eq!(left, ["a", "b"], "{place:?} {listed:?}: {outcome:?}");
            let says = outcome.stderr.contains("visible");
            assert!(says || place == missing && listed != ["b"], "{outcome:?}");
        }
    }
}

#[test]
fn what_is_gone_beside_a_living_namespace_is_released() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let alive = present(folder, "alive");
    let held_by = [("alive", alive), ("dead", absent(folder, "d")), ("new", replaced(folder, "n"))];
    for listed in [&["alive"][..], &[]] {
        assert_eq!(collect(&held_by, listed).0, ["alive"], "{listed:?}");
    }
}

#[test]
fn every_listed_namespace_must_be_the_recorded_one() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("plain"), "").unwrap();
    let alive = present(folder, "alive");
    let missing = absent(&folder.join("missing"), "m");
    let other = [replaced(folder, "r"), absent(folder, "gone"), absent(folder, "plain"), missing];
    for other in other {
        let held_by = [("alive", alive.clone()), ("dead", absent(folder, "d")), ("other", other)];
        let (left, outcome) = collect(&held_by, &["alive", "other"]);
        assert_eq!(left, ["alive", "dead", "other"], "{outcome:?}");
        assert!(outcome.stderr.contains("listed container is not visible"), "{outcome:?}");
    }
}

#[test]
fn a_living_namespace_proves_nothing_of_another_folder() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let held_by =
        [("alive", present(here.path(), "alive")), ("dead", absent(there.path(), "dead"))];
    assert_eq!(collect(&held_by, &["alive"]).0, ["alive", "dead"]);
    let process = crate::other_verbs::alive();
    let held_by = [("alive", process), ("dead", absent(there.path(), "dead"))];
    assert_eq!(collect(&held_by, &["alive"]).0, ["alive", "dead"]);
}

#[test]
fn a_plain_file_may_be_a_mount_that_only_others_see() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("plain"), "").unwrap();
    let alive = present(folder.path(), "alive");
    let held_by = [("alive", alive), ("dead", absent(folder.path(), "plain"))];
    assert_eq!(collect(&held_by, &["alive"]).0, ["alive", "dead"]);
}

#[test]
fn a_listed_attachment_of_an_earlier_boot_blinds_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::healthy();
    let node = Node::of(&server);
    let mut earlier = held("earlier", absent(folder.path(), "earlier"));
    earlier.boot_id = "an earlier boot".into();
    server.insert(earlier);
    server.insert(held("alive", present(folder.path(), "alive")));
    server.insert(held("dead", absent(folder.path(), "dead")));
    gc(&node, listing(&["alive", "earlier"])).assert_silent();
    assert_eq!(left(&server), ["alive", "earlier"]);
}
