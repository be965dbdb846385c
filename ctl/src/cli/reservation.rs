//! `quoratectl reservation …`

use clap::Subcommand;

use super::parse;

const CREATE_HELP: &str = "\
A reserved address is handed out to nobody, or only to the pod that --identity names (a sticky
address of a StatefulSet's pod). An owner that has the address already keeps it.

Examples:
  quoratectl reservation create 10.20.0.8-10.20.0.15 --note 'printers, ticket 4711'
  quoratectl reservation create 10.20.0.20 --identity shop/db-0";

#[derive(Debug, Subcommand)]
pub(crate) enum ReservationCommand {
    /// List reservations of a space
    List {
        /// Address space
        #[arg(long, default_value = "default")]
        space: String,
    },
    /// Keep an address or a range back
    #[command(after_help = CREATE_HELP)]
    Create {
        /// One address, or FIRST-LAST
        #[arg(value_parser = parse::range, value_name = "ADDRESS|FIRST-LAST")]
        range: parse::Range,
        /// Address space
        #[arg(long, default_value = "default")]
        space: String,
        /// The pod that may have it
        #[arg(long, value_parser = parse::identity, value_name = "NAMESPACE/NAME")]
        identity: Option<String>,
        /// Why, for those who come after
        #[arg(long, default_value = "", hide_default_value = true)]
        note: String,
    },
    /// Give a reservation up; name it by the same range
    #[command(after_help = "Example:\n  quoratectl reservation delete 10.20.0.8-10.20.0.15")]
    Delete {
        /// One address, or FIRST-LAST, as it was created
        #[arg(value_parser = parse::range, value_name = "ADDRESS|FIRST-LAST")]
        range: parse::Range,
        /// Address space
        #[arg(long, default_value = "default")]
        space: String,
    },
}
