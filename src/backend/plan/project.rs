//! The runs of a project: its baseline, where it has one, then itself.

use super::start::{Wish, start_of};
use super::*;
use crate::backend::spec::DEFAULT_LOG_BYTES;
use crate::quality;
use crate::term::Phase;

/// Tokens of context per slot of a server that we start.
const CONTEXT: u32 = 2048;

/// One side of a project: the candidate, or the baseline it is compared with.
#[derive(Debug, Clone)]
struct Arm {
    role: Role,
    strategy: String,
    features: Vec<String>,
    concurrency: u32,
    cache_policy: String,
    model: String,
    result: PathBuf,
}

/// Plans the runs of one project: its baseline first, where it has one, then itself.
pub(crate) fn of_project(
    ctx: &Context,
    project: &Project,
    named: &Named,
    choice: &BackendChoice,
    phase: &Phase,
) -> Vec<Planned> {
    let minimum = ctx.settings.conclude.min_scheduler_concurrency;
    if project.id == 70 && project.concurrency < minimum {
        let at = Location::file(ctx.repo_path(&ctx.results_dir().join(&project.result)));
        return vec![Err(Finding::new(&rules::smoke::CONCURRENCY_TOO_LOW, at)
            .arg("project", project.id)
            .arg("needed", minimum)
            .arg("given", project.concurrency))];
    }
    arms(ctx, project, named, choice)
        .into_iter()
        .map(|arm| of_arm(ctx, project, arm, named, &Wishes::of(ctx, choice), phase))
        .collect()
}

fn arms(ctx: &Context, project: &Project, named: &Named, choice: &BackendChoice) -> Vec<Arm> {
    let smoke = &ctx.settings.smoke;
    let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
    let model = choice.model.clone().unwrap_or_else(|| smoke.model.clone());
    let quantized = choice.quantized_model.clone().unwrap_or_else(|| smoke.quantized_model.clone());
    let offered = |features: &[String]| match named {
        Named::Profile(profile) => features.iter().all(|feature| profile.features.contains_key(feature)),
        // The settings of somebody else's server are not ours to switch.
        Named::Url(_) => false,
    };
    let candidate = Arm {
        role: Role::Candidate,
        strategy: project.strategy.clone(),
        features: project.features.clone(),
        concurrency: project.concurrency,
        cache_policy: project.cache_policy.clone(),
        model: if project.id == 67 { or(&quantized, &model) } else { model.clone() },
        result: ctx.results_dir().join(&project.result),
    };
    let Some(other) = project.baseline.as_ref().filter(|_| offered(&project.features)) else { return vec![candidate] };
    let needs_second_model = project.id == 67 && quantized.is_empty();
    if needs_second_model {
        return vec![candidate];
    }
    let baseline = Arm {
        role: Role::Baseline,
        strategy: or(&other.strategy, &project.strategy),
        features: if other.features.is_empty() { project.features.clone() } else { other.features.clone() },
        concurrency: if other.concurrency == 0 { project.concurrency } else { other.concurrency },
        cache_policy: or(&other.cache_policy, &project.cache_policy),
        model,
        result: candidate.result.with_extension("baseline.json"),
    };
    vec![baseline, candidate]
}

fn of_arm(ctx: &Context, project: &Project, arm: Arm, named: &Named, wishes: &Wishes, phase: &Phase) -> Planned {
    let at = Location::file(ctx.repo_path(&arm.result));
    let workload_path = RepoPath::new(project.workload.clone());
    let workload = read_workload(&ctx.at_root(&project.workload), &workload_path, project.max_tokens)?;
    let probes = if project.probes { probes(ctx)? } else { None };
    let key = api_key(&ctx.settings.smoke.api_key_env, &at)?;
    let mut features = arm.features.clone();
    let mut notes = Vec::new();
    let (profile, server, model, served_model) = match named {
        Named::Url(base_url) => {
            features.clear();
            (
                external_profile(&ctx.settings.backend),
                Server::External { base_url: base_url.clone() },
                Model::default(),
                arm.model.clone(),
            )
        }
        Named::Profile(profile) => {
            let absent: Vec<String> =
                features.extract_if(.., |feature| !profile.features.contains_key(feature)).collect();
            if !absent.is_empty() {
                notes.push(
                    Finding::new(&rules::smoke::FEATURE_NOT_OFFERED, at.clone())
                        .arg("backend", &profile.name)
                        .arg("features", absent.join(", ")),
                );
            }
            let slots = if project.parallel == 0 { arm.concurrency } else { project.parallel }.max(1);
            let wish = Wish {
                model: &arm.model,
                base: &ctx.cwd,
                slots,
                limited: project.parallel > 0,
                context: CONTEXT,
                features: &features,
                args: &[],
                wishes,
            };
            start_of(ctx, profile, &wish, &at, phase, &mut notes)?
        }
    };
    Ok(Plan {
        project: Some(project.clone()),
        role: arm.role,
        strategy: arm.strategy,
        claims: claims(&features),
        probes,
        features,
        notes,
        ready_timeout: seconds(profile.ready_timeout_s),
        probe_timeout: seconds(profile.ready_timeout_s),
        stop_grace: Duration::from_secs(10),
        profile,
        server,
        model,
        served_model,
        key,
        workload_path,
        workload,
        requests: project.requests,
        concurrency: arm.concurrency,
        warmup: project.warmup,
        max_tokens: project.max_tokens,
        cache_policy: arm.cache_policy,
        result: arm.result,
        log_max_bytes: DEFAULT_LOG_BYTES,
    })
}

fn probes(ctx: &Context) -> Result<Option<ProbeSet>, Finding> {
    let settings = &ctx.settings.bench;
    quality::chosen(settings, &ctx.root).map_err(|error| {
        Finding::new(&rules::smoke::WORKLOAD, Location::file(RepoPath::new(settings.probes.clone())))
            .arg("cause", error.to_string())
    })
}
