//! What may be written on the command line. Parsing ends here: the rest gets types.

mod address;
mod cluster;
pub(crate) mod parse;
mod pool;
mod reservation;

use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use quorate_client::Endpoint;

pub(crate) use address::AddressCommand;
pub(crate) use cluster::ClusterCommand;
pub(crate) use pool::{PoolCommand, PoolFields};
pub(crate) use reservation::ReservationCommand;

/// Under this the options of every command are listed, apart from its own.
const COMMON: &str = "Common options";

const AFTER_HELP: &str = "\
Exit codes:
  0  done
  1  refused by the cluster, or failed: the message on stderr says why and what to do
  2  the command line is wrong
  3  the cluster could not be reached, or did not answer in time

Examples:
  export QUORATE_ENDPOINTS=quorate-0=127.0.0.1:7600,quorate-1=127.0.0.1:7610
  quoratectl --insecure cluster status
  quoratectl --insecure pool create prod --cidr 10.20.0.0/16 --gateway 10.20.0.1
  quoratectl --insecure address show 10.20.0.7
  quoratectl --insecure -o json address list --pool prod | jq -r '.addresses[].address'";

/// See and change what a Quorate cluster hands out.
#[derive(Debug, Parser)]
#[command(name = "quoratectl", version, after_help = AFTER_HELP, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Replicas of the cluster, as NAME=HOST:PORT or HOST:PORT; any of them will do, more of them
    /// survive the loss of one
    #[arg(
        long,
        global = true,
        help_heading = COMMON,
        env = "QUORATE_ENDPOINTS",
        value_delimiter = ',',
        value_name = "NAME=HOST:PORT,…",
        hide_env_values = true
    )]
    pub(crate) endpoints: Vec<Endpoint>,

    /// How long the command may take, such as 500ms, 5s or 2m [default: 5s; cluster init: 30s]
    #[arg(
        long, global = true, help_heading = COMMON,
        value_parser = parse::duration, value_name = "DURATION"
    )]
    pub(crate) timeout: Option<Duration>,

    /// Speak plain text, to replicas on this machine's loopback only
    #[arg(long, global = true, help_heading = COMMON)]
    pub(crate) insecure: bool,

    /// How results are written
    #[arg(
        short, long, global = true, help_heading = COMMON,
        value_enum, default_value_t = Format::Table
    )]
    pub(crate) output: Format,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people; may change
    Table,
    /// For programs; keys stay
    Json,
    /// The same as json, in YAML
    Yaml,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Its birth, and how its replicas are
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Where addresses come from
    #[command(subcommand)]
    Pool(PoolCommand),
    /// Who holds which address
    #[command(subcommand)]
    Address(AddressCommand),
    /// Addresses that are kept back
    #[command(subcommand)]
    Reservation(ReservationCommand),
    /// Write a completion script for a shell
    #[command(
        after_help = "Example:\n  quoratectl completion bash > /etc/bash_completion.d/quoratectl"
    )]
    Completion {
        /// The shell
        shell: Shell,
    },
    /// Write the version of this program
    Version,
}
