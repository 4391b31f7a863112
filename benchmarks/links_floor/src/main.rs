//! The floor under `verify links`: walk, read and parse the same files on two threads,
//! and do nothing with the result. Prints how many links were seen, so that the work
//! cannot be optimized away.

use ignore::WalkBuilder;
use pulldown_cmark::{Event, Options, Parser, Tag};
use rayon::prelude::*;
use std::path::{Path, PathBuf};

fn links(text: &str) -> usize {
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_MATH | Options::ENABLE_GFM;
    let events = Parser::new_ext(text, options).into_offset_iter();
    events.filter(|(event, _)| matches!(event, Event::Start(Tag::Link { .. } | Tag::Image { .. }))).count()
}

fn parse(path: &Path) -> usize {
    let Ok(text) = std::fs::read_to_string(path) else { return 0 };
    if path.extension().is_some_and(|extension| extension == "md") {
        return links(&text);
    }
    let Ok(notebook) = serde_json::from_str::<serde_json::Value>(&text) else { return 0 };
    let cells = notebook["cells"].as_array().map_or(&[][..], Vec::as_slice);
    let markdown = cells.iter().filter(|cell| cell["cell_type"] == "markdown");
    markdown
        .filter_map(|cell| Some(cell["source"].as_array()?.iter().filter_map(|line| line.as_str()).collect::<String>()))
        .map(|text| links(&text))
        .sum()
}


fn main() {
    let root = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let wanted = |path: &Path| path.extension().is_some_and(|extension| extension == "md" || extension == "ipynb");
    let walk = WalkBuilder::new(root).hidden(false).require_git(false).build();
    let files: Vec<PathBuf> = walk.flatten().map(ignore::DirEntry::into_path).filter(|path| wanted(path)).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build();
    let count = || files.par_iter().map(|path| parse(path)).sum::<usize>();
    let total = pool.map_or(0, |pool| pool.install(count));
    println!("{total}");
}
