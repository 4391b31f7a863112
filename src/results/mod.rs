//! Result files: what stands in them, whether it may stand there, what it proves.
//! [`json`] reads text with spans, [`gate`] judges it against the contract that
//! [`v1`] writes down, [`evidence`] judges what it can carry, [`normalize`] brings
//! historical and foreign files into its form, [`compare`] puts two side by side.

pub mod compare;
pub mod evidence;
pub mod files;
pub mod gate;
pub mod jq;
pub mod json;
pub mod normalize;
pub mod v1;
