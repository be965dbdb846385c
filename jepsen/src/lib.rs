//! What drives the real Quorate binaries: for the end-to-end tests, and for the loads that
//! `make burst` and `make bench` print.
//!
//! In reading order:
//! - [`cluster`]: the one test cluster of the project: replicas as processes on loopback.
//! - [`plugin`]: a CNI plugin run as a container runtime runs it.
//! - [`requests`]: what a plugin says to the service, for loads without one.
//! - [`http`]: what a probe asks.
//! - [`left`]: what is still allocated, read from the service.
//! - [`process`], [`ports`], [`binaries`], [`wait`]: what these are made of.
//! - [`burst`]: many pods at once, up and down, beside host-local.
//! - [`mod@bench`]: one allocation, and many, beside the disk they end on.
//! - [`latency`][]: percentiles.
//!
//! Deliberately absent so far: network faults, histories and their checkers.

pub mod bench;
pub mod binaries;
pub mod burst;
pub mod cluster;
pub mod http;
pub mod latency;
pub mod left;
pub mod plugin;
pub mod ports;
pub mod process;
pub mod requests;
pub mod wait;
