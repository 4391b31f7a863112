//! Quality, apart from speed: fixed prompts as data, a pure judge, separate columns.
//! Never a score.

mod ask;
mod judge;
mod record;
mod set;

use crate::config::BenchSettings;
pub use ask::ask;
pub use judge::{Answers, field_agreement, judge};
pub use record::{AnswerRecord, ArmQuality, FieldRecord, Moment, ProbeRecord, Share, Stability, StructureRecord, Tier};
use std::path::Path;

pub use set::{FieldSpec, Probe, ProbeFile, ProbeSet, ProbeSpec, SetError, StructureSpec};

/// The probes of a course: those of `bench.probes`, as many as `bench.probe_count`; `None`
/// when there are to be none.
///
/// # Errors
/// It cannot be read, or is no probe set.
pub fn chosen(settings: &BenchSettings, root: &Path) -> Result<Option<ProbeSet>, SetError> {
    if settings.probes.is_empty() || settings.probes == "none" {
        return Ok(None);
    }
    Ok(Some(ProbeSet::named(&settings.probes, root)?.first(settings.probe_count as usize)))
}
