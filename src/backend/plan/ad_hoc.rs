//! A run that a specification describes, outside any project.

use super::start::resolve_model;
use super::*;
use crate::backend::dtype;
use crate::backend::launch::fill;
use crate::backend::resolve::Ask;
use crate::backend::spec::RunSpec;
use crate::term::Phase;

/// Plans an ad-hoc run.
pub(crate) fn of_spec(ctx: &Context, spec: &RunSpec, choice: &BackendChoice, phase: &Phase) -> Planned {
    let result = ctx.at_root(&spec.result);
    let at = Location::file(ctx.repo_path(&result));
    let backend = &spec.backend;
    let workload_path = RepoPath::new(spec.workload.clone());
    let workload = read_workload(&ctx.at_root(&spec.workload), &workload_path, spec.max_tokens)?;
    let key = api_key(&backend.api_key_env, &at)?;
    let mut model = Model { name: backend.model.clone(), ..Model::default() };
    let ask = Ask {
        name: &backend.model,
        source: backend.model_source,
        base: &ctx.root,
        permission: Wishes::of(ctx, choice).permission,
        // The command is the user's own: what it makes of a name is not ours to know.
        server_knows: backend.model_source != ModelSource::Local,
        with_code: false,
    };
    resolve_model(&mut model, &ask, &at, phase, ctx)?;
    model.dtype = dtype::choose("auto", dtype::of_model(Path::new(&model.name)), &[]);
    let server = if backend.base_url.is_empty() {
        let values = BTreeMap::from([
            ("model", model.name.clone()),
            ("served_model", backend.served_model.clone()),
            ("host", "127.0.0.1".to_owned()),
        ]);
        let argv = backend.command.iter().map(|template| fill(template, &values)).collect();
        let listen = Listen::default();
        // What an ad-hoc command starts is not looked into: it may be a shell around anything.
        Server::Start { argv, listen, env: backend.env.clone(), port: backend.port, build: Build::default() }
    } else {
        Server::External { base_url: backend.base_url.clone() }
    };
    let profile = external_profile(&ctx.settings.backend);
    Ok(Plan {
        project: None,
        role: Role::Candidate,
        strategy: "ad-hoc".to_owned(),
        features: Vec::new(),
        notes: Vec::new(),
        profile,
        server,
        model,
        served_model: backend.served_model.clone(),
        key,
        workload_path,
        workload,
        requests: spec.requests,
        concurrency: spec.concurrency,
        warmup: spec.warmup,
        max_tokens: spec.max_tokens,
        cache_policy: "default".to_owned(),
        claims: spec.claims,
        probes: None,
        result,
        log_max_bytes: spec.log_max_bytes,
        ready_timeout: seconds(backend.ready_timeout_s),
        probe_timeout: seconds(backend.probe_timeout_s),
        stop_grace: seconds(backend.stop_grace_s),
    })
}
