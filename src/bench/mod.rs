//! Running a workload and deriving figures from what happened.

pub mod experiment;
pub mod load;
pub mod metrics;
pub mod stats;
pub mod workload;
