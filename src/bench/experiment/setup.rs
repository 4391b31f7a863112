//! From an `EXPERIMENT.toml` to something that can run: every arm with its server, its
//! prompts and its load decided, and all of it frozen in the manifest.

use super::record::{
    ArmManifest, BackendFacts, Decoding, Goodput, LoadFacts, MachineFacts, Manifest, ModelFacts, ProbeSetFacts,
    PromptFacts, WorkloadFacts,
};
use super::spec::{
    ArmSpec, ArrivalSpec, CacheSpec, DecisionSpec, ExperimentSpec, QualityMetric, QualitySpec, Variable, file_name,
};
use crate::backend::doctor;
use crate::backend::plan::{self, ArmWish, Named, Plan, Role, Server};
use crate::bench::plan::Random;
use crate::bench::workload::Workload;
use crate::cli::BackendChoice;
use crate::client::ChatRequest;
use crate::course::Context;
use crate::fsx;
use crate::model::{Finding, RepoPath};
use crate::quality::ProbeSet;
use crate::term::Phase;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Weights larger than this are known by their headers and sizes.
const HASHED_WHOLE: u64 = 2 << 30;
/// Generated prompts of a pass, where nothing else is said.
const GENERATED: u32 = 10;

/// An experiment that can run.
#[derive(Debug, Clone)]
pub(crate) struct Experiment {
    pub(crate) manifest: Manifest,
    pub(crate) arms: Vec<Arm>,
    pub(crate) probes: Option<ProbeSet>,
    /// Its folder.
    pub(crate) folder: PathBuf,
    pub(crate) quality: QualitySpec,
    pub(crate) decision: DecisionSpec,
    /// The cost of an invalidation is measured on arms whose cache is on.
    pub(crate) cache_is_subject: bool,
}

/// One arm that can run.
#[derive(Debug, Clone)]
pub(crate) struct Arm {
    pub(crate) name: String,
    pub(crate) plan: Plan,
    /// The prompts of one pass.
    pub(crate) requests: Vec<ChatRequest>,
    pub(crate) load: LoadFacts,
    /// Requests before the measured ones of a block.
    pub(crate) warmup: u32,
    pub(crate) ignore_eos: bool,
    /// One number stands before all prompts of a pass, else each has its own.
    pub(crate) salt_per_pass: bool,
    /// The server keeps nothing of a prompt.
    pub(crate) cache_off: bool,
    /// No other arm is asked on the same server.
    pub(crate) own_server: bool,
}

/// What an arm is made of, before it is frozen.
pub(crate) struct ArmParts {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) plan: Plan,
    pub(crate) requests: Vec<ChatRequest>,
    pub(crate) load: LoadFacts,
    pub(crate) precision: Option<String>,
    pub(crate) batch: u32,
    pub(crate) warmup: u32,
    pub(crate) prompt_words: Option<u32>,
    pub(crate) ignore_eos: bool,
}

/// What holds for all arms, before it is frozen.
pub(crate) struct Common {
    pub(crate) name: String,
    pub(crate) variable: String,
    pub(crate) repeats: u32,
    pub(crate) seed: u64,
    pub(crate) goodput: Goodput,
    pub(crate) probes: Option<ProbeSet>,
    pub(crate) folder: PathBuf,
    pub(crate) quality: QualitySpec,
    pub(crate) decision: DecisionSpec,
}

/// What a file is set up with.
#[derive(Clone, Copy)]
pub(crate) struct Making<'a> {
    pub(crate) ctx: &'a Context,
    pub(crate) spec: &'a ExperimentSpec,
    pub(crate) variable: Variable,
    pub(crate) named: &'a Named,
    /// Folder of the experiment.
    pub(crate) folder: &'a Path,
    /// Nothing is installed or downloaded.
    pub(crate) offline: bool,
    pub(crate) phase: &'a Phase,
}

/// Sets up what a file describes. The error says which backend, model, key or workload
/// is not there.
pub(crate) fn of_spec(making: Making<'_>, probes: Option<ProbeSet>) -> Result<Experiment, Box<Finding>> {
    let spec = making.spec;
    let arms = spec.vary.arm.iter().enumerate().map(|(index, arm)| arm_of_spec(making, arm, index));
    let arms = arms.collect::<Result<Vec<_>, _>>().map_err(Box::new)?;
    let common = Common {
        name: spec.name.clone(),
        variable: making.variable.name().to_owned(),
        repeats: spec.repeats,
        seed: spec.seed,
        goodput: spec.goodput,
        probes,
        folder: making.folder.to_path_buf(),
        quality: spec.quality.clone(),
        decision: spec.decision.clone(),
    };
    Ok(freeze(common, arms))
}

/// Requests that the server works on at a time: the same for every arm, unless that is
/// the variable.
fn slots(spec: &ExperimentSpec, arm: &ArmSpec) -> u32 {
    let largest = spec.vary.arm.iter().map(|arm| arm.concurrency.unwrap_or(spec.concurrency)).max().unwrap_or(1);
    match arm.batch.unwrap_or(spec.batch) {
        0 => largest.max(1),
        batch => batch,
    }
}

fn features(spec: &ExperimentSpec, arm: &ArmSpec) -> Vec<String> {
    let mut features = spec.features.clone();
    features.push(
        match arm.cache.unwrap_or(spec.cache) {
            CacheSpec::On => "prefix_cache_on",
            CacheSpec::Off => "prefix_cache_off",
        }
        .to_owned(),
    );
    if arm.speculation == Some(CacheSpec::On) {
        features.push("speculation".to_owned());
    }
    features
}

fn arm_of_spec(making: Making<'_>, arm: &ArmSpec, index: usize) -> Result<ArmParts, Finding> {
    let Making { ctx, spec, variable, named, folder, offline, phase } = making;
    let max_tokens = arm.max_tokens.unwrap_or(spec.max_tokens);
    let words = arm.prompt_words.unwrap_or(spec.prompt_words);
    let file = arm.workload.clone().unwrap_or_else(|| spec.workload.clone());
    let workload = workload_of(ctx, &file, spec, words, max_tokens)?;
    let requests = workload.take(spec.requests);
    let concurrency = arm.concurrency.unwrap_or(spec.concurrency);
    let rate = arm.request_rate.or(spec.request_rate.filter(|_| arm.concurrency.is_none()));
    let cache = arm.cache.unwrap_or(spec.cache);
    let batch = slots(spec, arm);
    let mut args = spec.args.clone();
    args.extend(arm.args.iter().flatten().cloned());
    let mut wanted = features(spec, arm);
    if let Named::Profile(profile) = named {
        // The cache cannot be switched where the backend has no flag for it; the counters
        // still show what it did.
        wanted.retain(|feature| profile.features.contains_key(feature) || feature == "speculation");
    }
    let wish = ArmWish {
        strategy: arm.name.clone(),
        role: if index == 0 { Role::Baseline } else { Role::Candidate },
        model: arm.model.clone().unwrap_or_else(|| spec.model.clone()),
        features: wanted,
        args,
        slots: batch,
        limited: arm.batch.is_some() || spec.batch > 0,
        context: spec.context,
        concurrency,
        max_tokens,
        cache_policy: if cache == CacheSpec::On { "prefix" } else { "off" }.to_owned(),
        timeout: Duration::try_from_secs_f64(spec.timeout_s).unwrap_or(Duration::from_secs(120)),
        api_key_env: spec.api_key_env.clone(),
        result: folder.join(format!("{}.json", arm.name)),
        workload_path: RepoPath::new(if file.is_empty() { "generated".to_owned() } else { file.clone() }),
        workload,
    };
    let precision = arm.precision.clone().unwrap_or_else(|| spec.precision.clone());
    let dtype = (!precision.is_empty()).then(|| precision.clone());
    let choice = BackendChoice { dtype, offline, ..BackendChoice::default() };
    let plan = plan::of_experiment(ctx, named, wish, &choice, phase)?;
    Ok(ArmParts {
        name: arm.name.clone(),
        value: arm.value(variable, spec),
        requests,
        load: load_facts(rate, spec.arrival, concurrency),
        precision: Some(precision).filter(|precision| !precision.is_empty()),
        batch,
        warmup: spec.warmup,
        prompt_words: file.is_empty().then_some(words),
        ignore_eos: spec.ignore_eos,
        plan,
    })
}

fn load_facts(rate: Option<f64>, arrival: ArrivalSpec, concurrency: u32) -> LoadFacts {
    match rate {
        None => LoadFacts { shape: "closed".to_owned(), concurrency: Some(concurrency), rate_per_s: None },
        Some(rate) => LoadFacts {
            shape: match arrival {
                ArrivalSpec::Constant => "constant",
                ArrivalSpec::Poisson => "poisson",
            }
            .to_owned(),
            concurrency: None,
            rate_per_s: Some(rate),
        },
    }
}

fn workload_of(
    ctx: &Context,
    file: &str,
    spec: &ExperimentSpec,
    words: u32,
    max_tokens: u32,
) -> Result<Workload, Finding> {
    if !file.is_empty() {
        return plan::read_workload(&ctx.at_root(file), &RepoPath::new(file.to_owned()), max_tokens);
    }
    let count = if spec.requests == 0 { GENERATED } else { spec.requests };
    let requests = generated(count, words, max_tokens, spec.seed);
    let texts: Vec<String> = requests.iter().map(|request| request.messages.to_string()).collect();
    Ok(Workload { sha256: fsx::sha256(texts.join("\n").as_bytes()), requests })
}

/// Words of generated prompts.
const WORDS: [&str; 24] = [
    "river", "paper", "engine", "garden", "window", "letter", "market", "signal", "winter", "bridge", "silver",
    "number", "reason", "travel", "corner", "memory", "silent", "modern", "simple", "narrow", "gentle", "golden",
    "public", "second",
];

/// Prompts of so many words that ask for a summary: no two alike, the same for one seed.
pub(crate) fn generated(count: u32, words: u32, max_tokens: u32, seed: u64) -> Vec<ChatRequest> {
    let mut random = Random::new(seed);
    (1..=count)
        .map(|number| {
            let text: Vec<&str> =
                (0..words).map(|_| WORDS[(random.unit() * WORDS.len() as f64) as usize % WORDS.len()]).collect();
            let prompt = format!("Continue this text for as long as you can: {}", text.join(" "));
            ChatRequest::prompt(format!("generated-{number:03}"), &prompt, max_tokens)
        })
        .collect()
}

/// Freezes an experiment: its manifest with the fingerprint.
pub(crate) fn freeze(common: Common, parts: Vec<ArmParts>) -> Experiment {
    let cache_is_subject = common.variable == Variable::Cache.name();
    let warmup = |part: &ArmParts| match part.warmup {
        0 => part.load.concurrency.unwrap_or(2).max(2),
        given => given,
    };
    let first = parts.first().map(|part| &part.plan);
    let manifest = Manifest {
        fingerprint: String::new(),
        name: common.name,
        variable: common.variable,
        backend: first.map(backend_facts).unwrap_or_default(),
        machine: machine_facts(first),
        decoding: Decoding { temperature: 0.0, seed: None, ignore_eos: parts.iter().any(|part| part.ignore_eos) },
        repeats: common.repeats,
        warmup: parts.iter().map(warmup).max().unwrap_or(0),
        seed: common.seed,
        probes: common.probes.as_ref().map(|set| ProbeSetFacts {
            name: set.name.clone(),
            sha256: set.sha256.clone(),
            probes: u32::try_from(set.probes.len()).unwrap_or(u32::MAX),
        }),
        goodput: common.goodput,
        arms: parts.iter().map(|part| arm_manifest(part, cache_is_subject)).collect(),
    };
    let commands: Vec<Vec<String>> = manifest.arms.iter().map(|arm| arm.command.clone()).collect();
    let own = |command: &Vec<String>| commands.iter().filter(|other| *other == command).count() == 1;
    let arms = parts
        .into_iter()
        .zip(&commands)
        .map(|(part, command)| Arm {
            own_server: own(command),
            warmup: warmup(&part),
            cache_off: part.plan.features.iter().any(|feature| feature == "prefix_cache_off"),
            name: part.name,
            plan: part.plan,
            requests: part.requests,
            load: part.load,
            ignore_eos: part.ignore_eos,
            salt_per_pass: cache_is_subject,
        })
        .collect();
    Experiment {
        manifest: manifest.frozen(),
        arms,
        probes: common.probes,
        folder: common.folder,
        quality: common.quality,
        decision: common.decision,
        cache_is_subject,
    }
}

fn arm_manifest(part: &ArmParts, cache_is_subject: bool) -> ArmManifest {
    ArmManifest {
        name: part.name.clone(),
        value: part.value.clone(),
        model: model_facts(&part.plan),
        precision: part.precision.clone(),
        batch: part.batch,
        load: part.load.clone(),
        cache_policy: part.plan.cache_policy.clone(),
        features: part.plan.features.clone(),
        command: command(&part.plan),
        workload: WorkloadFacts {
            source: part.plan.workload_path.as_str().to_owned(),
            sha256: part.plan.workload.sha256.clone(),
            requests: u32::try_from(part.requests.len()).unwrap_or(u32::MAX),
            max_tokens: part.plan.max_tokens,
            prompt_words: part.prompt_words,
            salt: if cache_is_subject { "pass" } else { "prompt" }.to_owned(),
            prompts: part
                .requests
                .iter()
                .map(|request| PromptFacts {
                    id: request.id.clone(),
                    sha256: fsx::sha256(request.messages.to_string().as_bytes()),
                })
                .collect(),
        },
    }
}

/// The command without the folders of this machine, so that two machines can be compared.
fn command(plan: &Plan) -> Vec<String> {
    let Server::Start { argv, .. } = &plan.server else { return Vec::new() };
    argv.iter().map(|arg| if Path::new(arg).is_absolute() { file_name(arg) } else { arg.clone() }).collect()
}

fn model_facts(plan: &Plan) -> ModelFacts {
    let path = Path::new(&plan.model.name);
    let small = std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() <= HASHED_WHOLE);
    let whole = if small { fsx::sha256_file(path).ok() } else { None };
    ModelFacts {
        name: file_name(if plan.model.name.is_empty() { &plan.served_model } else { &plan.model.name }),
        revision: plan.model.revision.clone(),
        sha256: whole.or_else(|| plan.model.sha256.clone()),
        weight_bytes: plan.model.bytes,
    }
}

fn backend_facts(plan: &Plan) -> BackendFacts {
    let engine = if plan.profile.engine.is_empty() { &plan.profile.name } else { &plan.profile.engine };
    BackendFacts {
        name: plan.profile.name.clone(),
        engine: engine.clone(),
        version: backend_version(plan),
        external: matches!(plan.server, Server::External { .. }),
    }
}

fn backend_version(plan: &Plan) -> Option<String> {
    match &plan.server {
        Server::Start { build, .. } => build.version.clone(),
        Server::External { .. } => None,
    }
}

fn machine_facts(plan: Option<&Plan>) -> MachineFacts {
    let (driver, gpus) = match doctor::gpus() {
        Ok((driver, gpus)) => (Some(driver), gpus.into_iter().map(|gpu| gpu.name).collect()),
        Err(_) => (None, Vec::<String>::new()),
    };
    let external = plan.is_some_and(|plan| matches!(plan.server, Server::External { .. }));
    let on_cpu = plan.is_some_and(|plan| plan.profile.provision == "cpu");
    let cpu = doctor::cpu_name();
    let device = match gpus.first() {
        _ if external => None,
        Some(gpu) if !on_cpu => Some(gpu.clone()),
        _ => Some(cpu.clone().unwrap_or_else(|| "cpu".to_owned())),
    };
    MachineFacts {
        device,
        driver,
        gpus,
        cpu,
        cores: std::thread::available_parallelism().ok().and_then(|cores| u32::try_from(cores.get()).ok()),
        os: std::env::consts::OS.to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
    }
}

impl QualityMetric {
    /// The word in result files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            QualityMetric::Exact => "exact_token",
            QualityMetric::Structure => "structure_valid",
            QualityMetric::Fields => "critical_fields",
            QualityMetric::LogLoss => "log_loss",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_prompts_have_their_length_and_depend_on_the_seed_alone() {
        let prompts = generated(4, 32, 8, 7);
        assert_eq!(prompts, generated(4, 32, 8, 7));
        assert_ne!(prompts, generated(4, 32, 8, 8));
        let words = |request: &ChatRequest| {
            request.messages[0]["content"].as_str().unwrap().split_once(": ").unwrap().1.split(' ').count()
        };
        assert!(prompts.iter().all(|request| words(request) == 32));
        let texts: std::collections::BTreeSet<String> =
            prompts.iter().map(|request| request.messages.to_string()).collect();
        assert_eq!(texts.len(), 4);
    }
}
