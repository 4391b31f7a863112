//! The measuring client for OpenAI-compatible servers. Bytes get their time stamp where
//! they are read from the socket; everything else happens afterwards, in pure functions.

pub(crate) mod arrival;
mod chat;
mod clock;
mod endpoint;
mod recording;
mod send;
pub(crate) mod sse;
mod trace;

pub use chat::{Api, Asked, ChatRequest, Usage};
pub use endpoint::{Connection, Endpoint, EndpointError};
pub use recording::Recording;
pub use send::{Prepared, Run};
pub use sse::{Event, Parser};
pub use trace::{Chunk, FaultKind, RequestFault, RequestTrace, other_model};

pub(crate) use send::Exchange;
pub(crate) use trace::{StreamReader, Transfer};
