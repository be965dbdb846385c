//! `quoratectl address …`

use std::net::IpAddr;

use clap::Subcommand;

use super::parse;

const LIST_HELP: &str = "\
Examples:
  quoratectl address list --pool prod
  quoratectl address list --node east/worker-17
  quoratectl -o json address list | jq -r '.addresses[] | [.address, .pod.name] | @tsv'";

const SHOW_HELP: &str = "\
Says who holds the address and since when, and who held it before (the last 100 changes).

Example:
  quoratectl address show 10.20.0.7";

#[derive(Debug, Subcommand)]
pub(crate) enum AddressCommand {
    /// List addresses that have an owner, in their order
    #[command(after_help = LIST_HELP)]
    List {
        /// Address space
        #[arg(long, default_value = "default")]
        space: String,
        /// Only addresses inside this pool's network
        #[arg(long, value_name = "NAME")]
        pool: Option<String>,
        /// Only attachments of this node
        #[arg(long, value_name = "CLUSTER/NODE", value_parser = parse::node)]
        node: Option<(String, String)>,
    },
    /// Show who holds an address, and who held it
    #[command(after_help = SHOW_HELP)]
    Show {
        /// The address, without a prefix length
        address: IpAddr,
        /// Address space
        #[arg(long, default_value = "default")]
        space: String,
    },
}
