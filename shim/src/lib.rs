//! The CNI IPAM plugin of Quorate: what a container runtime runs for each interface, for a few
//! milliseconds.
//!
//! In reading order:
//! - [`cni`]: the contract with the runtime: environment, versions, results, errors, stdout.
//! - [`config`]: the network configuration on stdin.
//! - [`verbs`]: ADD, DEL, CHECK, GC, STATUS, VERSION, top to bottom.
//! - [`session`]: one invocation's way to the cluster; [`failure`]: how its errors are told.
//! - [`node`]: the node file.
//! - [`statedir`]: the plugin's folder, and in it [`epoch`], [`ledger`], [`spool`] (delivered by
//!   [`drain`]) and [`breaker`]; [`durable`], [`bounded`], [`attachment`] and [`lock`]: their bytes
//!   and their locks.
//! - [`kernel`]: boot id, boot time, network namespaces.
//! - [`stdin`], [`log`], [`about`]: the rest of what a process talks to.
//!
//! Deliberately absent: threads, daemons, the Kubernetes API, and any decision about addresses,
//! which is the service's alone.

pub mod about;
pub mod attachment;
pub mod bounded;
pub mod breaker;
pub mod cni;
pub mod config;
pub mod drain;
pub mod durable;
pub mod epoch;
pub mod failure;
pub mod kernel;
pub mod ledger;
pub mod lock;
pub mod log;
pub mod node;
pub mod session;
pub mod spool;
pub mod statedir;
pub mod stdin;
pub mod verbs;
