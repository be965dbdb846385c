//! The pure state machine of Quorate: everything that decides who gets an address, and it alone.
//!
//! [`State::apply`] takes a [`Command`] and the moment [`At`] which it stands, and returns an
//! [`Outcome`] and the [`Changes`]. There is deliberately no I/O, clock, randomness, thread or
//! async here: the same commands give the same state on every replica, which [`State::digest`]
//! lets replicas compare.
//!
//! Reading order: [`types`], [`command`], [`outcome`], [`record`], [`state`].

pub mod command;
pub mod outcome;
pub mod record;
pub mod state;
pub mod types;

pub use command::Command;
pub use outcome::{Changes, Done, Outcome, Refusal};
pub use record::{Key, Record};
pub use state::{AddressStatus, At, Corrupt, PoolCounters, State};
