//! Where the binaries are that are driven.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Names a folder that holds the binaries, instead of the one of the running program.
pub const FOLDER_VARIABLE: &str = "QUORATE_BIN_DIR";

/// The built binaries, all known to exist.
#[derive(Clone, Debug)]
pub struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// Those in [`FOLDER_VARIABLE`], else those that the same `cargo` invocation's profile built:
    /// a load must not measure a debug build by accident.
    ///
    /// # Errors
    /// One of them is missing; the message says what builds it.
    pub fn find() -> Result<Binaries> {
        match std::env::var_os(FOLDER_VARIABLE) {
            Some(folder) => Binaries::in_folder(Path::new(&folder)),
            None => Binaries::in_folder(&profile_folder(&std::env::current_exe()?)?),
        }
    }

    fn in_folder(folder: &Path) -> Result<Binaries> {
        for (binary, package) in [
            ("quorate-server", "quorate-server"),
            ("quorate", "quorate-shim"),
            ("quoratectl", "quorate-ctl"),
        ] {
            if !folder.join(binary).is_file() {
                let release = if folder.ends_with("release") { " --release" } else { "" };
                bail!(
                    "{} is not there: run `cargo build --locked{release} -p {package}`, \
                     or name the folder of the binaries in {FOLDER_VARIABLE}",
                    folder.join(binary).display()
                );
            }
        }
        let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
        Ok(Binaries { folder })
    }

    /// The folder, for `CNI_PATH`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The replica.
    pub fn server(&self) -> PathBuf {
        self.folder.join("quorate-server")
    }

    /// The CNI plugin.
    pub fn plugin(&self) -> PathBuf {
        self.folder.join("quorate")
    }

    /// The admin command line.
    pub fn ctl(&self) -> PathBuf {
        self.folder.join("quoratectl")
    }
}

/// `target/PROFILE` of a program in it, or in its `deps`, where tests are.
fn profile_folder(program: &Path) -> Result<PathBuf> {
    let folder = program.parent().context("the running program has no folder")?;
    match folder.parent() {
        Some(profile) if folder.ends_with("deps") => Ok(profile.to_owned()),
        _ => Ok(folder.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_programs_look_in_the_folder_of_their_profile() {
        for program in ["/t/release/deps/burst-0a1b", "/t/release/quorate-jepsen"] {
            assert_eq!(profile_folder(Path::new(program)).unwrap(), Path::new("/t/release"));
        }
    }

    #[test]
    fn a_missing_binary_says_what_builds_it() {
        let folder = tempfile::tempdir().unwrap();
        let release = folder.path().join("release");
        std::fs::create_dir(&release).unwrap();
        std::fs::write(release.join("quorate-server"), "").unwrap();
        let message = Binaries::in_folder(&release).unwrap_err().to_string();
        assert!(message.contains("cargo build --locked --release -p quorate-shim"), "{message}");
    }
}
