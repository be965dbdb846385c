//! What all tests share.

pub(crate) mod node;
pub(crate) mod server;

pub(crate) use node::{Node, Outcome};
pub(crate) use server::{Call, Reply, Server};
