//! Scenarios: prose, commands and what they answer, one file a subject, in `scenarios/*.txt`.
//!
//! A file is paragraphs. One that holds a line `----` is commands above it and their answers below;
//! every other paragraph is prose. `QUORATE_UPDATE=1 cargo test -p quorate-state --test scenarios`
//! writes the answers anew: read the difference before you commit it. The commands are told in
//! `scenario/command.rs`.

mod scenario;

use std::fs;
use std::path::{Path, PathBuf};

use scenario::Runner;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the folder of scenarios")
        .map(|entry| entry.expect("a file in it").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort_unstable();
    files
}

/// The text of a scenario with the answers that the state gives now.
fn answered(text: &str) -> String {
    let mut runner = Runner::new();
    let paragraphs: Vec<String> = text
        .trim_end()
        .split("\n\n")
        .map(|paragraph| {
            let lines: Vec<&str> = paragraph.trim_matches('\n').lines().collect();
            let Some(rule) = lines.iter().position(|line| *line == "----") else {
                return lines.join("\n");
            };
            let mut out: Vec<String> = lines[..=rule].iter().map(|l| (*l).to_owned()).collect();
            for line in &lines[..rule] {
                out.extend(runner.run(line).lines().map(str::to_owned));
            }
            out.join("\n")
        })
        .collect();
    paragraphs.join("\n\n") + "\n"
}

#[test]
fn scenarios_answer_as_written() {
    let update = std::env::var_os("QUORATE_UPDATE").is_some();
    let files = files();
    assert!(!files.is_empty(), "no scenarios");
    let mut wrong = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("a scenario can be read");
        let now = answered(&text);
        if now == text {
            continue;
        }
        if update {
            fs::write(&path, now).expect("a scenario can be written");
            continue;
        }
        let (line, (expected, got)) = text
            .lines()
            .zip(now.lines())
            .enumerate()
            .find(|(_, (expected, got))| expected != got)
            .unwrap_or((0, ("(another length)", "")));
        let name = path.file_name().expect("it has one").display().to_string();
        wrong.push(format!("{name}:{}\n  expected: {expected}\n  got:      {got}", line + 1));
    }
    assert!(
        wrong.is_empty(),
        "{}\nIf the new answers are right: QUORATE_UPDATE=1 cargo test -p quorate-state --test scenarios",
        wrong.join("\n"),
    );
}

#[test]
fn an_answer_that_differs_is_seen() {
    let text = "Prose.\n\nowners\n----\n10.0.0.1 somebody\n";
    assert_eq!(answered(text), "Prose.\n\nowners\n----\nnobody\n");
}
