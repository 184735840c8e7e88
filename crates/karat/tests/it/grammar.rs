//! The grammar of commands: `run` means the same for every evaluation, and the spellings of version
//! 77d6b38 work or name the present ones.

use crate::common;

use common::{BM25, GOLDEN, Scratch};
use serde_json::Value;

const EVALUATIONS: [&str; 5] = ["server", "agent", "retrieval", "detection", "resilience"];

/// One task that the scripted agent does with the demo server.
const TASK: &str = r#"{"id":"sum","input":"What do 2 and 3 make?","servers":["demo"],"expect":{"calls":[{"name":"add","arguments":{"a":2,"b":3}}]},"plan":{"turns":[{"calls":[{"name":"add","arguments":{"a":2,"b":3}}]},{"say":"They make 5."}]}}"#;

/// A project with an entry `mine` of each evaluation.
fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    let retrieval = scratch.read("karat.toml").replace("\"r\"", "\"mine\"");
    scratch.write(
        "suite.yaml",
        "name: sums\ntest_cases:\n  - {id: add, tool: add, input: {a: 2, b: 3}, expect: {json: $.sum, equals: 5}}\n",
    );
    let others = "
[[server]]
name = \"mine\"
suite = \"suite.yaml\"
builtin = \"demo\"

[[agent]]
name = \"mine\"
dataset = \"bundled:traces/v2\"
tools = [\"bundled:tools/v1\"]

[[detection]]
name = \"mine\"
dataset = \"bundled:threats/v1\"
system = { builtin = \"builtin\" }

[[resilience]]
name = \"mine\"
dataset = \"bundled:worlds/v1\"
agent = \"diligent\"
select = { worlds = [\"desk\"] }
";
    scratch.write("karat.toml", format!("{retrieval}{others}"));
    scratch.write("tasks.jsonl", TASK);
    scratch
}

/// Evaluation and name of each report.
fn measured(document: &Value) -> Vec<(String, String)> {
    let text = |report: &Value, key: &str| report[key].as_str().unwrap().to_owned();
    let reports = document["reports"].as_array().unwrap();
    reports.iter().map(|report| (text(report, "evaluation"), text(report, "name"))).collect()
}

fn one(evaluation: &str, name: &str) -> Vec<(String, String)> {
    vec![(evaluation.to_owned(), name.to_owned())]
}

#[test]
fn run_measures_the_entries_of_the_project_for_every_evaluation() {
    let scratch = project();
    std::fs::create_dir_all(scratch.path("inner/most")).unwrap();
    for evaluation in EVALUATIONS {
        let ran = scratch.karat(&[evaluation, "run", "--json"]).expect(0);
        assert_eq!(measured(&ran.json()), one(evaluation, "mine"));
        assert!(!ran.stderr.contains("note: no karat.toml"), "{}", ran.stderr);
        let above = scratch
            .command(&[evaluation, "run", "--json", "--only", "mine"])
            .current_dir(scratch.path("inner/most"))
            .output()
            .unwrap();
        let document: Value = serde_json::from_slice(&above.stdout).unwrap();
        assert_eq!(measured(&document), one(evaluation, "mine"));
        assert!(!scratch.path("inner/most/karat-report").exists());
    }
}

#[test]
fn run_takes_a_project_file_or_its_folder_for_every_evaluation() {
    let scratch = project();
    std::fs::create_dir_all(scratch.path("elsewhere")).unwrap();
    for evaluation in EVALUATIONS {
        for project in ["../karat.toml", ".."] {
            let ran = scratch
                .command(&[evaluation, "run", project, "--json", "-o", "more.json", "--strict"])
                .current_dir(scratch.path("elsewhere"))
                .output()
                .unwrap();
            let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
            assert_eq!(measured(&document), one(evaluation, "mine"), "{ran:?}");
            std::fs::remove_file(scratch.path("elsewhere/more.json")).unwrap();
        }
        let other = scratch.karat(&[evaluation, "run", "--only", "other"]).expect(2);
        other.says(&[&format!("no {evaluation} entry named \"other\""), "it has"]);
    }
}

#[test]
fn run_without_a_project_measures_the_bundled_entries_and_says_so() {
    let scratch = Scratch::new();
    let names = [("server", "demo"), ("agent", "traces"), ("retrieval", "bm25")];
    for (evaluation, name) in names.into_iter().chain([("detection", "builtin")]) {
        let ran = scratch.karat(&[evaluation, "run", "--json"]).expect(0);
        assert_eq!(measured(&ran.json()), one(evaluation, name));
        let note = format!("the {evaluation} entries of the bundled project");
        let notes: Vec<&str> = ran.stderr.lines().filter(|line| line.contains(&note)).collect();
        assert_eq!(notes.len(), 1, "{}", ran.stderr);
        assert!(notes[0].contains("no karat.toml"), "{}", notes[0]);
        let on_purpose = scratch.karat(&[evaluation, "run", "--json", "--bundled"]).expect(0);
        assert_eq!(measured(&on_purpose.json()), one(evaluation, name));
        assert!(!on_purpose.stderr.contains("karat.toml"), "{}", on_purpose.stderr);
    }
    // A check passes for ever if it measures something else than what it is for.
    scratch.karat(&["check"]).expect(2).says(&["karat demo", "karat init"]);
    scratch.karat(&["check", "--evaluation", "retrieval"]).expect(2).says(&["karat demo"]);
    // A project that is named is needed.
    scratch.karat(&["retrieval", "run", "gone.toml"]).expect(2).says(&["gone.toml"]);
}

#[test]
fn resilience_without_a_project_shows_the_worst_case_in_the_bundled_worlds() {
    let scratch = Scratch::new();
    let ran = scratch.karat(&["resilience", "run", "--json"]).expect(0);
    assert_eq!(measured(&ran.json()), one("resilience", "hijacked-none"));
    assert!(ran.stderr.contains("no karat.toml"), "{}", ran.stderr);
    let bundled = scratch.karat(&["resilience", "run", "--bundled", "--json"]).expect(0);
    assert_eq!(measured(&bundled.json()), one("resilience", "worlds"));
}

#[test]
fn a_run_that_the_command_line_describes_leaves_the_project_alone() {
    let scratch = project();
    // An option counts although its value is the default.
    for described in [&["--agent", "hijacked"][..], &["--world", "mail"], &["--timeout", "30s"]] {
        let ran = scratch.karat(&[&["resilience", "run", "--json"], described].concat()).expect(0);
        assert_eq!(measured(&ran.json()), one("resilience", "hijacked-none"), "{described:?}");
        assert!(!ran.stderr.contains("karat.toml"), "{}", ran.stderr);
    }
    let ran = scratch.karat(&["agent", "run", "tasks.jsonl", "--json"]).expect(0);
    assert_eq!(measured(&ran.json()), one("agent", "run"));

    for (refused, word) in [
        (&["agent", "run", "--runs", "1"][..], "TASKS"),
        (&["agent", "run", "--name", "run"], "TASKS"),
        (&["agent", "run", "tasks.jsonl", "--only", "mine"], "--only"),
        (&["agent", "run", "tasks.jsonl", "--bundled"], "--bundled"),
        (&["resilience", "run", "karat.toml", "--agent", "hijacked"], "PROJECT"),
        (&["resilience", "run", "--only", "mine", "--world", "mail"], "--only"),
        (&["resilience", "run", "--bundled", "--", "proxy"], "--bundled"),
        (&["retrieval", "run", "karat.toml", "--results", "20"], "PROJECT"),
        (&["retrieval", "run", "--only", "mine", "--builtin", "bm25"], "--only"),
        (&["retrieval", "run", "--bundled", "--", "search"], "--bundled"),
        (&["detection", "run", "--bundled", "--", "scanner"], "--bundled"),
    ] {
        let ran = scratch.karat(refused).expect(2);
        assert!(ran.stderr.contains(word), "{refused:?}: {}", ran.stderr);
    }
}

#[test]
fn an_option_of_a_search_without_its_system_measures_the_default_engine_and_not_the_project() {
    let scratch = project();
    for described in [&["--results", "20"][..], &["--no-probe"], &["--separator", ":"]] {
        let ran = scratch.karat(&[&["retrieval", "run", "--json"], described].concat()).expect(0);
        assert_eq!(measured(&ran.json()), one("retrieval", "search"), "{described:?}");
    }
}

#[test]
fn options_on_a_server_are_refused_where_they_would_have_no_effect() {
    let scratch = project();
    scratch.write("tools.json", r#"{"tools": []}"#);
    scratch.write("recording.jsonl", "");
    let endpoint = "http://127.0.0.1:9/?q={query}";
    for (refused, option) in [
        (&["retrieval", "run", "--cwd", "."][..], "--cwd"),
        (&["retrieval", "run", "--builtin", "bm25", "-e", "A=b"], "-e"),
        (&["retrieval", "run", "--url", endpoint, "--cwd", "."], "--cwd"),
        (&["retrieval", "run", "--header", "a: b", "--", "search"], "--header"),
        (&["server", "lint", "--tools", "tools.json", "--cwd", "."], "--cwd"),
        (&["server", "distil", "recording.jsonl", "--isolate", "bwrap"], "--isolate"),
    ] {
        let ran = scratch.karat(refused).expect(2);
        assert!(ran.stderr.contains(&format!("karat: {option} ")), "{refused:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
}

#[test]
fn run_names_the_entries_of_a_project_that_has_none_of_its_evaluation() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    for evaluation in ["server", "agent", "detection", "resilience"] {
        let none = format!("the project has no {evaluation} entry");
        scratch.karat(&[evaluation, "run"]).expect(2).says(&[&none, "it has retrieval"]);
    }
}

/// Every command of version 77d6b38 with its options.
const EARLIER: &[(&str, &str)] = &[
    ("check", "--out --output --resume --strict --only --history --quiet --json --color"),
    (
        "retrieval score",
        "--dataset --corpus --golden --rankings --run --absent-is-empty --max-errors",
    ),
    ("retrieval export-trec", "--dataset --corpus --golden --qrels --run --rankings"),
    ("retrieval serve-fitness", "--dataset --corpus --golden --engine --weights --metric --limit"),
    ("detection score", "--corpus --verdicts"),
    (
        "server test",
        "--tag --case --update --timeout-ms --start-timeout-ms --record --out --output",
    ),
    (
        "server load",
        "--tool --input --tag --concurrency --rate --connections --duration --count --ramp --warm-up \
         --find-max --max-p50 --max-error-rate --seed --timeout-ms --start-timeout-ms --out --output",
    ),
    ("server lint", "--record --tools --allow --fail-on --rules --sarif"),
    (
        "server fuzz",
        "--record --tool --set --allow-destructive --seed --timeout-ms --start-timeout-ms \
         --time-limit --allow --fail-on --rules --output --sarif --cases --shrink-calls",
    ),
    (
        "server attack",
        "--record --tool --set --allow-destructive --seed --timeout-ms --start-timeout-ms \
         --time-limit --allow --fail-on --rules --output --sarif --class --case --root --flood",
    ),
    ("server call", "--tool --input --record --timeout-ms --start-timeout-ms"),
    (
        "agent score",
        "--format --tasks --max-bad --tools --metric --verdicts --before --means --per-item --name \
         --min --max --max-drop --baseline --max-errors --out --output",
    ),
    (
        "agent run",
        "--model --endpoint --api --key-env --config --runs --setting --distractor --max-turns \
         --max-tokens --max-seconds --max-cost --price --answer-tokens --temperature --seed --system \
         --concurrency --max-errors --timeout --retry-pause-ms --record --replay --traces --name --min \
         --max --out --output",
    ),
    (
        "agent judge",
        "--format --tasks --max-bad --model --endpoint --api --key-env --votes --temperature --seed \
         --answer-tokens --timeout --verdicts",
    ),
    ("agent diff", "--format --tasks --max-bad --within --min-similarity --output"),
    ("agent check", "--out --output --resume --strict --only"),
    ("score trec", "--qrels --run --measure --per-query --level --judged-only --float32"),
    (
        "corpus capture",
        "--out --servers --installed --config --server --all --url --name --env --header --timeout \
         --parallel --keep-going --write-lock",
    ),
    (
        "corpus serve",
        "--server --stdio --http --proxy-config --out --proxy-listen --proxy-data --proxy-key",
    ),
    ("corpus freeze", "--into --golden --without-golden --licence --made"),
    ("corpus verify", "--lock"),
    ("corpus lock", "--out"),
    ("corpus diff", "--exit-code"),
    ("compare", "--slice"),
    ("baseline update", "--out --resume --only --dry-run"),
    ("baseline show", ""),
    ("history add", "--db"),
    ("history list", "--db --evaluation"),
    ("history show", "--db --evaluation --last"),
    ("history compare", "--db --slice"),
    ("history prune", "--db --keep --older-than --dry-run"),
    ("history export", "--db --output"),
    ("serve", "--db --port"),
    ("init", "--for --ci --karat-from --url"),
    ("demo-server", "--http --vulnerable --replay --paced"),
    ("metrics", "--markdown"),
    ("schema", ""),
    ("completions", ""),
    ("man", ""),
];

/// The options that name and start a server, of the commands of version 77d6b38 that had them.
const EARLIER_TARGET: &str = "--url --config --server --transport --protocol --env --header --cwd \
     --sampling --elicitation --roots --isolate --allow-network --mount --image --limit";

/// The options of version 77d6b38 that have another name now: the command (empty for all of them), the option with
/// a value, and its present name.
const RENAMED: [(&str, [&str; 2], &str); 10] = [
    ("", ["--timeout-ms", "2000"], "--timeout"),
    ("", ["--start-timeout-ms", "900"], "--start-timeout"),
    ("", ["--retry-pause-ms", "0"], "--backoff"),
    ("", ["--max-seconds", "60"], "--agent-timeout"),
    ("", ["--cases", "60"], "--inputs"),
    ("", ["--max-bad", "0.5"], "--max-malformed"),
    ("", ["--parallel", "3"], "--concurrency"),
    ("retrieval serve-fitness", ["--limit", "5"], "--results"),
    ("corpus lock", ["--out", "x.json"], "--output"),
    ("corpus serve", ["--out", "x.json"], "--output"),
];

#[test]
fn every_earlier_command_and_option_is_still_understood() {
    let scratch = Scratch::new();
    for (command, options) in EARLIER {
        let mut arguments: Vec<&str> = command.split(' ').collect();
        arguments.push("--help");
        let help = scratch.karat(&arguments).expect(0).stdout;
        let words: Vec<&str> = help.split([' ', '\n', '[', ']', '=', ',']).collect();
        let target = if command.starts_with("server ") { EARLIER_TARGET } else { "" };
        for option in options.split_whitespace().chain(target.split_whitespace()) {
            let renamed = RENAMED.iter().find(|(of, [earlier, _], _)| {
                *earlier == option && (of.is_empty() || of == command)
            });
            let Some((_, [earlier, value], present)) = renamed else {
                assert!(words.contains(&option), "{command} {option}: {help}");
                continue;
            };
            assert!(words.contains(present), "{command} {option}: {help}");
            assert!(!words.contains(earlier), "{command} {option}: {help}");
            // It is read: what is refused is the option after it.
            for earlier in [
                vec![(*earlier).to_owned(), (*value).to_owned()],
                vec![format!("{earlier}={value}")],
            ] {
                let given = command.split(' ').map(str::to_owned).chain(earlier);
                let given: Vec<String> = given.chain(["--no-such-option".to_owned()]).collect();
                let given: Vec<&str> = given.iter().map(String::as_str).collect();
                let refused = scratch.karat(&given).expect(2).stderr;
                assert!(refused.contains("'--no-such-option'"), "{given:?}: {refused}");
            }
        }
    }
}

#[test]
fn an_earlier_option_works_with_one_line_that_names_the_present_one() {
    let scratch = Scratch::new();
    scratch.write(
        "suite.yaml",
        "name: sums\ntest_cases:\n  - {id: a, tool: add, input: {a: 2, b: 3}}\n",
    );
    scratch.write("tasks.jsonl", TASK);
    let demo = ["--", env!("CARGO_BIN_EXE_karat"), "demo-server"];
    let call = ["server", "call", "--tool", "add", "--input", r#"{"a": 2, "b": 3}"#];
    let fuzz = ["server", "fuzz", "--tool", "add", "--fail-on", "never"];
    scratch.write("traces.jsonl", r#"{"id": "a", "calls": [], "expect": {"calls": []}}"#);
    let load = ["server", "load", "suite.yaml", "--count", "50", "--warm-up", "0"];
    let attacked = ["resilience", "run", "--world", "mail"];
    for (command, earlier, present) in [
        (
            [&call[..], &["--timeout-ms", "20000"], &demo].concat(),
            "--timeout-ms 20000",
            "--timeout 20000ms",
        ),
        (
            [&call[..], &["--timeout-ms=20000"], &demo].concat(),
            "--timeout-ms 20000",
            "--timeout 20000ms",
        ),
        (
            [&call[..], &["--start-timeout-ms", "20000"], &demo].concat(),
            "--start-timeout-ms 20000",
            "--start-timeout 20000ms",
        ),
        ([&load[..], &["--max-p50", "9000"], &demo].concat(), "--max-p50 9000", "--max-p50 9000ms"),
        ([&attacked[..], &["--parallel", "2"]].concat(), "--parallel", "--concurrency"),
        (
            [&attacked[..], &["--agent-seconds", "60"]].concat(),
            "--agent-seconds 60",
            "--agent-timeout 60s",
        ),
        (
            vec!["agent", "run", "tasks.jsonl", "--max-seconds", "60"],
            "--max-seconds 60",
            "--agent-timeout 60s",
        ),
        (vec!["agent", "run", "tasks.jsonl", "--max-time", "1m"], "--max-time", "--agent-timeout"),
        (
            vec!["agent", "run", "tasks.jsonl", "--retry-pause-ms", "5"],
            "--retry-pause-ms 5",
            "--backoff 5ms",
        ),
        (vec!["agent", "run", "tasks.jsonl", "--retry-pause=5ms"], "--retry-pause", "--backoff"),
        (
            vec!["agent", "score", "traces.jsonl", "--format", "native", "--max-bad", "0.5"],
            "--max-bad",
            "--max-malformed",
        ),
        ([&fuzz[..], &["--cases", "1"], &demo].concat(), "--cases", "--inputs"),
        (
            vec!["retrieval", "run", "--builtin", "bm25", "--format", "agent"],
            "--format",
            "--output-format",
        ),
        (vec!["corpus", "lock", "bundled:tools/v1", "--out", "lock.json"], "--out", "--output"),
    ] {
        let hints = |stderr: &str| -> Vec<String> {
            stderr.lines().filter(|line| line.starts_with("karat: ")).map(str::to_owned).collect()
        };
        let ran = scratch.karat(&command).expect(0);
        let wanted = format!("karat: `{earlier}` is now `{present}`; ");
        let found = hints(&ran.stderr);
        assert!(found.len() == 1 && found[0].starts_with(&wanted), "{command:?}: {}", ran.stderr);
        let quiet = scratch.karat(&[&["-q"], &command[..]].concat()).expect(0);
        assert_eq!(hints(&quiet.stderr), [""; 0], "{command:?}");
    }
    assert!(scratch.path("lock.json").exists());
    // Two earlier ones get two lines.
    let both = ["--timeout-ms", "20000", "--start-timeout-ms", "20000"];
    let ran = scratch.karat(&[&call[..], &both, &demo].concat()).expect(0);
    assert_eq!(ran.stderr.matches(" is now ").count(), 2, "{}", ran.stderr);
}

#[test]
fn an_earlier_option_is_not_looked_for_where_it_never_was() {
    let scratch = Scratch::new();
    for (command, option) in [
        (&["check", "--timeout-ms", "5"][..], "--timeout-ms"),
        (&["check", "--parallel", "5"], "--parallel"),
        (&["check", "--cases", "5"], "--cases"),
        (&["compare", "a.json", "--format", "agent"], "--format"),
        (&["compare", "a.json", "--out", "x"], "--out"),
        (&["retrieval", "score", "--limit", "5"], "--limit"),
    ] {
        let refused = scratch.karat(command).expect(2).stderr;
        assert!(refused.contains(&format!("'{option}'")), "{command:?}: {refused}");
        assert!(!refused.contains(" is now "), "{refused}");
    }
    // The words after `--` belong to the server.
    let odd = ["server", "call", "--tool", "add", "--timeout", "9s", "--"];
    let server = [env!("CARGO_BIN_EXE_karat"), "demo-server", "--timeout-ms", "5"];
    let ran = scratch.karat(&[&odd[..], &server].concat()).expect(3);
    assert!(!ran.stderr.contains(" is now "), "{}", ran.stderr);
}

#[test]
fn an_invalid_time_is_refused_with_the_range() {
    let scratch = Scratch::new();
    let server = ["server", "call", "--tool", "add", "--timeout"];
    let capture = ["corpus", "capture", "--out", "b", "--timeout"];
    let agent = ["agent", "run", "tasks.jsonl", "--agent-timeout"];
    let demo = ["--", env!("CARGO_BIN_EXE_karat"), "demo-server"];
    let refused = |command: &[&str], value: &str, demo: &[&str]| {
        let (last, before) = command.split_last().unwrap();
        let joined = format!("{last}={value}");
        let ran = scratch.karat(&[before, &[joined.as_str()], demo].concat()).expect(2);
        assert!(ran.stderr.contains(&format!("'{last} <TIME>'")), "{value}: {}", ran.stderr);
        ran.stderr
    };
    for value in ["5x", "0", "-1", "1e999s", "", "ten", "NaN", "500us", "25h"] {
        let said = refused(&server, value, &demo);
        assert!(said.contains("a time from 1ms to 24h") || value.is_empty(), "{value}: {said}");
    }
    for value in ["0.5", "999ms", "3601", "2h"] {
        let said = refused(&capture, value, &demo);
        assert!(said.contains("a time from 1s to 1h"), "{value}: {said}");
    }
    assert!(refused(&agent, "0", &[]).contains("a time from 1ms to 24h"));
    for seconds in ["20", "20s", "0.5m", "20000ms", "2e1"] {
        let call = ["server", "call", "--tool", "add", "--input", r#"{"a": 2, "b": 3}"#];
        scratch.karat(&[&call[..], &["--timeout", seconds], &demo].concat()).expect(0);
    }
}

/// Entries with an earlier key: the entry, the key with its value, the present one, and a word of the error that
/// the value leads to.
const EARLIER_KEYS: [(&str, &str, &str, &str); 7] = [
    (
        "[[retrieval]]\ndataset = \"bundled:tools/v1\"\nsystem = { builtin = \"bm25\" }\n",
        "limit = 0",
        "`limit` is now `results`",
        "`results` must be",
    ),
    (
        "[[retrieval]]\ndataset = \"bundled:tools/v1\"\nsystem = { builtin = \"bm25\" }\n",
        "ready.limit = \"x\"",
        "`ready.limit` is now `ready.results`",
        "expected a non-negative integer",
    ),
    (
        "[[retrieval]]\ndataset = \"bundled:tools/v1\"\nsystem.mcp.server.command = [\"x\"]\n\
         system.mcp.tool = \"find\"\n",
        "system.mcp.start_timeout_ms = 0",
        "`system.mcp.start_timeout_ms` is now `start_timeout_ms`",
        "`start_timeout_ms` must be at least 1",
    ),
    (
        "[[detection]]\ndataset = \"bundled:threats/v1\"\nsystem.mcp.server.command = [\"x\"]\n\
         system.mcp.tool = \"scan\"\nsystem.mcp.arguments = { text = \"{tool}\" }\n\
         system.mcp.answer.flagged = \"flagged\"\n",
        "system.mcp.start_timeout_ms = 0",
        "`system.mcp.start_timeout_ms` is now `start_timeout_ms`",
        "`start_timeout_ms` must be at least 1",
    ),
    ("[[fuzz]]\nbuiltin = \"demo\"\n", "cases = 0", "`cases` is now `inputs`", "`inputs` must be"),
    (
        "[[agent]]\ndataset = \"bundled:traces/v2\"\n",
        "max_bad = 2",
        "`max_bad` is now `max_malformed`",
        "`max_malformed` must be",
    ),
    (
        "[[resilience]]\ndataset = \"bundled:worlds/v1\"\n",
        "agent_seconds = 0",
        "`agent_seconds` is now `agent_timeout = \"0s\"`",
        "`agent_timeout` must be",
    ),
];

#[test]
fn an_earlier_key_of_a_project_is_read_as_the_present_one() {
    let scratch = Scratch::new();
    for (entry, key, _, error) in EARLIER_KEYS {
        scratch.write("karat.toml", format!("{entry}name = \"x\"\n{key}\n"));
        scratch.karat(&["baseline", "show"]).expect(2).says(&[error]);
    }
}

#[test]
fn an_earlier_key_of_a_project_works_with_one_line_that_names_the_present_one() {
    let scratch = Scratch::new();
    for (entry, key, hint, _) in EARLIER_KEYS {
        let key = key.replace("= 0", "= 1").replace("= 2", "= 1").replace("\"x\"", "1");
        let hint = hint.replace("\"0s\"", "\"1s\"");
        let project = format!("{entry}name = \"x\"\n{key}\n");
        scratch.write("karat.toml", &project);
        let hints = |ran: &str| -> Vec<String> {
            ran.lines().filter(|line| line.contains(" is now ")).map(str::to_owned).collect()
        };
        let ran = scratch.karat(&["baseline", "show"]).expect(0);
        let line = project.lines().count();
        let end = "the old spelling will be removed in the next release";
        assert_eq!(hints(&ran.stderr), [format!("karat: karat.toml:{line}: {hint}; {end}")]);
        let quiet = scratch.karat(&["-q", "baseline", "show"]).expect(0);
        assert_eq!(hints(&quiet.stderr), [""; 0], "{key}");
        // With the present one too, it is a key that nothing reads.
        let present = hint.split('`').nth(3).unwrap();
        let value = if present.contains('=') { "" } else { " = 1" };
        scratch.write("karat.toml", format!("{project}{present}{value}\n"));
        let both = scratch.karat(&["baseline", "show"]).expect(2);
        let earlier = key.split(' ').next().unwrap().rsplit('.').next().unwrap();
        both.says(&[&format!("unknown key `{earlier}`")]);
    }
}

#[test]
fn the_bundled_project_and_the_starters_have_no_earlier_key() {
    let scratch = Scratch::new();
    let ran = scratch.karat(&["baseline", "show", "--bundled"]).expect(0);
    assert!(!ran.stderr.contains(" is now "), "{}", ran.stderr);
    for kind in ["server", "proxy", "scanner", "agent"] {
        scratch.karat(&["init", kind, "--for", kind, "--ci", "none"]).expect(0);
        let ran = scratch.karat(&["baseline", "show", kind]).expect(0);
        assert!(!ran.stderr.contains(" is now "), "{kind}: {}", ran.stderr);
    }
}

#[test]
fn every_earlier_value_of_an_option_is_still_understood() {
    let scratch = Scratch::new();
    for (command, values) in [
        ("agent score", "native ragas deepeval openai anthropic otlp mcp-recording"),
        ("agent run", "with-tools without-tools distractors openai anthropic"),
        ("server lint", "note warning error never stdio http sse none bwrap docker"),
        ("server attack", "injection exfiltration privilege-escalation denial-of-service"),
        ("corpus serve", "mcpproxy mcp-json"),
        ("schema", "report check"),
        ("init", "server proxy scanner agent github gitlab pre-commit none"),
    ] {
        let mut arguments: Vec<&str> = command.split(' ').collect();
        arguments.push("--help");
        let help = scratch.karat(&arguments).expect(0).stdout;
        let words: Vec<&str> = help.split(['\n', ' ', ',', '[', ']', ':']).collect();
        for value in values.split(' ') {
            assert!(words.contains(&value), "{command} {value}: {help}");
        }
    }
}

/// Runs an earlier spelling and the present one, of which a single line on stderr must speak.
fn earlier_and_present(scratch: &Scratch, earlier: &str, present: &str, options: &[&str]) {
    let [earlier_words, present_words] =
        [earlier, present].map(|spelling| spelling.split(' ').collect::<Vec<&str>>());
    let ran = scratch.karat(&[&earlier_words, options].concat()).expect(0);
    let hints: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("karat: ")).collect();
    assert_eq!(hints.len(), 1, "{earlier}: {}", ran.stderr);
    let wanted = format!("`karat {earlier}` is now `karat {present}`");
    assert!(hints[0].contains(&wanted), "{wanted}: {}", hints[0]);
    let now = scratch.karat(&[&present_words, options].concat()).expect(0);
    assert!(!now.stderr.contains("karat: "), "{}", now.stderr);
    let (ran, now) = (ran.json(), now.json());
    assert_eq!(ran["schema"], now["schema"]);
    if ran["reports"].is_array() {
        assert_eq!(measured(&ran), measured(&now));
    } else {
        assert_eq!(ran, now);
    }
}

#[test]
fn earlier_spellings_work_with_one_line_that_names_the_present_one() {
    let scratch = project();
    let options = ["--json", "--out", "out", "-o", "o.json", "--resume", "--only", "mine"];
    for evaluation in ["retrieval", "detection"] {
        let present = format!("{evaluation} run");
        earlier_and_present(&scratch, evaluation, &present, &options);
        let named = [&["karat.toml"], &options[..]].concat();
        earlier_and_present(&scratch, evaluation, &present, &named);
    }
    let named = [&["karat.toml"], &options[..]].concat();
    earlier_and_present(&scratch, "agent check", "agent run", &options);
    earlier_and_present(&scratch, "agent check", "agent run", &named);
    scratch.write("qrels", "q1 0 a 1\n");
    scratch.write("run", "q1 Q0 a 1 1 t\n");
    let files = ["--qrels", "qrels", "--run", "run", "--json"];
    earlier_and_present(&scratch, "score trec", "retrieval trec", &files);
    // As in that version, the bundled project where there is none.
    for (earlier, evaluation, name) in [
        (&["retrieval"][..], "retrieval", "bm25"),
        (&["detection"], "detection", "builtin"),
        (&["agent", "check"], "agent", "traces"),
    ] {
        let ran = Scratch::new().karat(&[earlier, &["--json"]].concat()).expect(0);
        assert_eq!(measured(&ran.json()), one(evaluation, name));
    }
}

#[test]
fn the_server_of_the_conformance_suite_is_named_where_it_is_now() {
    let scratch = Scratch::new();
    for more in [&[][..], &["--http", "127.0.0.1:0"]] {
        let ran = scratch.karat(&[&["demo-server", "--conformance"], more].concat()).expect(2);
        ran.says(&["`karat demo-server --conformance`", "--example conformance_server"]);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
}

#[test]
fn help_shows_the_verbs_of_an_evaluation_and_not_the_earlier_arguments() {
    let scratch = Scratch::new();
    for evaluation in EVALUATIONS {
        for help in ["--help", "-h"] {
            let shown = scratch.karat(&[evaluation, help]).expect(0).stdout;
            let usages: Vec<&str> = shown
                .lines()
                .filter(|line| line.contains(&format!("karat {evaluation} ")))
                .collect();
            assert_eq!(usages, [format!("Usage: karat {evaluation} [OPTIONS] <COMMAND>")]);
            for hidden in ["PROJECT", "--partition", "--bundled", "--resume"] {
                assert!(!shown.contains(hidden), "{hidden}: {shown}");
            }
            for verb in ["run", "score"] {
                assert!(shown.contains(&format!("\n  {verb} ")), "{verb}: {shown}");
            }
        }
        let wrong = scratch.karat(&[evaluation, "--no-such-option"]).expect(2).stderr;
        assert!(wrong.contains(&format!("Usage: karat {evaluation} ")), "{wrong}");
        assert!(!wrong.contains("[PROJECT]"), "{wrong}");
    }
}

#[test]
fn the_manual_page_does_not_list_earlier_spellings() {
    let page = Scratch::new().karat(&["man"]).expect(0).stdout;
    assert!(page.contains("KARAT RETRIEVAL"), "{page}");
    assert!(!page.contains("KARAT SCORE") && !page.contains("earlier spelling"), "{page}");
}

#[test]
fn help_on_an_earlier_spelling_names_the_present_one() {
    let scratch = Scratch::new();
    for (earlier, present) in [
        (&["score", "--help"][..], "karat retrieval trec"),
        (&["score", "trec", "--help"], "karat retrieval trec"),
        (&["help", "score", "trec"], "karat retrieval trec"),
        (&["agent", "check", "-h"], "karat agent run"),
    ] {
        let help = scratch.karat(earlier).expect(0).stdout;
        assert!(help.contains(&format!("`{present}`")), "{earlier:?}: {help}");
    }
}

#[test]
fn help_keeps_the_options_of_a_command_apart_from_the_global_ones() {
    let scratch = Scratch::new();
    let help = scratch.karat(&["server", "test", "-h"]).expect(0).stdout;
    let heading = |line: &&str| line.ends_with(':') && !line.starts_with(' ');
    let headings: Vec<&str> = help.lines().filter(heading).collect();
    let expected = [
        "Arguments:",
        "Options:",
        "Global options:",
        "Server:",
        "Server login:",
        "Answers to requests of the server:",
        "Server isolation:",
    ];
    for heading in expected {
        assert!(headings.contains(&heading), "{heading}: {headings:?}");
    }
    let own = help.split("Options:").nth(1).unwrap().split("\n\n").next().unwrap();
    assert!(own.contains("--tag") && !own.contains("--quiet") && !own.contains("--url"), "{own}");
}
