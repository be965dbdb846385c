//! The real binary, against a server that does what the test says.
//!
//! - [`support`]: the server, and a node with its folder to run the plugin on.
//! - [`contract`]: what needs no server: environment, stdin, versions, codes.
//! - [`results`]: what ADD prints, and asks for.
//! - [`outcomes`]: what errors of the service become, and what they leave behind.
//! - [`outage`]: deadlines, the spool and the breaker.
//! - [`files`]: epoch, ledger and spool that are lost, torn or unusable.
//! - [`stamps`]: whose boot each request names, and how far epochs go.
//! - [`pipes`]: pipes where files should be.
//! - [`other_verbs`]: CHECK, GC, STATUS; [`sight`]: what GC takes for gone.

#![allow(clippy::unwrap_used, reason = "what a helper of a test cannot do fails the test")]

mod contract;
mod files;
mod other_verbs;
mod outage;
mod outcomes;
mod pipes;
mod results;
mod sight;
mod stamps;
mod support;
