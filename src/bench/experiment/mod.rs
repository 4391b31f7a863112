//! A frozen, fair experiment: one variable, interleaved arms, phases apart.

pub(crate) mod engine;
pub mod figures;
pub mod manifest;
pub(crate) mod notes;
pub mod paired;
pub mod record;
pub(crate) mod result;
pub(crate) mod sample;
pub mod schedule;
pub(crate) mod setup;
pub mod spec;
pub mod store;
pub(crate) mod verdict;
pub(crate) mod words;
