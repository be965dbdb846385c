//! Logs, to the file that the configuration names or to stderr. Never to stdout, which is the CNI
//! protocol. Levels are one filter for all: a parser of filter expressions costs more than an ADD.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::bounded::nonblocking;
use crate::config::Network;

/// Opens the log as the configuration says. A log that cannot be opened fails no call.
pub fn open(network: &Network) {
    let (level, level_known) = match network.log_level.as_deref() {
        None => (LevelFilter::WARN, true),
        Some(text) => match level(text) {
            Some(level) => (level, true),
            None => (LevelFilter::WARN, false),
        },
    };
    let opened = network.log_file.as_ref().map(|path| (path, append(path)));
    match &opened {
        Some((_, Ok(file))) => install(level, Arc::clone(file)),
        _ => install(level, io::stderr),
    }
    if let Some((path, Err(error))) = opened {
        tracing::warn!(path = %path.display(), %error, "log file not opened: logging to stderr");
    }
    if !level_known {
        tracing::warn!(level = network.log_level, "unknown log_level: warn counts");
    }
}

/// Tells what was odd in the configuration.
pub fn warnings(network: &mut Network) {
    for warning in network.warnings.drain(..) {
        tracing::warn!("{warning}");
    }
}

fn append(path: &std::path::Path) -> io::Result<Arc<File>> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).custom_flags(nonblocking());
    Ok(Arc::new(options.open(path)?))
}

fn install<W>(level: LevelFilter, writer: W)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_target(false)
        .with_writer(writer)
        .finish();
    // Fails only if there is one already.
    drop(tracing::subscriber::set_global_default(subscriber));
}

/// Also in the words of whereabouts.
fn level(text: &str) -> Option<LevelFilter> {
    match text.to_ascii_lowercase().as_str() {
        "off" => Some(LevelFilter::OFF),
        "panic" | "error" => Some(LevelFilter::ERROR),
        "warn" | "warning" => Some(LevelFilter::WARN),
        "info" | "verbose" => Some(LevelFilter::INFO),
        "debug" => Some(LevelFilter::DEBUG),
        "trace" => Some(LevelFilter::TRACE),
        _ => None,
    }
}
