//! `verify backend`: what is here, what is missing, and the command that helps.

use crate::backend::{BackendProfile, doctor, provision};
use crate::cli::{BackendCommand, Cli};
use crate::config;
use crate::error::RunError;
use crate::model::{Lang, Localized};
use crate::term::pad;
use crate::{Screen, roots};
use std::fmt::Write;
use std::path::Path;
use unicode_width::UnicodeWidthStr;

/// Runs `verify backend list|install|doctor`. Exit code 1: what was asked for is not here.
///
/// # Errors
/// A fault of the settings, or an unknown backend.
pub(crate) fn run(command: &BackendCommand, cli: &Cli, screen: &Screen<'_>) -> Result<u8, RunError> {
    match command {
        BackendCommand::List => list(cli, screen),
        BackendCommand::Install { name, offline } => install(name, *offline, cli, screen),
        BackendCommand::Doctor => doctor(cli, screen),
    }
}

fn profiles(cli: &Cli) -> Result<Vec<BackendProfile>, RunError> {
    let (cwd, root) = roots(cli)?;
    let file = cli.global.settings.as_deref().map(|path| cwd.join(path));
    Ok(config::resolve(&root, file.as_deref())?.settings.backend)
}

/// What a profile says of itself. The profiles of the program are written in English, and
/// their Chinese stands here; those of a user are in the user's own words.
fn told(english: &str, lang: Lang) -> &str {
    match lang {
        Lang::En => english,
        Lang::Zh => PROFILES.iter().find(|(en, _)| *en == english).map_or(english, |(_, zh)| zh),
    }
}

const PROFILES: &[(&str, &str)] = &[
    (
        "llama.cpp's server with SmolLM2-135M (Q4_1) on the CPU, provisioned by verify",
        "llama.cpp 的服务，用 CPU 运行 SmolLM2-135M（Q4_1），由 verify 安装",
    ),
    ("verify backend install cpu", "verify backend install cpu"),
    (
        "llama.cpp's llama-server on PATH; give a GGUF file with --model",
        "PATH 中的 llama-server（llama.cpp）；用 --model 给出 GGUF 文件",
    ),
    ("install llama.cpp and put llama-server on PATH", "请安装 llama.cpp，并把 llama-server 放到 PATH 中"),
    (
        "SGLang, as a module of the Python on PATH; give a model folder or id with --model",
        "SGLang，PATH 中 Python 的模块；用 --model 给出模型目录或 id",
    ),
    (
        "pip install sglang (in an environment of its own, on a machine with a GPU)",
        "pip install sglang（装在独立的环境里，机器需有 GPU）",
    ),
    ("Ollama on PATH; give the name of a pulled model with --model", "PATH 中的 Ollama；用 --model 给出已拉取的模型名"),
    ("install Ollama and put ollama on PATH", "请安装 Ollama，并把 ollama 放到 PATH 中"),
    (
        "transformers serve on PATH; give a model folder with --model; no counters, so project 66 only",
        "PATH 中的 transformers serve；用 --model 给出模型目录；没有计数器，只能用于项目 66",
    ),
    (
        "pip install transformers[serving] (in an environment of its own)",
        "pip install transformers[serving]（装在独立的环境里）",
    ),
    ("vLLM on PATH; give a model folder or id with --model", "PATH 中的 vLLM；用 --model 给出模型目录或 id"),
    (
        "pip install vllm (in an environment of its own, on a machine with a GPU)",
        "pip install vllm（装在独立的环境里，机器需有 GPU）",
    ),
];

/// Where the program of a backend is, or `None`.
fn here(profile: &BackendProfile) -> Option<String> {
    if profile.provision == "cpu" {
        return provision::find().map(|found| found.version);
    }
    profile.locate(&profile.program).ok().map(|path| path.display().to_string())
}

fn list(cli: &Cli, screen: &Screen<'_>) -> Result<u8, RunError> {
    let profiles = profiles(cli)?;
    let say = |en: &'static str, zh: &'static str| Localized::both(en, zh).get(screen.lang).to_owned();
    let rows: Vec<[String; 3]> = profiles
        .iter()
        .map(|profile| {
            let state = here(profile)
                .unwrap_or_else(|| format!("{}{}", say("missing: ", "缺少："), told(&profile.install, screen.lang)));
            [profile.name.clone(), told(&profile.summary, screen.lang).to_owned(), state]
        })
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let (first, second) = (width(0), width(1));
    let mut text = String::new();
    for [name, summary, state] in &rows {
        let _ = writeln!(text, "{}  {}  {state}", pad(name, first), pad(summary, second));
    }
    screen.print(&text);
    Ok(0)
}

fn install(name: &str, offline: bool, cli: &Cli, screen: &Screen<'_>) -> Result<u8, RunError> {
    let profiles = profiles(cli)?;
    let provisioned: Vec<&str> =
        profiles.iter().filter(|profile| !profile.provision.is_empty()).map(|profile| profile.name.as_str()).collect();
    if !provisioned.contains(&name) {
        let known = provisioned.join(", ");
        return Err(RunError::usage(
            Localized::both(format!("verify cannot install `{name}`"), format!("verify 不能安装 `{name}`")),
            Localized::both(format!("it can install: {known}"), format!("可以安装：{known}")),
        ));
    }
    if offline {
        return Ok(match provision::find() {
            Some(found) => {
                screen.print(&format!("{name}: {}\n", found.version));
                0
            }
            None => {
                let text = Localized::both(
                    format!("{name} is not installed; run `verify backend install {name}` with a network\n"),
                    format!("{name} 尚未安装；请在有网络时运行 `verify backend install {name}`\n"),
                );
                screen.complain(text.get(screen.lang));
                1
            }
        });
    }
    let phase = screen.progress().start("install", 0);
    let result = provision::repair(&|line| phase.say(line));
    drop(phase);
    Ok(match result {
        Ok(found) => {
            let model = found.model.file_name().unwrap_or_default().to_string_lossy();
            let text = Localized::both(
                format!("{name} is ready: {} with {model}\n", found.version),
                format!("{name} 已就绪：{}，模型 {model}\n", found.version),
            );
            screen.print(text.get(screen.lang));
            0
        }
        Err(error) => {
            let (en, zh) = error.advice();
            let (label, help) = (Localized::both("error", "错误"), Localized::both("help", "建议"));
            let advice = Localized::both(en, zh);
            let lang = screen.lang;
            screen.complain(&format!("{}: {error}\n  {}: {}\n", label.get(lang), help.get(lang), advice.get(lang)));
            1
        }
    })
}

fn doctor(cli: &Cli, screen: &Screen<'_>) -> Result<u8, RunError> {
    let profiles = profiles(cli)?;
    let lang = screen.lang;
    let mut text = String::new();
    let mut line = |name: &str, state: String, help: Option<Localized>| {
        let mark = if help.is_none() { "✓" } else { "✗" };
        let _ = writeln!(text, "{mark} {}  {state}", pad(name, 14));
        if let Some(help) = help {
            let _ = writeln!(text, "    → {}", help.get(lang));
        }
    };
    let missing = || Localized::both("not here", "不可用").get(lang).to_owned();
    match doctor::python() {
        Some(path) => {
            let version = doctor::python_version(&path).unwrap_or_default();
            line("Python", format!("{version}  {}", path.display()), None);
        }
        None => line(
            "Python",
            missing(),
            Some(Localized::both(
                "install Python 3.9 or newer: `answers` and the CPU backend need it",
                "请安装 Python 3.9 或更新版本：`answers` 和 CPU 后端需要它",
            )),
        ),
    }
    for profile in &profiles {
        match here(profile) {
            Some(state) => line(&profile.name, state, None),
            None => line(&profile.name, missing(), Some(told(&profile.install, lang).into())),
        }
    }
    match doctor::gpus() {
        Ok((driver, gpus)) => {
            for gpu in gpus {
                let capability = gpu.capability.map(|cc| format!(", compute {cc}")).unwrap_or_default();
                line(
                    "GPU",
                    format!(
                        "{} ({} of {} MiB in use{capability}), driver {driver}",
                        gpu.name, gpu.used_mib, gpu.memory_mib
                    ),
                    None,
                );
            }
        }
        // The absence of a GPU is a fact, not a fault: no mark, no advice.
        Err(cause) => {
            let none = Localized::both("none seen through NVML", "NVML 没有发现 GPU").get(lang).to_owned();
            let _ = writeln!(text, "· {}  {none} ({cause})", pad("GPU", 14));
        }
    }
    write_cache(&mut text, lang);
    screen.print(&text);
    Ok(0)
}

fn write_cache(text: &mut String, lang: Lang) {
    let (state, free) = match provision::cache_dir() {
        Ok(folder) => (folder.display().to_string(), doctor::free_bytes(&folder)),
        Err(error) => (error.to_string(), doctor::free_bytes(Path::new("."))),
    };
    let free = free.map_or_else(|| "?".to_owned(), |bytes| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)));
    let label = Localized::both("free in the cache folder", "缓存文件夹可用空间");
    let _ =
        writeln!(text, "· {}  {free}  {} {state}", pad(Localized::both("disk", "磁盘").get(lang), 14), label.get(lang));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_profile_of_the_program_is_told_in_chinese_and_none_is_left_over() {
        let settings = config::resolve(Path::new("/nowhere"), None).unwrap().settings;
        let wanted: BTreeSet<String> =
            settings.backend.iter().flat_map(|profile| [profile.summary.clone(), profile.install.clone()]).collect();
        let there: BTreeSet<String> = PROFILES.iter().map(|(en, _)| (*en).to_owned()).collect();
        assert_eq!(wanted, there);
    }
}
