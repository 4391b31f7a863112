//! The measuring client for OpenAI-compatible servers. Bytes get their time stamp where
//! they are read from the socket; everything else happens afterwards, in pure functions.

mod chat;
mod endpoint;
mod send;
mod sse;
mod trace;

pub use chat::{ChatRequest, Usage};
pub use endpoint::{Connection, Endpoint, EndpointError, Frames, control_client};
pub use send::{CHAT_ROUTE, Run};
pub use sse::{Event, Parser};
pub use trace::{Chunk, FaultKind, RequestFault, RequestTrace, read_stream};
