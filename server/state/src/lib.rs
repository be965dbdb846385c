//! The pure state machine of Quorate: everything that decides who gets an address, and it alone.
//!
//! [`State::apply`] takes a [`Command`] and the moment [`At`] which it stands, and returns an
//! [`Outcome`] and the [`Changes`]. There is deliberately no I/O, clock, randomness, thread or
//! async here: the same commands give the same state on every replica, which [`State::digest`]
//! lets replicas compare.
//!
//! Reading order: [`types`], [`command`], [`outcome`], [`record`], [`state`]; then `apply` with
//! `apply/allocate`, and [`range`]; `write` with the indexes that it keeps (`space`, `cidrs`,
//! `intervals`, `allocations`, `fences`); `read`, `load`, `digest`, [`invariants`].

mod allocations;
mod apply;
mod cidrs;
pub mod command;
mod digest;
mod fences;
mod intervals;
pub mod invariants;
mod load;
mod number;
pub mod outcome;
pub mod range;
mod read;
pub mod record;
mod space;
pub mod state;
pub mod types;
mod write;

pub use apply::{FENCE_LIFE_MS, FORCED_REUSE_AFTER_MS, INLINE_COOL_DOWN_MS, MAX_FENCES_OF_NODE};
pub use command::Command;
pub use invariants::Broken;
pub use outcome::{Changes, Done, Outcome, Refusal};
pub use record::{Key, Record};
pub use state::{AddressStatus, At, Corrupt, PoolCounters, State};
