//! What README.md and ARCHITECTURE.md refer to exists: files, the items in them, and targets of
//! the Makefile. So that a stranger can follow them, and a renaming does not leave them behind.
//!
//! A reference to an item is a path in backticks followed by the item in backticks, with nothing
//! but blanks, a comma, an arrow or a colon between: `` `server/src/main.rs` `main` ``.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const DOCUMENTS: &[&str] = &["README.md", "ARCHITECTURE.md", "docs/DESIGN.md"];
const CODE: &[&str] = &[".rs", ".proto", ".toml", ".sh", ".md", ".yaml", ".txt"];

fn root() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).to_owned()
}

/// What stands in backticks in a document, fenced blocks left out, with the text before each.
fn quoted(document: &str) -> Vec<(String, String)> {
    let mut fenced = false;
    let prose: Vec<&str> = document
        .lines()
        .filter(|line| {
            let fence = line.trim_start().starts_with("```");
            fenced ^= fence;
            !fenced && !fence
        })
        .collect();
    let text = prose.join("\n");
    let parts: Vec<&str> = text.split('`').collect();
    parts.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
}

/// Whether a quoted text names a file or folder of this repository.
fn is_path(quoted: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let outside = quoted.starts_with('/') || quoted.starts_with("..") || quoted.starts_with('-');
    quoted.chars().all(plain)
        && !outside
        && (CODE.iter().any(|end| quoted.ends_with(end)) || quoted.ends_with('/'))
}

/// The name that an item is defined by, such as `apply` of `State::apply`; `None` for a text
/// that is no item.
fn item(quoted: &str) -> Option<&str> {
    let last = quoted.trim_end_matches("()").rsplit("::").next()?;
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = last.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (starts && last.chars().all(word)).then_some(last)
}

/// Whether Rust or protobuf source defines that name.
fn defines(source: &str, name: &str) -> bool {
    const KEYWORDS: &[&str] = &[
        "fn",
        "struct",
        "enum",
        "trait",
        "mod",
        "const",
        "static",
        "type",
        "macro_rules!",
        "message",
        "service",
        "rpc",
    ];
    source.lines().any(|line| {
        let words: Vec<&str> = line
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '!'))
            .filter(|word| !word.is_empty())
            .collect();
        let comment = line.trim_start().starts_with("//");
        !comment && words.windows(2).any(|two| KEYWORDS.contains(&two[0]) && two[1] == name)
    })
}

/// Files of this repository that a document links to.
fn links(document: &str) -> impl Iterator<Item = &str> {
    let targets = document.split("](").skip(1).filter_map(|piece| piece.split(')').next());
    targets
        .map(|target| target.split('#').next().unwrap_or(target))
        .filter(|target| !target.is_empty() && !target.contains("://"))
}

/// What a document says that is not so.
fn faults(document: &str, root: &Path) -> Vec<String> {
    let mut faults: Vec<String> = links(document)
        .filter(|target| !root.join(target).exists())
        .map(|target| format!("the link to {target} leads nowhere"))
        .collect();
    let mut file: Option<String> = None;
    for (before, text) in quoted(document) {
        let joined = before.chars().all(|c| c.is_whitespace() || ",:→>-".contains(c));
        let follows = file.take().filter(|_| joined);
        if is_path(&text) {
            // Folders that a build makes are no part of the repository.
            let made = ["target/", "store/"].iter().any(|folder| text.starts_with(folder));
            if !made && !root.join(&text).exists() {
                faults.push(format!("`{text}` does not exist"));
            }
            file = text
                .ends_with(".rs")
                .then_some(text.clone())
                .or_else(|| text.ends_with(".proto").then_some(text));
        } else if let (Some(path), Some(name)) = (follows, item(&text)) {
            let source = std::fs::read_to_string(root.join(&path)).unwrap_or_default();
            if !source.is_empty() && !defines(&source, name) {
                faults.push(format!("`{path}` does not define `{name}`"));
            }
            // Several items of one file may follow it.
            file = Some(path);
        }
    }
    faults
}

/// Targets of `make` that a document names, fenced blocks included.
fn named_targets(document: &str) -> BTreeSet<String> {
    let mut targets = BTreeSet::new();
    for piece in document.split("make ").skip(1) {
        let name: String = piece.chars().take_while(char::is_ascii_lowercase).collect();
        targets.insert(name);
    }
    targets.remove("");
    targets
}

fn targets_of(makefile: &str) -> BTreeSet<String> {
    let name = |line: &str| Some(line.split_once(':')?.0.to_owned());
    makefile.lines().filter_map(name).filter(|name| !name.contains(char::is_whitespace)).collect()
}

#[test]
fn what_the_documents_refer_to_exists() {
    for name in DOCUMENTS {
        let document = std::fs::read_to_string(root().join(name)).unwrap();
        assert_eq!(faults(&document, &root()), Vec::<String>::new(), "in {name}");
    }
    let architecture = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let paths = quoted(&architecture).iter().filter(|(_, text)| is_path(text)).count();
    assert!(paths >= 10, "ARCHITECTURE.md refers to {paths} files: is its form still known here?");
}

#[test]
fn the_make_targets_that_the_documents_name_exist() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    let there = targets_of(&makefile);
    for name in DOCUMENTS {
        let document = std::fs::read_to_string(root().join(name)).unwrap();
        // `make` is a word of English too: only code counts.
        let code: Vec<&str> = document.split('`').skip(1).step_by(2).collect();
        for target in named_targets(&code.join("\n")) {
            assert!(there.contains(&target), "{name} names `make {target}`");
        }
    }
}

#[test]
fn false_references_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let source = "// fn gone() {}\npub(crate) async fn there<T>() {}\nstruct Pool;\n";
    std::fs::write(folder.path().join("a.rs"), source).unwrap();
    let of = |document: &str| faults(document, folder.path());
    assert_eq!(of("`a.rs` → `there`, `Pool::there()` and `whatever`"), Vec::<String>::new());
    assert_eq!(of("`a.rs` `Pool`, `b`"), ["`a.rs` does not define `b`"]);
    assert_eq!(of("see `a.rs`: `gone`"), ["`a.rs` does not define `gone`"]);
    assert_eq!(of("see `b.rs`, or `c/`"), ["`b.rs` does not exist", "`c/` does not exist"]);
    assert_eq!(of("[a](a.rs#x) [b](#y) [c](https://z/)"), Vec::<String>::new());
    assert_eq!(of("[d](d.md#x)"), ["the link to d.md leads nowhere"]);
    assert_eq!(of("```\n`b.rs`\n```\n`/etc/x.md`"), Vec::<String>::new());
    assert_eq!(
        named_targets("make run KEEP=1; make test").into_iter().collect::<Vec<_>>(),
        ["run", "test"]
    );
}
