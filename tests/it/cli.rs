//! Exit codes, formats and faults of the command line.

use crate::support::{report, verify};
use std::fs;

fn empty() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn a_fault_of_the_command_line_exits_2() {
    verify(empty().path()).arg("al").assert().code(2);
    verify(empty().path()).args(["all", "--only", "smok"]).assert().code(2);
}

#[test]
fn a_misspelt_command_option_or_format_is_suggested() {
    for (args, word) in [
        (["anwsers", "."], "'answers'"),
        (["links", "--fixx"], "'--fix'"),
        (["static", "--format=sariff"], "'sarif'"),
        (["static", "--output=juint=x"], "`junit`"),
        (["man", "concludee"], "`conclude`"),
    ] {
        let output = verify(empty().path()).args(args).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr.contains(word), "{args:?}: {stderr}");
    }
}

#[test]
fn every_shell_has_a_completion_script_that_knows_the_commands() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = verify(empty().path()).args(["completions", shell]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains("normalize") && text.contains("partition"), "{shell}");
        assert!(!text.contains("__confine"), "internal commands are nobody's to type");
    }
}

/// Every command has a page that names its options: help and pages have one source.
#[test]
fn man_pages_have_every_command_and_option() {
    use clap::CommandFactory;
    let folder = empty();
    verify(folder.path()).args(["man", "--out-dir", "pages"]).assert().success().stdout("");
    for command in verify::cli::Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
        let page = fs::read_to_string(folder.path().join(format!("pages/verify-{}.1", command.get_name()))).unwrap();
        for option in command.get_arguments().filter_map(clap::Arg::get_long) {
            assert!(page.contains(&option.replace('-', "\\-")), "{}: --{option}", command.get_name());
        }
    }
    let page = verify(folder.path()).arg("man").output().unwrap().stdout;
    assert_eq!(fs::read(folder.path().join("pages/verify.1")).unwrap(), page);
    let page = String::from_utf8_lossy(&page);
    assert!(page.contains("verify\\-conclude") && page.contains("verify \\- The gate between"), "{page}");
}

#[test]
fn help_and_version_exit_0() {
    verify(empty().path()).arg("--help").assert().success();
    verify(empty().path()).arg("--version").assert().success().stdout("verify 0.1.0\n");
}

#[test]
fn an_unknown_setting_is_a_usage_fault_with_a_report_and_no_stages() {
    let folder = empty();
    fs::write(folder.path().join("verify.toml"), "[smoke]\nbackned = \"cpu\"\n").unwrap();
    let mut command = verify(folder.path());
    command.arg("static");
    let (code, report) = report(command);
    assert_eq!((code, report["exit_code"].as_i64()), (2, Some(2)));
    assert_eq!(report["stages"], serde_json::json!([]));
    assert_eq!(report["error"]["help"], "did you mean `backend`?");
}

#[test]
fn an_unknown_project_is_a_usage_fault() {
    verify(empty().path()).args(["all", "--project", "7"]).assert().code(2);
}

#[test]
fn output_takes_the_format_and_the_console_keeps_the_text() {
    let folder = empty();
    let output = verify(folder.path()).args(["all", "--format", "json", "--output", "report.json"]).output().unwrap();
    assert!(!output.stdout.starts_with(b"{"));
    let text = fs::read_to_string(folder.path().join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["schema_version"], "verify-report/v1");
}

#[test]
fn init_writes_once_and_what_it_writes_is_valid() {
    let folder = empty();
    verify(folder.path()).arg("init").assert().success();
    verify(folder.path()).arg("init").assert().code(2);
    let text = fs::read_to_string(folder.path().join("verify.toml")).unwrap();
    // The commented keys must be as valid as the file itself.
    let keys: String = text
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|rest| rest.starts_with('[') || rest.contains(" = ")).unwrap_or(""))
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(folder.path().join("verify.toml"), keys).unwrap();
    verify(folder.path()).arg("settings").assert().success();
}

/// A number that no run can use is refused where it stands.
#[rstest::rstest]
#[case("[answers]\ntimeout_s = -1.0\n")]
#[case("[answers]\ntimeout_s = nan\n")]
#[case("[answers]\njobs = 9000000000\n")]
#[case("[links.external]\nconcurrency = 0\n")]
#[case("[[project]]\nid = 66\nconcurrency = 100000\n")]
#[case("[course]\ndocs = 3\n")]
#[case("[conclude]\nmax_others_cpu = nan\n")]
#[case("[conclude]\nmax_others_cpu = -5.0\n")]
#[case("[conclude]\nmax_cv = inf\n")]
fn impossible_settings_are_placed(#[case] text: &str) {
    let folder = empty();
    fs::write(folder.path().join("verify.toml"), text).unwrap();
    let output = verify(folder.path()).arg("static").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("verify.toml:") && !stderr.contains("struct ") && !stderr.contains("usize"), "{stderr}");
}

#[cfg(unix)]
#[test]
fn settings_that_are_no_regular_file_are_a_fault() {
    let folder = empty();
    fs::create_dir(folder.path().join("verify.toml")).unwrap();
    verify(folder.path()).args(["-C", ".", "static"]).assert().code(2);
    fs::remove_dir(folder.path().join("verify.toml")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("verify.toml")).unwrap();
    verify(folder.path()).args(["-C", ".", "static"]).assert().code(2);
}

/// A report that is lost on a full disk is no success; a reader that went away is no fault.
#[cfg(target_os = "linux")]
#[test]
fn a_lost_report_is_no_success() {
    let folder = empty();
    fs::write(folder.path().join("a.py"), "x = 1\n").unwrap();
    let run = |out: std::process::Stdio| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_verify"));
        command.arg("static").current_dir(folder.path()).stdout(out).stderr(std::process::Stdio::null());
        command.status().unwrap().code()
    };
    assert_eq!(run(fs::OpenOptions::new().write(true).open("/dev/full").unwrap().into()), Some(1));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(run(writer.into()), Some(0));
}

#[test]
fn an_output_goes_only_where_there_is_a_folder_and_a_known_format() {
    let folder = empty();
    for target in ["xml=x", "=x", "json=", "json=none/x.json"] {
        verify(folder.path()).args(["static", "--output", target]).assert().code(2);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_backend_that_does_not_exist_is_known_before_anything_runs() {
    let folder = empty();
    fs::write(folder.path().join("a.py"), "x = 1\n").unwrap();
    for choice in [["--backend", "nope"], ["--base-url", "notaurl"], ["--base-url", "ftp://x"]] {
        let output = verify(folder.path()).arg("all").args(choice).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{choice:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_name_cannot_steer_the_terminal() {
    let folder = empty();
    fs::write(folder.path().join("esc\u{1b}[31mred\n.py"), "x = (\n").unwrap();
    let output = verify(folder.path()).args(["static", "--color", "never"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!text.contains('\u{1b}') && text.contains("esc␛[31mred␊.py"), "{text}");
}
