//! `--watch`, driven from outside: what is saved is judged, and nothing else runs.

use crate::support::{SCRUBBED, project};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Longer than any run here takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);
/// After so long without a run, none comes.
const SILENCE: Duration = Duration::from_millis(1500);

/// A running watch with what it has printed so far.
struct Watch {
    child: Child,
    out: Arc<Mutex<String>>,
    err: Arc<Mutex<String>>,
}

fn collect(mut stream: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let text = Arc::new(Mutex::new(String::new()));
    let into = Arc::clone(&text);
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count) = stream.read(&mut bytes)
            && count > 0
        {
            into.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    });
    text
}

impl Watch {
    /// Starts it and waits until it watches.
    fn start(folder: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verify"));
        command.args(args).arg("--watch").current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for name in SCRUBBED {
            command.env_remove(name);
        }
        let mut child = command.spawn().unwrap();
        let (out, err) = (collect(child.stdout.take().unwrap()), collect(child.stderr.take().unwrap()));
        let watch = Watch { child, out, err };
        watch.looked(1);
        watch
    }

    fn looks(&self) -> usize {
        self.err.lock().unwrap().matches("watching ").count()
    }

    /// Waits for the end of the `count`th run; gives what was printed to standard output.
    fn runs(&self, count: usize) -> String {
        self.looked(count);
        std::mem::take(&mut *self.out.lock().unwrap())
    }

    fn looked(&self, count: usize) {
        let until = Instant::now() + PATIENCE;
        while self.looks() < count {
            assert!(
                Instant::now() < until,
                "no run {count}: {} {}",
                self.out.lock().unwrap(),
                self.err.lock().unwrap()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        // The two pipes are read by two threads.
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(self.looks(), count, "it ran more often: {}", self.out.lock().unwrap());
    }

    /// Nothing runs any more.
    fn rests(&self, count: usize) {
        std::thread::sleep(SILENCE);
        assert_eq!(self.looks(), count, "it ran although nothing changed: {}", self.out.lock().unwrap());
    }

    fn end(mut self) -> ExitStatus {
        signal::kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), Signal::SIGINT).unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("verify-test-").tempdir().unwrap();
    for (path, text) in files {
        write(folder.path(), path, text);
    }
    folder
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn what_is_saved_is_judged_and_ctrl_c_ends_with_130() {
    let folder = folder(&[("a.py", "x = 1\n"), ("b.py", "y = (\n")]);
    let watch = Watch::start(folder.path(), &["static"]);
    assert!(watch.runs(1).contains("b.py:1"));
    write(folder.path(), "a.py", "x = (\n");
    let shown = watch.runs(2);
    assert!(shown.contains("a.py:1") && !shown.contains("b.py"), "{shown}");
    assert!(shown.contains("1 earlier error") && shown.contains("2 errors"), "{shown}");
    write(folder.path(), "a.py", "x = 2\n");
    let shown = watch.runs(3);
    assert!(!shown.contains("a.py") && shown.contains("failed — static: 2 files"), "{shown}");
    write(folder.path(), "b.py", "y = 2\n");
    let shown = watch.runs(4);
    assert!(shown.starts_with("passed — static: 2 files"), "{shown}");
    // Nothing is cleared or coloured where nobody looks at a terminal.
    assert!(!shown.contains('\u{1b}') && !watch.err.lock().unwrap().contains('\u{1b}'));
    assert_eq!(watch.end().code(), Some(130));
}

/// Vim, Emacs and VS Code: a copy, a temporary file, several writes, a rename over the old one.
#[test]
fn one_save_is_one_run_however_the_editor_does_it() {
    let folder = folder(&[("a.md", "# A\n"), ("sub/b.md", "[a](../a.md)\n")]);
    let root = folder.path();
    let watch = Watch::start(root, &["links"]);
    watch.runs(1);
    write(root, "4913", "");
    fs::remove_file(root.join("4913")).unwrap();
    fs::rename(root.join("a.md"), root.join("a.md~")).unwrap();
    write(root, "a.md", "# A\n");
    write(root, "a.md", "# A\n\n[x](gone.md)\n");
    fs::remove_file(root.join("a.md~")).unwrap();
    assert!(watch.runs(2).contains("a.md:3:1"));
    write(root, ".a.md.k3x9", "# A\n\n[x](sub/b.md)\n");
    fs::rename(root.join(".a.md.k3x9"), root.join("a.md")).unwrap();
    assert!(watch.runs(3).starts_with("passed"));
    watch.rests(3);
}

#[test]
fn links_into_a_deleted_file_and_a_new_folder_are_seen() {
    let folder = folder(&[("a.md", "# A\n"), ("sub/b.md", "[a](../a.md)\n")]);
    let root = folder.path();
    let watch = Watch::start(root, &["links"]);
    watch.runs(1);
    fs::remove_file(root.join("a.md")).unwrap();
    let shown = watch.runs(2);
    assert!(shown.contains("links/missing-file") && shown.contains("sub/b.md:1:1"), "{shown}");
    fs::create_dir_all(root.join("new/deep")).unwrap();
    fs::write(root.join("new/deep/c.md"), "[d](d.md)\n").unwrap();
    let shown = watch.runs(3);
    assert!(shown.contains("new/deep/c.md:1:1") && shown.contains("1 earlier error"), "{shown}");
    fs::rename(root.join("new"), root.join("old")).unwrap();
    let shown = watch.runs(4);
    assert!(shown.contains("old/deep/c.md:1:1") && !shown.contains("new/deep"), "{shown}");
    fs::write(root.join("old/deep/d.md"), "# D\n").unwrap();
    let shown = watch.runs(5);
    assert!(!shown.contains("c.md"), "{shown}");
}

#[test]
fn what_the_run_or_a_tool_writes_is_no_change() {
    let folder = folder(&[
        ("a.md", "# A\n"),
        (".gitignore", "build/\n"),
        ("build/x.md", "[x](x)\n"),
        ("target/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n"),
        (".git/HEAD", "ref: refs/heads/main\n"),
    ]);
    let root = folder.path();
    let watch = Watch::start(root, &["links", "--output", "json=report.json"]);
    watch.runs(1);
    write(root, "build/y.md", "[x](x)\n");
    write(root, "target/z.md", "[x](x)\n");
    write(root, ".git/index.lock", "");
    write(root, ".git/refs/heads/main", "0");
    watch.rests(1);
    write(root, "a.md", "[x](x.md)\n");
    watch.runs(2);
    watch.rests(2);
    // The file holds the whole state, for whoever reads it.
    let report: Value = serde_json::from_slice(&fs::read(root.join("report.json")).unwrap()).unwrap();
    let found = crate::support::findings(&report, Some("error")).any(|finding| finding["path"] == "a.md");
    assert!(found, "{report:#}");
}

#[test]
fn a_fault_of_the_settings_is_told_and_the_watch_goes_on() {
    let folder = folder(&[("a.md", "[x](x.md)\n")]);
    let watch = Watch::start(folder.path(), &["links", "-C", "."]);
    watch.runs(1);
    write(folder.path(), "verify.toml", "[course]\nexclud = []\n");
    watch.runs(2);
    assert!(watch.err.lock().unwrap().contains("verify.toml:2"));
    write(folder.path(), "verify.toml", "[[links.ignore]]\ntarget = \"x.md\"\nreason = \"later\"\n");
    assert!(watch.runs(3).starts_with("passed"));
}

#[test]
fn the_first_run_refuses_what_it_refuses_without_a_watch() {
    let folder = folder(&[("a.md", "# A\n")]);
    let status = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verify"));
        command.args(args).current_dir(folder.path()).stderr(Stdio::null()).stdout(Stdio::null());
        command.status().unwrap().code()
    };
    assert_eq!(status(&["links", "none.md", "--watch"]), Some(2));
    assert_eq!(status(&["schema", "--print-schema", "--watch"]), Some(2));
}

#[test]
fn only_the_touched_notebook_runs_again() {
    let input = project("fixtures/cases/answers/basic-pass/input");
    let first = walkdir::WalkDir::new(&input)
        .into_iter()
        .flatten()
        .find(|entry| entry.path().extension().is_some_and(|extension| extension == "ipynb"))
        .unwrap();
    let text = fs::read_to_string(first.path()).unwrap();
    let folder = folder(&[
        ("02_PyTorch_Algorithms/a.ipynb", &text),
        ("02_PyTorch_Algorithms/b.ipynb", &text),
        ("other.ipynb", "no notebook of the course"),
    ]);
    let root = folder.path();
    let watch = Watch::start(root, &["answers", "-C", "."]);
    assert!(watch.runs(1).contains("2 pass"));
    write(root, "02_PyTorch_Algorithms/a.ipynb", &text.replace("assert ", "assert not "));
    let shown = watch.runs(2);
    assert!(shown.contains("02_PyTorch_Algorithms/a.ipynb") && !shown.contains("b.ipynb"), "{shown}");
    assert!(shown.contains("1 pass") && shown.contains("1 fail"), "{shown}");
    fs::remove_file(root.join("02_PyTorch_Algorithms/a.ipynb")).unwrap();
    let shown = watch.runs(3);
    assert!(shown.starts_with("passed — answers: 1 pass"), "{shown}");
    let ran = watch.err.lock().unwrap().matches("] answers:").count();
    assert!(ran <= 3, "it ran {ran} notebooks: {}", watch.err.lock().unwrap());
}
