//! What the plugin says to a person who runs it by hand.

use std::ffi::OsString;

use crate::cni::Version;
use crate::{node, statedir};

/// The text that `--version` or `--help` asks for. Runtimes give no arguments; others are ignored,
/// as by the reference plugins.
pub fn asked(arguments: impl IntoIterator<Item = OsString>) -> Option<String> {
    arguments.into_iter().find_map(|argument| match argument.to_str()? {
        "--version" | "-V" => Some(version()),
        "--help" | "-h" => Some(help()),
        _ => None,
    })
}

fn version() -> String {
    format!("quorate {}\nCNI versions: {}\n", env!("CARGO_PKG_VERSION"), spoken())
}

fn spoken() -> String {
    Version::ALL.map(Version::as_str).join(", ")
}

/// What it is and how it is used.
pub fn help() -> String {
    format!(
        "\
quorate {version}: CNI IPAM plugin of Quorate, which keeps addresses in a replicated log.

It is run by a container runtime, not by hand: the verb is in the environment (CNI_COMMAND=ADD,
DEL, CHECK, GC, STATUS or VERSION, with CNI_CONTAINERID, CNI_NETNS and CNI_IFNAME), the network
configuration on stdin, the result on stdout.

CNI versions: {spoken}

A configuration:
  {{\"cniVersion\": \"1.0.0\", \"name\": \"storage\", \"type\": \"macvlan\", \"master\": \"eth1\",
   \"ipam\": {{\"type\": \"quorate\", \"range\": \"10.20.0.0/16\", \"exclude\": [\"10.20.0.0/28\"]}}}}
Keys of \"ipam\":
  range, range_start, range_end, exclude, ipRanges     as in whereabouts
  subnet, rangeStart, rangeEnd, ranges                 as in host-local
  pools: [\"NAME\"] or [[\"NAME\", \"OTHER\"], [\"V6\"]]   pools of `quoratectl pool create`, a slot each
  space or network_name                                the address space; \"default\" if unset
  gateway, routes, dns, resolvConf, addresses          told to the container
  wholePrefix, allowOffSubnetGateway, lenient          allow what is refused otherwise
  strict                                               refuse unknown keys instead of logging them
  nodeFile, addTimeoutMs, delTimeoutMs, log_file, log_level
Addresses by name: CNI_ARGS IP=, args.cni.ips, runtimeConfig.ips; ranges: runtimeConfig.ipRanges.

The node file says who this node is and where the servers are, by default {node_file}:
  {{\"cluster\": \"prod\", \"node\": \"worker-7\", \"insecure\": true,
   \"endpoints\": [{{\"name\": \"quorate-0\", \"address\": \"127.0.0.1:7600\"}}]}}
Epoch, ledger and spool are in {state_dir} unless its \"stateDir\" says otherwise.

Try it:  echo '{{}}' | CNI_COMMAND=VERSION quorate
",
        version = env!("CARGO_PKG_VERSION"),
        spoken = spoken(),
        node_file = node::DEFAULT,
        state_dir = statedir::DEFAULT,
    )
}
