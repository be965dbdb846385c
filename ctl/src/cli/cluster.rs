//! `quoratectl cluster …`

use clap::Subcommand;
use quorate_client::Endpoint;

const INIT_HELP: &str = "\
The birth of a cluster is done once in its life, by a person: replicas that find nothing on their
disks do not guess whether a cluster was there before them. Repeating the command is safe: it says
that the cluster has been born, and fails only if its members are not the ones named here.

Without --member the replicas bring together those that they were started with as peers. Every
member must be running: an absent one could hold the data of an older cluster.

Example:
  quoratectl --insecure cluster init --member quorate-0=127.0.0.1:7600 \\
    --member quorate-1=127.0.0.1:7610 --member quorate-2=127.0.0.1:7620";

const STATUS_HELP: &str = "\
Every replica of --endpoints is asked for its own view; nothing is forwarded. LAST, COMMITTED,
APPLIED and CHECKPOINT are log indexes: what a replica has written, what it knows to be on a
majority, what is in its memory's state, and what of that is on its disk. Replicas of a quiet
cluster agree on the first three.

Exit code: 0 with a leader, 1 without one, 3 if no replica answers.";

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Bring a new cluster to life, once
    #[command(after_help = INIT_HELP)]
    Init {
        /// A voter, by the name and address that it advertises; repeat for each
        #[arg(long = "member", value_name = "NAME=HOST:PORT")]
        members: Vec<Endpoint>,
    },
    /// Ask every replica how it is
    #[command(after_help = STATUS_HELP)]
    Status,
}
