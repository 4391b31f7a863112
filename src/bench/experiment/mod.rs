//! A frozen, fair experiment: one variable, interleaved arms, phases apart.

pub mod paired;
pub mod record;
pub mod schedule;
pub mod spec;
