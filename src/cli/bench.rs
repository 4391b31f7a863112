//! `verify bench` and `verify calibrate`.

use crate::client::Api;
use crate::model::Partition;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// How requests of an open loop arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Arrival {
    /// At equal distances.
    Constant,
    /// At random, as from many independent users; the seed decides.
    #[default]
    Poisson,
}

/// What is raised step by step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ramp {
    /// Requests in flight: 1, 2, 4, …
    Concurrency,
    /// Requests per second: from --request-rate on, doubled each time.
    Rate,
}

/// A question about the quality of the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum QualityProbe {
    /// The mean log-probability of generated tokens.
    Logprobs,
}

/// Arguments of `verify bench`.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// Experiment to run: EXPERIMENT.toml fixes everything and varies one thing
    #[arg(value_name = "EXPERIMENT", conflicts_with_all = ["base_url", "model"])]
    pub experiment: Option<PathBuf>,
    /// The experiment.
    #[command(flatten)]
    pub run: ExperimentArgs,
    /// The server.
    #[command(flatten)]
    pub server: BenchServer,
    /// The load.
    #[command(flatten)]
    pub load: BenchLoad,
    /// The workload.
    #[command(flatten)]
    pub workload: BenchWorkload,
    /// The verdict.
    #[command(flatten)]
    pub verdict: BenchVerdict,
}

/// How an experiment is run.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Experiment")]
pub struct ExperimentArgs {
    /// Folder of the experiment [default: EXPERIMENT.run beside the file]
    #[arg(long, value_name = "DIR", requires = "experiment")]
    pub out_dir: Option<PathBuf>,
    /// Go on with an experiment that was interrupted
    #[arg(long, requires = "experiment", conflicts_with = "fresh")]
    pub resume: bool,
    /// Begin anew; what lies in the folder is kept under another name
    #[arg(long, requires = "experiment")]
    pub fresh: bool,
    /// Install nothing and download nothing
    #[arg(long, requires = "experiment")]
    pub offline: bool,
}

/// Which server is measured.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Server")]
pub struct BenchServer {
    /// Address of a running server, with or without /v1
    #[arg(long, value_name = "URL", required_unless_present = "experiment")]
    pub base_url: Option<String>,
    /// The model, as the server names it
    #[arg(long, value_name = "ID", required_unless_present = "experiment")]
    pub model: Option<String>,
    /// Route: /v1/chat/completions or /v1/completions
    #[arg(long, value_enum, default_value_t, value_name = "ROUTE")]
    pub endpoint: Api,
    /// Name of the environment variable that holds the API key
    #[arg(long, value_name = "VAR")]
    pub api_key_env: Option<String>,
    /// Seconds until the server must be ready
    #[arg(long, value_name = "S", default_value_t = 30.0, value_parser = seconds)]
    pub ready_timeout: f64,
}

/// How requests are sent.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Load")]
pub struct BenchLoad {
    /// Measured requests
    #[arg(short = 'n', long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub num_prompts: u32,
    /// Closed loop: requests in flight [default: 1]
    #[arg(short = 'c', long, value_name = "C", value_parser = clap::value_parser!(u32).range(1..=65_536), conflicts_with_all = ["request_rate", "trace"])]
    pub concurrency: Option<u32>,
    /// Open loop: requests per second; latency also counts from the planned time
    #[arg(long, value_name = "R", value_parser = rate, conflicts_with = "trace")]
    pub request_rate: Option<f64>,
    /// Arrivals of the open loop
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub arrival: Arrival,
    /// Open loop: requests in flight at most; waiting for it is shown as client queue
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub max_concurrency: Option<u32>,
    /// Raise the load step by step until throughput gains less than 5 %, and name the knee
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "trace")]
    pub ramp: Option<Ramp>,
    /// Requests before the measured ones, kept apart [default: the concurrency, 2 at least]
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub warmup: Option<u32>,
    /// Seconds for one request
    #[arg(long, value_name = "S", default_value_t = 120.0, value_parser = seconds)]
    pub timeout: f64,
    /// Further tries after 429 and 503; Retry-After is honoured
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub retries: u32,
    /// Seed of arrivals, of prompts and of the mix of tenants
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Several generators.
    #[command(flatten)]
    pub together: BenchTogether,
}

/// How one load is sent by several processes, on one machine or on many.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Several generators")]
pub struct BenchTogether {
    /// Send the Kth of N parts of this load; every part gets the same options, `verify merge` joins what --save-requests wrote
    #[arg(long, value_name = "K/N", requires = "save_requests", conflicts_with_all = ["experiment", "ramp"])]
    pub partition: Option<Partition>,
    /// Address where the parts agree on the start and compare their clocks; part 1 listens there
    #[arg(long, value_name = "HOST:PORT", requires = "partition", conflicts_with = "start_at")]
    pub meet: Option<String>,
    /// Start of the load by wall clock, such as 2026-12-01T12:00:00Z, where the parts cannot reach each other
    #[arg(long, value_name = "TIME", requires = "partition")]
    pub start_at: Option<jiff::Timestamp>,
}

/// What is asked.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Workload")]
pub struct BenchWorkload {
    /// Tokens of an answer at most
    #[arg(long, value_name = "M", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_tokens: u32,
    /// The same prompt for every request [default: prompts of our own, no two alike]
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["workload", "trace", "shared_prefix"])]
    pub prompt: Option<String>,
    /// JSONL file of prompts: {"prompt" or "messages", "max_tokens", "id"}
    #[arg(long, value_name = "FILE", conflicts_with = "trace")]
    pub workload: Option<PathBuf>,
    /// JSONL file of requests with their times in seconds: {"t", "prompt", "max_tokens"}
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Turns of a conversation; each waits for the answer of the one before
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000), conflicts_with = "trace")]
    pub turns: u32,
    /// Words that all prompts have in common at their beginning
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000), conflicts_with = "trace")]
    pub shared_prefix: Option<u32>,
    /// Mix of tenants, such as chat=3:max_tokens=32,batch=1:max_tokens=256:words=400
    #[arg(long, value_name = "SPEC", conflicts_with = "trace")]
    pub tenants: Option<crate::bench::plan::Tenants>,
    /// Ask for answers of full length (ignore_eos), where the server knows it
    #[arg(long)]
    pub ignore_eos: bool,
    /// Questions about quality, asked after the load and kept apart from it
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PROBE")]
    pub quality_probes: Vec<QualityProbe>,
}

/// What is demanded, and what is kept.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Verdict")]
pub struct BenchVerdict {
    /// Targets in ms, such as ttft:200,tpot:50,e2e:3000: how many requests meet all of them
    #[arg(long, value_name = "TARGETS")]
    pub goodput: Option<crate::bench::plan::Targets>,
    /// Share of requests that may fail, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub tolerate_failures: f64,
    /// Write what happened in every request to FILE, one JSON line each
    #[arg(long, value_name = "FILE")]
    pub save_requests: Option<PathBuf>,
    /// Do not measure the client's own error first
    #[arg(long)]
    pub no_self_check: bool,
}

/// Arguments of `verify calibrate`.
#[derive(Debug, Clone, Args)]
pub struct CalibrateArgs {
    /// Requests in flight; several may be given
    #[arg(short = 'c', long, value_name = "C", value_delimiter = ',', default_values_t = [1, 16, 64, 256], value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub concurrency: Vec<u32>,
}

fn number(text: &str) -> Result<f64, String> {
    text.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(|| "a number is needed".to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    number(text).and_then(|seconds| {
        (seconds > 0.0 && seconds <= 1e6).then_some(seconds).ok_or_else(|| "more than 0 seconds are needed".to_owned())
    })
}

fn rate(text: &str) -> Result<f64, String> {
    number(text)
        .and_then(|rate| (rate > 0.0 && rate <= 1e6).then_some(rate).ok_or_else(|| "more than 0 a second".to_owned()))
}

fn share(text: &str) -> Result<f64, String> {
    number(text).and_then(|share| {
        (0.0..=1.0).contains(&share).then_some(share).ok_or_else(|| "a share from 0 to 1 is needed".to_owned())
    })
}
