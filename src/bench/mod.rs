//! Running a workload and deriving figures from what happened.

pub mod calibrate;
pub mod experiment;
pub mod live;
pub mod load;
pub mod meeting;
pub mod metrics;
pub mod notes;
pub mod part;
pub mod plan;
pub mod report;
pub mod runner;
pub mod starvation;
pub mod stats;
pub mod trace_file;
pub mod truth;
pub mod union;
pub mod workload;
