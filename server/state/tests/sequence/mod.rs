//! Random sequences of commands over so few names and addresses that they collide all the time.
//!
//! A [`Step`] is what proptest draws and shrinks; a [`World`] turns steps into commands, since
//! stamps, retries and victims depend on what came before.
//!
//! Reading order: here, [`steps`], [`names`], [`crowded`], [`world`], [`judged`].

mod crowded;
mod judged;
pub(crate) mod names;
mod steps;
pub(crate) mod world;

pub(crate) use crowded::crowded;
pub(crate) use judged::judged;
pub(crate) use steps::{Step, sequences};
pub(crate) use world::World;
