//! stdout: the CNI protocol, and [`write`] is the only function that writes it.

use std::io::{self, Write as _};
use std::panic;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::error::{Code, Failure};
use super::version::Version;

static SPOKEN: AtomicBool = AtomicBool::new(false);
static VERSION: OnceLock<Version> = OnceLock::new();

/// From here on errors are told in the words of that version. The first call counts.
pub fn speak(version: Version) {
    VERSION.get_or_init(|| version);
}

/// Prints the result of a verb.
///
/// # Errors
/// If stdout cannot be written.
pub fn result(document: &Value) -> io::Result<()> {
    write(format!("{document}\n").as_bytes())
}

/// Prints a failure.
///
/// # Errors
/// If stdout cannot be written.
pub fn failure(failure: &Failure) -> io::Result<()> {
    let version = VERSION.get().copied().unwrap_or(Version::NEWEST);
    write(format!("{}\n", failure.to_json(version)).as_bytes())
}

/// One document is written whole, and after it nothing is: what a panic adds would make two.
fn write(bytes: &[u8]) -> io::Result<()> {
    if SPOKEN.swap(true, Ordering::SeqCst) {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// Prints text for a person who called the plugin by hand.
///
/// # Errors
/// If stdout cannot be written.
pub fn text(text: &str) -> io::Result<()> {
    write(text.as_bytes())
}

/// A fault of ours ends the plugin with a CNI error instead of a dump: the runtime shows the error
/// to people, and the text with the place goes to stderr. Release builds abort on a panic, but
/// only after this.
pub fn report_panics() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let what = info
            .payload_as_str()
            .map_or_else(|| "a panic without text".to_owned(), ToOwned::to_owned);
        let msg = "INTERNAL: the plugin failed; please report this with the details";
        let told =
            failure(&Failure::new(Code::Internal, msg).with_details(format!("{what}, at {place}")));
        // A closed stderr must not make a second panic of the first.
        let logged = writeln!(io::stderr(), "quorate: panic at {place}: {what}");
        drop((told, logged));
        #[expect(clippy::exit, reason = "nothing may run after the error is printed")]
        std::process::exit(1);
    }));
}
