//! The server of one arm of an experiment.

use super::start::{Wish, start_of};
use super::*;
use crate::backend::spec::DEFAULT_LOG_BYTES;
use crate::term::Phase;

/// What an experiment wants of the server of one arm.
#[derive(Debug, Clone)]
pub(crate) struct ArmWish {
    pub(crate) strategy: String,
    pub(crate) role: Role,
    /// A folder, a file, or an id, relative to the root; empty: the backend's own.
    pub(crate) model: String,
    pub(crate) features: Vec<String>,
    pub(crate) args: Vec<String>,
    /// Requests that are worked on at a time.
    pub(crate) slots: u32,
    /// The limit was stated.
    pub(crate) limited: bool,
    /// Tokens of context per slot.
    pub(crate) context: u32,
    pub(crate) concurrency: u32,
    pub(crate) max_tokens: u32,
    pub(crate) cache_policy: String,
    pub(crate) timeout: Duration,
    pub(crate) api_key_env: String,
    pub(crate) result: PathBuf,
    pub(crate) workload_path: RepoPath,
    pub(crate) workload: Workload,
}

/// Plans the server of one arm of an experiment.
pub(crate) fn of_experiment(
    ctx: &Context,
    named: &Named,
    wish: ArmWish,
    choice: &BackendChoice,
    phase: &Phase,
) -> Planned {
    let at = Location::file(ctx.repo_path(&wish.result));
    let key = api_key(&wish.api_key_env, &at)?;
    let mut notes = Vec::new();
    let (profile, server, model, served_model) = match named {
        Named::Url(base_url) => (
            external_profile(&ctx.settings.backend),
            Server::External { base_url: base_url.clone() },
            Model::default(),
            wish.model.clone(),
        ),
        Named::Profile(profile) => {
            let server = Wish {
                model: &wish.model,
                base: &ctx.root,
                slots: wish.slots.max(1),
                limited: wish.limited,
                context: wish.context,
                features: &wish.features,
                args: &wish.args,
                wishes: &Wishes::of(ctx, choice),
            };
            start_of(ctx, profile, &server, &at, phase, &mut notes)?
        }
    };
    Ok(Plan {
        project: None,
        role: wish.role,
        strategy: wish.strategy,
        claims: claims(&wish.features),
        probes: None,
        features: wish.features,
        notes,
        ready_timeout: seconds(profile.ready_timeout_s),
        probe_timeout: wish.timeout,
        stop_grace: Duration::from_secs(10),
        profile,
        server,
        model,
        served_model,
        key,
        workload_path: wish.workload_path,
        requests: 0,
        workload: wish.workload,
        concurrency: wish.concurrency,
        warmup: 0,
        max_tokens: wish.max_tokens,
        cache_policy: wish.cache_policy,
        result: wish.result,
        log_max_bytes: DEFAULT_LOG_BYTES,
    })
}
