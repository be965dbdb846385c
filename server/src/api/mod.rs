//! The edge: gRPC services `Ipam` and `Admin`. Handlers translate, and nothing else.
//!
//! - [`ipam`]: what nodes call; [`admin`]: what people and tools call.
//! - [`route`]: which replica answers, until when, and the header of every answer.
//! - [`mod@status`][]: errors.

pub mod admin;
pub mod ipam;
mod pages;
pub mod route;
pub mod status;

pub use route::Edge;
