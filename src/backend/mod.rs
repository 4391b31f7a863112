//! Backends: what they are (profiles, data), how they are provisioned, started, stopped.

mod profile;

pub use profile::BackendProfile;
