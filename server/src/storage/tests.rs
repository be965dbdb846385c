//! Tests of log and state together, over real disks.

mod conformance;
mod crash;
mod damage;
mod kit;
mod log;
mod state;
