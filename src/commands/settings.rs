//! `verify settings`.

use crate::cli::Cli;
use crate::config::{self, Origin};
use crate::error::RunError;
use crate::model::{Lang, Text};
use crate::render::Format;
use crate::{Screen, roots};
use std::fmt::Write;

/// Prints every resolved setting and the layer it came from.
///
/// # Errors
/// The settings are at fault.
pub(crate) fn run(cli: &Cli, screen: &Screen<'_>) -> Result<u8, RunError> {
    let format = screen.format_of(&[Format::Human, Format::Json])?;
    let (cwd, root) = roots(cli)?;
    let resolved = config::resolve(&root, cli.global.settings.as_deref().map(|path| cwd.join(path)).as_deref())?;
    if format == Format::Json {
        let origins: serde_json::Map<String, serde_json::Value> =
            resolved.origins.iter().map(|(path, origin)| (path.to_owned(), origin.name().into())).collect();
        let file = resolved.file.as_ref().map(|path| path.display().to_string());
        let value = serde_json::json!({
            "root": root.display().to_string(), "file": file, "settings": resolved.settings, "origins": origins,
        });
        screen.print(&crate::results::v1::to_text(&value));
        return Ok(0);
    }
    let say = |text: Text| text.get(screen.lang);
    let mut text = format!("# {}: {}\n", say(Text { en: "root", zh: "根目录" }), root.display());
    let none = || say(Text { en: "none", zh: "无" }).to_owned();
    let file = resolved.file.as_ref().map_or_else(none, |path| path.display().to_string());
    let _ = writeln!(text, "# {}: {file}", say(Text { en: "file", zh: "设置文件" }));
    if let Ok(toml::Value::Table(table)) = toml::Value::try_from(&resolved.settings) {
        for (key, value) in &table {
            write_value(&mut text, key, value, &|path| layer(resolved.origins.get(path), screen.lang));
        }
    }
    screen.print(&text);
    Ok(0)
}

/// Where a value comes from, for people; [`Origin::name`] is for machines.
fn layer(origin: Option<Origin>, lang: Lang) -> &'static str {
    match origin {
        Some(Origin::Builtin) => Text { en: Origin::Builtin.name(), zh: "内置" },
        Some(Origin::File) => Text { en: Origin::File.name(), zh: "设置文件" },
        None => Text { en: "default", zh: "默认" },
    }
    .get(lang)
}

fn write_value(text: &mut String, path: &str, value: &toml::Value, origin: &dyn Fn(&str) -> &'static str) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                write_value(text, &format!("{path}.{key}"), value, origin);
            }
        }
        toml::Value::Array(list) if list.iter().any(toml::Value::is_table) => {
            for (index, entry) in list.iter().enumerate() {
                let name = ["id", "name"].iter().find_map(|key| entry.get(key)).map_or_else(
                    || index.to_string(),
                    |name| name.as_str().map_or_else(|| name.to_string(), str::to_owned),
                );
                write_value(text, &format!("{path}.{name}"), entry, origin);
            }
        }
        _ => {
            let _ = writeln!(text, "{path} = {value}  # {}", origin(path));
        }
    }
}
