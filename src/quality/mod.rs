//! Quality, apart from speed: fixed prompts, a pure judge, separate columns.

mod record;

pub use record::{AnswerRecord, ArmQuality, FieldRecord, Moment, ProbeRecord, Share, Stability, StructureRecord, Tier};
