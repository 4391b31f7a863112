//! `verify all`.

use super::answers::Partition;
use super::smoke::BackendChoice;
use crate::model::StageId;
use clap::Args;

/// Arguments of `verify all`.
#[derive(Debug, Clone, Default, Args)]
pub struct AllArgs {
    /// Run these stages only
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STAGE", conflicts_with_all = ["from", "until"])]
    pub only: Vec<StageId>,
    /// Leave these stages out
    #[arg(long, value_enum, value_delimiter = ',', value_name = "STAGE")]
    pub skip: Vec<StageId>,
    /// Begin with this stage
    #[arg(long, value_enum, value_name = "STAGE")]
    pub from: Option<StageId>,
    /// End with this stage
    #[arg(long, value_enum, value_name = "STAGE")]
    pub until: Option<StageId>,
    /// Section of the course; may be given several times
    #[arg(long = "project", value_delimiter = ',', value_name = "N")]
    pub projects: Vec<u32>,
    /// Run later stages although an earlier one failed; the exit status is 1 all the same
    #[arg(long)]
    pub keep_going: bool,
    /// Test the notebooks of the Kth of N parts of the course; `verify merge` joins the reports
    #[arg(long, value_name = "K/N")]
    pub partition: Option<Partition>,
    /// Fail when the result file of a chosen project is missing
    #[arg(long)]
    pub require_results: bool,
    /// The backend of the smoke stage.
    #[command(flatten)]
    pub backend: BackendChoice,
}
