//! A frozen, fair experiment: one variable, interleaved arms, phases apart.

pub mod record;
