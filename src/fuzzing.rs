//! The doors through which the fuzz targets of `fuzz/` reach what reads strangers' bytes;
//! compiled under cargo-fuzz only. A target may not panic, and some say what must hold.

use crate::python::Dialect;
use crate::{backend, client, config, notebook, python, results, stages};
use std::sync::OnceLock;

/// A notebook: read, its cells judged, its links taken out.
pub fn notebook(bytes: &[u8]) {
    if let Ok(notebook) = notebook::Notebook::read(bytes) {
        for cell in notebook.cells.iter().take(20) {
            python_text(&cell.source, Dialect::Cell);
        }
    }
    stages::links::fuzz(bytes, true);
}

/// A Markdown page and its links.
pub fn markdown(bytes: &[u8]) {
    stages::links::fuzz(bytes, false);
}

/// A result file: read with places, judged by the gate and by the former filter.
pub fn json(bytes: &[u8]) {
    let _ = results::jq::verdict(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let document = results::json::read(text);
    let judgement = results::gate::judge(&document, "fuzz.json");
    let shown = results::gate::findings(&crate::model::RepoPath::new("fuzz.json"), text, judgement.marks);
    for finding in shown {
        let _ = (finding.message(crate::model::Lang::Zh), finding.help_text(crate::model::Lang::En));
    }
}

/// A stream of events: the pieces in which it comes do not matter.
pub fn sse(bytes: &[u8]) {
    let read = |size: usize| {
        let (mut parser, mut events) = (client::sse::Parser::default(), Vec::new());
        bytes.chunks(size.max(1)).for_each(|piece| parser.push(piece, &mut events));
        let unfinished = parser.finish(&mut events);
        (events, unfinished, parser.unknown_fields())
    };
    let whole = read(bytes.len());
    assert_eq!(whole, read(1));
    assert_eq!(whole, read(7));
}

/// A settings file.
pub fn settings(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        config::fuzz(text);
    }
}

/// A page of Prometheus text.
pub fn prometheus(bytes: &[u8]) {
    static PROFILES: OnceLock<Vec<backend::BackendProfile>> = OnceLock::new();
    let profiles = PROFILES.get_or_init(|| {
        let settings: Result<config::Settings, _> = toml::from_str(backend::BUILTIN_PROFILES);
        settings.map(|settings| settings.backend).unwrap_or_default()
    });
    let page = String::from_utf8_lossy(bytes);
    if let Some(profile) = backend::counters::known(profiles, &page) {
        let counters = backend::counters::read(profile, &page);
        assert!(counters.counters.values().all(|value| !value.is_nan()));
    }
}

/// Python, as a file and as a cell.
pub fn python(bytes: &[u8]) {
    if let Ok(text) = python::decode::decode(bytes) {
        python_text(&text, Dialect::Module);
        python_text(&text, Dialect::Cell);
    }
}

fn python_text(text: &str, dialect: Dialect) {
    let _ = python::ipython::prepare(text);
    stages::static_checks::fuzz(text, dialect);
}
