//! `quoratectl`, the admin command line of Quorate.
//!
//! In reading order:
//! - `cli`: what may be written on the command line, and its help.
//! - `session`: the client made of it.
//! - `command`: one file a noun: ask the cluster, show the answer.
//! - `view`: what is shown: stable types of our own, apart from the wire's.
//! - `output`: tables, JSON, YAML.
//! - `error`: how a command fails: what, why, remedy, exit code.
//!
//! Results go to stdout and nothing else does. The retry policy is the client's.

mod cli;
mod command;
mod error;
mod output;
mod session;
mod text;
mod utc;
mod view;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::Cli;
use crate::error::Error;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // A few calls, one after the other: threads would only cost their start.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(source) => return fail(&Error::Runtime(source)),
    };
    match runtime.block_on(command::run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough.
        Err(Error::Write(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error),
    }
}

fn fail(error: &Error) -> ExitCode {
    // If stderr is closed the exit code still tells.
    drop(writeln!(std::io::stderr(), "{}", error.report()));
    ExitCode::from(error.exit_code())
}
