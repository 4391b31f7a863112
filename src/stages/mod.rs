//! The stages, one module each: gather, call the pure part, say what was found.

pub mod answers;
pub mod conclude;
mod enlarged;
pub mod links;
pub mod schema;
pub mod smoke;
pub mod static_checks;

/// What a stage of the chain may know about the run it is part of.
#[derive(Debug, Clone, Default)]
pub struct Chain {
    /// Part of `verify all`.
    pub in_chain: bool,
    /// `--require-results`: the result file of a chosen project must be there.
    pub require_results: bool,
    /// Projects whose smoke ran in this run.
    pub smoke_ran: Vec<u32>,
    /// Those of them whose smoke passed.
    pub smoke_passed: Vec<u32>,
    /// The smoke stage is part of this run.
    pub smoke_in_chain: bool,
    /// The backend that was named for the chain.
    pub backend: crate::cli::BackendChoice,
}
