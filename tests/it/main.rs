//! The binary, driven from outside. One test program, so that it links once.

mod answers;
mod cli;
mod course;
mod links;
mod normalize;
mod policy;
mod schema;
mod schemas;
mod static_checks;
mod support;
