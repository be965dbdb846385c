//! One file a noun: ask the cluster, show the answer.

mod address;
mod cluster;
mod pages;
mod pool;
mod reservation;

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::cli::{Cli, Command};
use crate::error::Result;
use crate::output;
use crate::session::Session;
use crate::view::Version;

/// Does what the command line says.
pub(crate) async fn run(cli: Cli) -> Result<()> {
    match &cli.command {
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "quoratectl", &mut script);
            Ok(std::io::stdout().write_all(&script)?)
        }
        Command::Version => {
            output::write(cli.output, &Version { version: env!("CARGO_PKG_VERSION") })
        }
        Command::Cluster(_) | Command::Pool(_) | Command::Address(_) | Command::Reservation(_) => {
            let session = Session::open(&cli)?;
            ask(&session, cli.command).await
        }
    }
}

async fn ask(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::Cluster(command) => cluster::run(session, command).await,
        Command::Pool(command) => pool::run(session, command).await,
        Command::Address(command) => address::run(session, command).await,
        Command::Reservation(command) => reservation::run(session, command).await,
        Command::Completion { .. } | Command::Version => Ok(()),
    }
}

/// A line for whoever watches; stdout is for results only.
fn tell(line: &str) {
    // If nobody can read it, nobody misses it.
    drop(writeln!(std::io::stderr(), "{}", crate::text::plain(line)));
}
