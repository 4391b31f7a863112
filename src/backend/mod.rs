//! Backends: what they are (profiles, data), how they are provisioned, started, found
//! ready, watched, and what their log says when they fail.

pub mod build;
pub mod counters;
pub mod diagnose;
pub mod doctor;
pub mod download;
pub mod dtype;
mod ending;
pub mod flags;
pub mod gpu;
pub mod gpu_memory;
pub mod launch;
pub mod machine;
pub mod memory;
pub mod model;
pub mod model_id;
pub(crate) mod plan;
mod profile;
pub mod provision;
pub mod ready;
pub mod remote_code;
pub mod resolve;
pub(crate) mod session;
mod socket;
pub mod spec;

pub(crate) use profile::BUILTIN as BUILTIN_PROFILES;
pub use profile::BackendProfile;
