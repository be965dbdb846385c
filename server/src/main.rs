//! `quorate-server`: arguments, log, replica, drain.

use std::process::ExitCode;

use clap::Parser;
use quorate_server::serve::{self, ServeError};
use quorate_server::settings::{LogFormat, Settings};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// openraft warns at each call that a silent peer does not answer, and calls an ordered stop an
/// error; we say both once.
const DEFAULT_LOG: &str = "info,openraft=error,openraft::raft::stream_append=off";
/// Exit code of a replica that could not start.
const NOT_STARTED: u8 = 1;
/// Exit code of a replica that had to stop.
const HAD_TO_STOP: u8 = 3;

fn main() -> ExitCode {
    let settings = Settings::parse();
    if settings.print_config {
        return print_config(&settings);
    }
    start_log(settings.log_format);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "the runtime does not start");
            return ExitCode::from(NOT_STARTED);
        }
    };
    match runtime.block_on(run(settings)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = %format!("{error:#}"), "replica ends");
            let stopped = error.downcast_ref::<ServeError>();
            let had_to = matches!(stopped, Some(ServeError::Failed(_) | ServeError::Stop(_)));
            ExitCode::from(if had_to { HAD_TO_STOP } else { NOT_STARTED })
        }
    }
}

async fn run(settings: Settings) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    Ok(serve::run(settings, stop).await?)
}

fn start_log(format: LogFormat) {
    let filter =
        EnvFilter::try_from_env("QUORATE_LOG").unwrap_or_else(|_unset| EnvFilter::new(DEFAULT_LOG));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => {
            log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init()
        }
        LogFormat::Json => log.json().init(),
    }
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "what this flag is for")]
fn print_config(settings: &Settings) -> ExitCode {
    match serde_json::to_string_pretty(settings) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("quorate-server: the settings cannot be shown: {error}");
            ExitCode::from(NOT_STARTED)
        }
    }
}
