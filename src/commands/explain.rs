//! `verify explain`.

use crate::Screen;
use crate::cli::ExplainArgs;
use crate::config::nearest;
use crate::error::RunError;
use crate::model::Localized;
use crate::rules;
use std::fmt::Write;

/// Explains one rule, or lists all of them.
///
/// # Errors
/// There is no rule of that id.
pub(crate) fn run(args: &ExplainArgs, screen: &Screen<'_>) -> Result<u8, RunError> {
    let mut text = String::new();
    match &args.rule {
        None => {
            for rule in rules::all() {
                let _ = writeln!(text, "{:34} {:8} {}", rule.id, rule.severity.name(), rule.message.get(screen.lang));
            }
        }
        Some(id) => {
            let rule = rules::find(id).ok_or_else(|| unknown(id))?;
            let _ = writeln!(text, "{} ({})\n\n{}\n", rule.id, rule.severity.name(), rule.message.get(screen.lang));
            let _ = writeln!(text, "{}", rule.why.get(screen.lang));
            let help = rule.help.get(screen.lang);
            if !help.is_empty() {
                let _ = writeln!(text, "\n{help}");
            }
        }
    }
    screen.print(&text);
    Ok(0)
}

fn unknown(id: &str) -> RunError {
    let hint = match nearest(id, rules::all().map(|rule| rule.id)) {
        Some(known) => Localized::both(format!("did you mean `{known}`?"), format!("是不是想写 `{known}`？")),
        None => Localized::both("`verify explain` lists every rule", "`verify explain` 会列出所有规则"),
    };
    RunError::usage(Localized::both(format!("there is no rule `{id}`"), format!("没有规则 `{id}`")), hint)
}
