//! The network configuration on stdin, parsed into types; the inside never re-checks.
//!
//! In reading order: [`Network`] (what every verb needs), [`addressing`] (what ADD asks for),
//! [`range`] and [`address`] (their spellings), [`told`] (what the container is told besides),
//! [`fields`] (reading JSON so that nothing is overlooked).
//!
//! Keys of whereabouts and host-local that choose addresses are understood, so that a network
//! moves over by changing `type`; see [`addressing`].

pub mod address;
pub mod addressing;
pub mod error;
pub mod fields;
mod network;
pub mod range;
pub mod told;

pub use addressing::Addressing;
pub use error::Error;
pub use network::Network;
