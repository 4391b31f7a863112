//! Commands on result files: `schema`, `conclude`, `compare`, `normalize`.

use crate::config::SchemaLevel;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `verify schema`.
#[derive(Debug, Clone, Default, Args)]
pub struct SchemaArgs {
    /// Result files, folders and glob patterns [default: the results folder]
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// How much is demanded
    #[arg(long, value_enum)]
    pub level: Option<SchemaLevel>,
    /// Print the JSON schema of inference-benchmark/v1
    #[arg(long)]
    pub print_schema: bool,
    /// Run again after every change, until Ctrl-C
    #[arg(long, conflicts_with = "print_schema")]
    pub watch: bool,
}

/// Arguments of `verify conclude`.
#[derive(Debug, Clone, Default, Args)]
pub struct ConcludeArgs {
    /// Result files, folders and glob patterns [default: those of the projects]
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Result file that the others are compared with [default: STEM.baseline.json beside each]
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
}

/// Arguments of `verify compare`.
#[derive(Debug, Clone, Default, Args)]
pub struct CompareArgs {
    /// The baseline
    pub baseline: PathBuf,
    /// The candidates
    #[arg(required = true)]
    pub candidates: Vec<PathBuf>,
}

/// Which tool wrote a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum SourceFormat {
    /// Told by its members.
    #[default]
    Auto,
    /// The course's own client, its normalizer and its notebooks.
    Raw,
    /// vllm bench serve.
    VllmBench,
    /// sglang bench_serving (JSONL).
    SglangBench,
    /// guidellm.
    Guidellm,
    /// AIPerf.
    Aiperf,
    /// GenAI-Perf.
    GenaiPerf,
    /// LLMPerf summary.
    Llmperf,
}

/// Arguments of `verify normalize`.
#[derive(Debug, Clone, Default, Args)]
pub struct NormalizeArgs {
    /// Historical result files, folders and glob patterns; --output names the migrated file [default: STEM_normalized.json beside the input]
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Folder for the migrated files, which keep their names
    #[arg(long, value_name = "DIR")]
    pub out_dir: Option<PathBuf>,
    /// Which tool wrote it
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub from: SourceFormat,
    /// Line of a JSONL file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub line: Option<u32>,
    /// Benchmark of a guidellm report, counted from 0
    #[arg(long, value_name = "N")]
    pub index: Option<u32>,
    /// Group of a pair manifest
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
    /// Write nothing, show what would change
    #[arg(long)]
    pub dry_run: bool,
    /// Write nothing, exit 1 if something would be written
    #[arg(long)]
    pub check: bool,
    /// Replace a different file of that name; it is kept in history/
    #[arg(long)]
    pub force: bool,
    /// What the file lacks.
    #[command(flatten)]
    pub stated: Stated,
}

/// What the user states about a file; it wins over everything recorded.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "What the file lacks")]
pub struct Stated {
    /// Section of the course
    #[arg(long, value_name = "N")]
    pub project: Option<String>,
    /// What was tried
    #[arg(long, value_name = "NAME")]
    pub strategy: Option<String>,
    /// The model
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// The engine
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// The precision that ran
    #[arg(long, value_name = "TYPE")]
    pub dtype: Option<String>,
    /// Batch size
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub batch: Option<u64>,
    /// Requests in flight
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub concurrency: Option<u64>,
    /// Whether prefixes were cached
    #[arg(long, value_name = "NAME")]
    pub cache_policy: Option<String>,
    /// Peak memory in MiB
    #[arg(long, value_name = "MB")]
    pub peak_memory_mb: Option<f64>,
    /// What that figure counts: rss, device_used, device_reserved, …
    #[arg(long, value_name = "SCOPE")]
    pub memory_scope: Option<String>,
}
