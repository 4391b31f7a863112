//! Quality, apart from speed: fixed prompts as data, a pure judge, separate columns.
//! Never a score.

mod ask;
mod judge;
mod record;
mod set;

pub use ask::ask;
pub use judge::{Answers, field_agreement, judge};
pub use record::{AnswerRecord, ArmQuality, FieldRecord, Moment, ProbeRecord, Share, Stability, StructureRecord, Tier};
pub use set::{FieldSpec, Probe, ProbeFile, ProbeSet, ProbeSpec, SetError, StructureSpec};
