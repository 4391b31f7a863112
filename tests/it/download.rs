//! Models that are fetched: into the layout that the hubs' own libraries read, whatever
//! the connection, the server or the disk does meanwhile.

use crate::hub::{Answer, COMMIT, Hub, gguf, git_sha1, is_large, model, safetensors, sha256};
use crate::support::{self, findings, project, scratch, verify};
use rstest::rstest;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const TOKEN: &str = "hf_SecretSecretSecret";

/// A folder for a run whose server ends at once: what matters here happens before.
struct Place {
    folder: TempDir,
    hub: String,
    other_hub: String,
}

impl Place {
    fn new(hub: &Hub) -> Self {
        let folder = scratch(&project("fixtures/cases/backend/server-reads-stdin/input"));
        // A port on which nobody listens.
        let place = Place { folder, hub: hub.address.clone(), other_hub: "http://127.0.0.1:9".to_owned() };
        place.wants("o/n");
        place
    }

    fn wants(&self, model: &str) {
        let path = self.folder.path().join("smoke.json");
        let mut spec: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        spec["backend"]["model"] = json!(model);
        spec["backend"]["command"] = json!(["false", "{model}"]);
        fs::write(path, spec.to_string()).unwrap();
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.cache().join(relative)
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        let cache = |name: &str| self.path(name).display().to_string();
        vec![
            ("HF_ENDPOINT", self.hub.clone()),
            ("HF_HUB_CACHE", cache("hf")),
            ("HF_TOKEN", TOKEN.to_owned()),
            ("MODELSCOPE_ENDPOINT", self.other_hub.clone()),
            ("MODELSCOPE_CACHE", cache("ms")),
            ("VERIFY_CACHE_DIR", cache("verify")),
            ("HF_HUB_OFFLINE", String::new()),
            ("TRANSFORMERS_OFFLINE", String::new()),
            ("HTTP_PROXY", String::new()),
            ("http_proxy", String::new()),
            ("ALL_PROXY", String::new()),
            ("all_proxy", String::new()),
        ]
    }

    /// Runs with `--download` and further arguments.
    fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = verify(self.folder.path());
        command.args(["smoke", "--config", "smoke.json"]).args(arguments).envs(self.environment());
        let (code, report) = support::report(command);
        Ran { code, report }
    }

    fn download(&self) -> Ran {
        self.run(&["--download"])
    }

    /// The folder that a server is given.
    fn snapshot(&self) -> PathBuf {
        self.path(&format!("hf/models--o--n/snapshots/{COMMIT}"))
    }

    fn blobs(&self) -> Vec<String> {
        names(&self.path("hf/models--o--n/blobs"))
    }

    /// `verify` at work, to be disturbed.
    fn start(&self) -> std::process::Child {
        Command::new(env!("CARGO_BIN_EXE_verify"))
            .args(["smoke", "--config", "smoke.json", "--download", "--format", "json"])
            .current_dir(self.folder.path())
            .envs(self.environment())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

struct Ran {
    code: i32,
    report: Value,
}

impl Ran {
    /// The finding of this rule, its message and help as one text.
    fn says(&self, rule: &str) -> String {
        let found = findings(&self.report, None).find(|finding| finding["rule"] == rule);
        let found = found.unwrap_or_else(|| panic!("no {rule}: {:#}", self.report));
        format!("{} | {}", found["message"].as_str().unwrap(), found["help"].as_str().unwrap_or_default())
    }

    /// The model was there: the run went on to its server, which ended as it must.
    fn assert_fetched(&self) {
        self.says("smoke/server-exited");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_model_lies_where_huggingface_hub_looks_for_it() {
    let hub = Hub::serve(model());
    let place = Place::new(&hub);
    place.download().assert_fetched();
    let wanted: Vec<(&str, Vec<u8>)> = model()
        .into_iter()
        .filter(|(name, _)| ["config.json", "tokenizer.json", "model.safetensors"].contains(name))
        .collect();
    assert_eq!(names(&place.snapshot()), ["config.json", "model.safetensors", "tokenizer.json"]);
    for (name, content) in &wanted {
        let digest = if is_large(name) { sha256(content) } else { git_sha1(content) };
        let link = place.snapshot().join(name);
        #[cfg(unix)]
        assert_eq!(fs::read_link(&link).unwrap(), Path::new(&format!("../../blobs/{digest}")));
        assert_eq!(fs::read(&link).unwrap(), *content);
    }
    assert_eq!(place.blobs().len(), 3, "{:?}", place.blobs());
    assert_eq!(fs::read_to_string(place.path("hf/models--o--n/refs/main")).unwrap(), COMMIT);
    let asked = hub.asked();
    assert_eq!(asked.len(), 4, "a list and three files: {asked:?}");
    assert!(asked.iter().all(|asked| asked.headers["authorization"] == format!("Bearer {TOKEN}")));
    place.download().assert_fetched();
    place.run(&["--offline"]).assert_fetched();
    assert_eq!(hub.asked().len(), 4, "what is here is not asked for again");
}

#[test]
fn nothing_is_fetched_unasked() {
    let hub = Hub::serve(model());
    let place = Place::new(&hub);
    place.run(&[]);
    place.run(&["--offline"]);
    assert_eq!(hub.asked().len(), 0);
    let mut command = verify(place.folder.path());
    command.args(["smoke", "--config", "smoke.json", "--download", "--offline"]).assert().code(2);
    fs::write(place.folder.path().join("verify.toml"), "[smoke]\ndownload = true\n").unwrap();
    let mut command = verify(place.folder.path());
    command.args(["smoke", "--config", "smoke.json"]).envs(place.environment()).env("HF_HUB_OFFLINE", "1");
    command.assert().code(1);
    assert_eq!(hub.asked().len(), 0, "offline in the environment forbids what the settings allow");
    place.run(&[]).assert_fetched();
}

/// Every way in which a connection can end early, and what the next one has to do.
#[rstest]
#[case::continued(true, vec![Some(200_000), Some(50_000)])]
#[case::from_the_beginning(false, vec![Some(200_000), None])]
fn a_cut_connection_is_taken_up(#[case] ranges: bool, #[case] from: Vec<Option<usize>>) {
    let hub = Hub::scripted(model(), move |asked, usual| {
        let mut answer = usual.clone();
        if !asked.is_file("model.safetensors") {
            return None;
        }
        if !ranges && asked.from().is_some() {
            answer = Answer { status: 200, body: safetensors(300_000), ..Answer::default() };
        }
        answer.cut = match asked.before {
            0 => Some(200_000),
            1 if ranges => Some(50_000),
            _ => None,
        };
        Some(answer)
    });
    let place = Place::new(&hub);
    place.download().assert_fetched();
    assert_eq!(fs::read(place.snapshot().join("model.safetensors")).unwrap(), safetensors(300_000));
    let asked = hub.asked_for("model.safetensors");
    assert_eq!((asked[0].from(), asked[1].from()), (None, Some(200_000)));
    let etag = format!("\"{}\"", sha256(&safetensors(300_000)));
    assert_eq!(asked[1].headers["if-range"], etag);
    if ranges {
        assert_eq!(asked[2].from(), Some(from[0].unwrap() + from[1].unwrap()));
    }
    assert!(place.blobs().iter().all(|name| !name.contains("incomplete")), "{:?}", place.blobs());
}

#[test]
fn a_content_that_changed_meanwhile_is_fetched_from_the_beginning() {
    let hub = Hub::scripted(model(), |asked, usual| {
        (asked.is_file("model.safetensors") && asked.before == 0).then(|| {
            let mut other = usual.clone();
            other.body.iter_mut().for_each(|byte| *byte ^= 1);
            other.headers = vec![("etag".to_owned(), "\"other\"".to_owned())];
            other.cut = Some(100_000);
            other
        })
    });
    let place = Place::new(&hub);
    place.download().assert_fetched();
    assert_eq!(fs::read(place.snapshot().join("model.safetensors")).unwrap(), safetensors(300_000));
    let asked = hub.asked_for("model.safetensors");
    assert_eq!((asked.len(), asked[1].headers["if-range"].as_str()), (2, "\"other\""));
}

#[test]
fn a_wrong_digest_is_fetched_once_more_and_then_refused() {
    let wrong = |times: usize| {
        Hub::scripted(model(), move |asked, usual| {
            (asked.is_file("model.safetensors") && asked.before < times).then(|| {
                let mut answer = usual.clone();
                answer.body[400] ^= 1;
                answer
            })
        })
    };
    let place = Place::new(&wrong(1));
    place.download().assert_fetched();
    let hub = wrong(9);
    let place = Place::new(&hub);
    let ran = place.download();
    let said = ran.says("smoke/model-not-fetched");
    assert!(said.contains("model.safetensors") && said.contains(&sha256(&safetensors(300_000))), "{said}");
    assert_eq!((ran.code, hub.asked_for("model.safetensors").len()), (1, 2));
    assert!(!place.snapshot().exists() && !place.blobs().contains(&sha256(&safetensors(300_000))));
}

#[rstest]
#[case::private(401, "", &["401", "HF_TOKEN", "does not take the token"])]
#[case::gated(403, "GatedRepo", &["gated", "accept the licence", "/o/n"])]
#[case::gated_without_right(401, "GatedRepo", &["gated", "accept the licence"])]
#[case::no_model(404, "RepoNotFound", &["no model o/n", "404", "spelling"])]
fn a_refusal_names_its_cause_and_the_next_step(
    #[case] status: u16,
    #[case] code: &'static str,
    #[case] words: &[&str],
) {
    let hub = Hub::scripted(model(), move |_, _| Some(Answer::status(status).header("x-error-code", code)));
    let ran = Place::new(&hub).download();
    let said = ran.says("smoke/model-not-fetched");
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
    assert_eq!((ran.code, hub.asked().len()), (1, 1), "a refusal does not heal by asking again");
}

#[test]
fn without_a_token_a_401_says_how_to_give_one() {
    let hub = Hub::scripted(model(), |_, _| Some(Answer::status(401)));
    let place = Place::new(&hub);
    let mut command = verify(place.folder.path());
    command.args(["smoke", "--config", "smoke.json", "--download"]).envs(place.environment()).env("HF_TOKEN", "");
    let (_, report) = support::report(command);
    let text = report.to_string();
    assert!(text.contains("no token was sent") && text.contains("set HF_TOKEN"), "{report:#}");
    assert!(!hub.asked()[0].headers.contains_key("authorization"));
}

#[test]
fn a_revision_and_a_file_that_are_not_there_are_named() {
    let hub = Hub::scripted(model(), |asked, _| {
        asked.path.contains("/revision/v9").then(|| Answer::status(404).header("x-error-code", "RevisionNotFound"))
    });
    let place = Place::new(&hub);
    place.wants("o/n@v9");
    assert!(place.download().says("smoke/model-not-fetched").contains("no revision v9"));
    place.wants("o/n:absent.gguf");
    assert!(place.download().says("smoke/model-not-fetched").contains("no absent.gguf"));
}

#[test]
fn a_busy_hub_is_waited_for_as_long_as_it_says() {
    let hub = Hub::scripted(model(), |asked, _| match asked.before {
        0 => Some(Answer::status(429).header("retry-after", 1)),
        1 => Some(Answer::status(503).header("retry-after", 0)),
        _ => None,
    });
    let place = Place::new(&hub);
    let began = Instant::now();
    place.download().assert_fetched();
    assert!(began.elapsed() >= Duration::from_secs(4), "four answers asked for a second each");
    let hub = Hub::scripted(model(), |_, _| Some(Answer::status(429).header("retry-after", 100_000)));
    let said = Place::new(&hub).download().says("smoke/model-not-fetched");
    assert!(said.contains("429") && said.contains("wait 100000 s") && hub.asked().len() == 1, "{said}");
}

/// Large files lie on another host: the token stays with the hub, and the signed address
/// is in no text of ours.
#[test]
fn a_redirect_to_another_host_does_not_carry_the_token() {
    let content = Hub::scripted(model(), |asked, _| {
        asked.path.starts_with("/cdn/").then(|| match asked.before {
            // An address that ran out: the hub gives a new one.
            0 => Answer::status(403),
            _ => Answer { body: safetensors(300_000), ..Answer::status(200) },
        })
    });
    let elsewhere = content.address.clone();
    let hub = Hub::scripted(model(), move |asked, _| {
        asked
            .is_file("model.safetensors")
            .then(|| Answer::status(302).header("location", format!("{elsewhere}/cdn/x?Signature=SecretSignature")))
    });
    let place = Place::new(&hub);
    let mut child = place.start();
    assert!(child.wait().is_ok());
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(!text.contains(TOKEN) && !text.contains("SecretSignature"), "{text}");
    assert_eq!(fs::read(place.snapshot().join("model.safetensors")).unwrap(), safetensors(300_000));
    assert_eq!(content.asked().len(), 2);
    for asked in content.asked() {
        assert!(!asked.headers.contains_key("authorization") && !asked.headers.contains_key("cookie"), "{asked:?}");
    }
    assert!(hub.asked().iter().all(|asked| asked.headers["authorization"].ends_with(TOKEN)));
}

#[test]
fn a_model_that_does_not_fit_is_not_begun() {
    let hub = Hub::scripted(model(), |asked, usual| {
        asked.path.starts_with("/api/models/").then(|| {
            let text = String::from_utf8(usual.body.clone()).unwrap();
            let size = format!("\"size\":{}", safetensors(300_000).len());
            Answer { body: text.replace(&size, "\"size\":1000000000000000").into_bytes(), ..Answer::status(200) }
        })
    });
    let place = Place::new(&hub);
    let said = place.download().says("smoke/model-not-fetched");
    assert!(said.contains("931322.6 GiB are needed") && said.contains("free"), "{said}");
    assert_eq!((hub.asked().len(), place.blobs().len()), (1, 0));
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_grow_ends_in_words_and_leaves_the_rest() {
    let hub = Hub::serve(model());
    let place = Place::new(&hub);
    let output = Command::new("sh")
        .args([
            "-c",
            "ulimit -f 200; exec \"$0\" smoke --config smoke.json --download --format json",
            env!("CARGO_BIN_EXE_verify"),
        ])
        .current_dir(place.folder.path())
        .envs(place.environment())
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ran = Ran { code: output.status.code().unwrap(), report };
    let said = ran.says("smoke/model-not-fetched");
    assert!(ran.code == 1 && said.contains("File too large") && said.contains("HF_HUB_CACHE"), "{said}");
    place.download().assert_fetched();
    assert_eq!(hub.asked_for("model.safetensors").len(), 2);
    assert_eq!(hub.asked_for("model.safetensors")[1].from(), Some(102_400));
}

#[rstest]
#[case("../../../evil.json")]
#[case("/tmp/evil.json")]
#[case("a/../../evil.json")]
#[case("..\\evil.json")]
fn a_name_that_climbs_out_of_the_folder_refuses_the_model(#[case] name: &'static str) {
    let mut files = model();
    files.push((name, b"evil".to_vec()));
    let hub = Hub::serve(files);
    let place = Place::new(&hub);
    let said = place.download().says("smoke/model-not-fetched");
    assert!(said.contains("leads out of the model's folder"), "{said}");
    assert_eq!((hub.asked().len(), place.cache().join("hf").exists()), (1, false));
}

#[test]
fn a_commit_or_a_digest_that_is_none_is_not_used_as_a_name() {
    for (from, to) in
        [(COMMIT.to_owned(), "../../../../evil".to_owned()), (sha256(&safetensors(300_000)), "../../evil".to_owned())]
    {
        let hub = Hub::scripted(model(), move |asked, usual| {
            asked.path.starts_with("/api/models/").then(|| {
                let text = String::from_utf8(usual.body.clone()).unwrap();
                Answer { body: text.replace(&from, &to).into_bytes(), ..Answer::status(200) }
            })
        });
        let place = Place::new(&hub);
        assert!(place.download().says("smoke/model-not-fetched").contains("unusable answer"));
        assert!(!place.folder.path().join("evil").exists() && !place.cache().join("evil").exists());
    }
}

#[test]
fn a_file_of_unknown_length_ends_where_it_ends_and_a_longer_one_is_refused() {
    let unknown = Hub::scripted(model(), |_, usual| Some(Answer { chunked: true, ..usual.clone() }));
    let place = Place::new(&unknown);
    place.download().assert_fetched();
    assert_eq!(fs::read(place.snapshot().join("model.safetensors")).unwrap(), safetensors(300_000));
    let cut = Hub::scripted(model(), |asked, usual| {
        let first = asked.is_file("model.safetensors") && asked.before == 0;
        first.then(|| Answer { chunked: true, cut: Some(70_000), ..usual.clone() })
    });
    let place = Place::new(&cut);
    place.download().assert_fetched();
    assert_eq!(cut.asked_for("model.safetensors").len(), 2);
    let longer = Hub::scripted(model(), |asked, usual| {
        asked.is_file("model.safetensors").then(|| {
            let mut answer = usual.clone();
            answer.body.extend([0; 1000]);
            answer
        })
    });
    let said = Place::new(&longer).download().says("smoke/model-not-fetched");
    assert!(said.contains("longer than it is listed"), "{said}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_what_came_and_the_next_run_goes_on_there() {
    use nix::sys::signal::{Signal, kill};
    let hub = Hub::scripted(model(), |asked, usual| {
        let slow = asked.is_file("model.safetensors") && asked.before == 0;
        slow.then(|| Answer { slow: Some(Duration::from_millis(20)), ..usual.clone() })
    });
    let place = Place::new(&hub);
    let child = place.start();
    let partial = place.path(&format!("hf/models--o--n/blobs/{}.incomplete", sha256(&safetensors(300_000))));
    let began = Instant::now();
    while fs::metadata(&partial).map_or(0, |facts| facts.len()) < 20_000 {
        assert!(began.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(10));
    }
    let began = Instant::now();
    kill(nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(began.elapsed() < Duration::from_secs(2));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report.to_string().contains("goes on where it stopped"), "{report:#}");
    let kept = fs::metadata(&partial).unwrap().len();
    assert!(
        !place.snapshot().exists() && !place.path("hf/models--o--n/refs").exists(),
        "half a model is shown to nobody"
    );
    place.download().assert_fetched();
    let asked = hub.asked_for("model.safetensors");
    assert_eq!(asked[1].from(), Some(usize::try_from(kept).unwrap()));
    assert!(asked[1].headers.contains_key("if-range"));
}

#[test]
fn two_at_once_fetch_every_content_once() {
    let hub = Hub::scripted(model(), |asked, usual| {
        asked.is_file("model.safetensors").then(|| Answer { slow: Some(Duration::from_millis(4)), ..usual.clone() })
    });
    let place = Place::new(&hub);
    let children = [place.start(), place.start()];
    for child in children {
        let output = child.wait_with_output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        Ran { code: 1, report }.assert_fetched();
    }
    assert_eq!(hub.asked_for("model.safetensors").len(), 1);
    assert_eq!(fs::read(place.snapshot().join("model.safetensors")).unwrap(), safetensors(300_000));
}

#[test]
fn of_modelscope_a_model_lies_where_its_library_looks_for_it() {
    let hub = Hub::serve(model());
    let mut place = Place::new(&Hub::scripted(Vec::new(), |_, _| Some(Answer::status(404))));
    place.other_hub.clone_from(&hub.address);
    // The first hub has no such model; the second is asked then.
    place.download().assert_fetched();
    let folder = place.path("ms/models/o--n/snapshots/master");
    assert_eq!(names(&folder), ["config.json", "model.safetensors", "tokenizer.json"]);
    assert_eq!(fs::read(folder.join("model.safetensors")).unwrap(), safetensors(300_000));
    assert!(
        hub.asked().iter().all(|asked| !asked.headers.contains_key("authorization")),
        "the token is the other hub's"
    );
    place.run(&["--offline"]).assert_fetched();
    assert_eq!(hub.asked().len(), 4);
}

#[test]
fn a_hub_that_cannot_be_reached_is_named_with_the_variable_of_mirrors() {
    let hub = Hub::serve(model());
    let mut place = Place::new(&hub);
    place.hub = "http://127.0.0.1:9".to_owned();
    let said = place.download().says("smoke/model-not-fetched");
    assert!(said.contains("127.0.0.1:9") && said.contains("HF_ENDPOINT"), "{said}");
    place.other_hub.clone_from(&hub.address);
    place.download().assert_fetched();
}

#[test]
fn a_gguf_repository_gives_the_one_file_that_was_named() {
    let files = || vec![("README.md", vec![0; 9]), ("m-Q4_K_M.gguf", gguf(5000)), ("m-Q8_0.gguf", gguf(9000))];
    let hub = Hub::serve(files());
    let place = Place::new(&hub);
    let said = place.download().says("smoke/model-not-fetched");
    assert!(said.contains("--model o/n:m-Q4_K_M.gguf"), "{said}");
    place.wants("o/n:m-Q8_0.gguf");
    place.download().assert_fetched();
    assert_eq!(names(&place.snapshot()), ["m-Q8_0.gguf"]);
    place.run(&["--offline"]).assert_fetched();
    assert_eq!(hub.asked_for("m-Q4_K_M.gguf").len(), 0);
}

#[test]
fn a_pinned_commit_is_asked_for_by_its_name_and_needs_no_reference() {
    let hub = Hub::serve(model());
    let place = Place::new(&hub);
    place.wants(&format!("o/n@{COMMIT}"));
    place.download().assert_fetched();
    assert!(hub.asked()[0].path.contains(&format!("/revision/{COMMIT}")));
    assert!(hub.asked_for("config.json")[0].path.contains(&format!("/resolve/{COMMIT}/")));
    assert_eq!(names(&place.path("hf/models--o--n")), ["blobs", "snapshots"]);
    place.run(&["--offline"]).assert_fetched();
    assert_eq!(hub.asked().len(), 4);
}
