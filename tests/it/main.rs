//! The binary, driven from outside. One test program, so that it links once.

#![expect(unreachable_pub, reason = "nothing in a test program is public; `pub` marks what other modules use")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops, and says where")]

mod answers;
#[cfg(target_os = "linux")]
mod backend;
#[cfg(target_os = "linux")]
mod bench;
mod cli;
mod course;
mod delivery;
mod download;
mod experiment;
mod explain;
mod formats;
mod hub;
#[cfg(target_os = "linux")]
mod launch;
mod links;
mod normalize;
mod policy;
mod readme;
mod report;
mod safety;
mod schema;
mod schemas;
mod static_checks;
mod support;
#[cfg(target_os = "linux")]
mod watch;
