//! A run that is killed with `kill -9` goes on where it was, and no one can tell afterwards.

use crate::common;

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::Scratch;

pub(crate) const ITEMS: usize = 1000;

/// A slow search that writes down what it is asked.
const SLOW: &str = r#"
import json, sys, time
asked = open("asked.log", "a")
for line in sys.stdin:
    question = json.loads(line)
    asked.write(question["id"] + "\n")
    asked.flush()
    time.sleep(0.002)
    number = int(question["id"][1:])
    ranked = [{"tool_id": f"s:t{(number + step) % 7}"} for step in range(number % 5)]
    print(json.dumps({"id": question["id"], "ranked": ranked}), flush=True)
"#;

pub(crate) fn project() -> Scratch {
    let scratch = Scratch::new();
    let tools: Vec<String> = (0..7)
        .map(|n| format!(r#"{{"server": "s", "tool": "t{n}", "description": "Tool number {n}, which turns handle {n}."}}"#))
        .collect();
    scratch.write("tools.json", format!(r#"{{"tools": [{}]}}"#, tools.join(",")));
    let golden: Vec<String> = (0..ITEMS)
        .map(|n| {
            let tool = n * 3 % 7;
            format!(r#"{{"id": "q{n:04}", "query": "turn handle {tool}", "labels": [{{"tool_id": "s:t{tool}", "relevance": 2}}]}}"#)
        })
        .collect();
    scratch.write("golden.jsonl", golden.join("\n"));
    scratch.write("slow.py", SLOW);
    scratch.write(
        "karat.toml",
        "[[retrieval]]\nname = \"slow\"\ncorpus = \"tools.json\"\ngolden = \"golden.jsonl\"\n\
         system = { command = [\"python3\", \"slow.py\"] }\nconcurrency = 4\nresults = 5\n",
    );
    scratch
}

fn asked(scratch: &Scratch) -> Vec<String> {
    scratch.read("asked.log").lines().map(str::to_owned).collect()
}

#[test]
fn a_killed_run_is_resumed_without_asking_again_and_reports_the_same() {
    let whole = project();
    let exit = whole.karat(&["check", "-v"]).code;
    let expected = whole.read("karat-report/report.json");
    let page = whole.read("karat-report/report.html");
    assert_eq!(asked(&whole).len(), ITEMS);

    let killed = project();
    let journal = killed.path("karat-report/journal/retrieval-slow.jsonl");
    let mut run = Command::new(env!("CARGO_BIN_EXE_karat"))
        .arg("check")
        .current_dir(killed.path(""))
        .env("SOURCE_DATE_EPOCH", "1794711845")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while std::fs::read_to_string(&journal).map_or(0, |text| text.lines().count()) < ITEMS / 3 {
        assert!(Instant::now() < deadline, "the run does not get on");
        std::thread::sleep(Duration::from_millis(5));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(!killed.path("karat-report/report.json").exists());

    let answered: BTreeSet<String> = std::fs::read_to_string(&journal)
        .unwrap()
        .lines()
        .skip(1)
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .map(|entry| entry["id"].as_str().unwrap().to_owned())
        .collect();
    assert!(answered.len() >= ITEMS / 3 - 1 && answered.len() < ITEMS, "{}", answered.len());
    // Whatever the orphaned program had still in its pipe is answered to no one; wait for its end.
    std::thread::sleep(Duration::from_millis(200));
    std::fs::remove_file(killed.path("asked.log")).unwrap();

    let resumed = killed.karat(&["check", "--resume"]);
    assert_eq!(resumed.code, exit);
    assert_eq!(killed.read("karat-report/report.json"), expected);
    assert_eq!(killed.read("karat-report/report.html"), page);
    let again = asked(&killed);
    assert_eq!(again.len(), ITEMS - answered.len());
    let twice: Vec<&String> = again.iter().filter(|id| answered.contains(*id)).collect();
    assert!(twice.is_empty(), "asked although answered: {twice:?}");

    // A second resume has nothing left to ask.
    std::fs::remove_file(killed.path("asked.log")).unwrap();
    assert_eq!(killed.karat(&["check", "--resume"]).code, exit);
    // The program may have been ended before it opened its log.
    assert_eq!(std::fs::read_to_string(killed.path("asked.log")).unwrap_or_default(), "");
}

#[test]
fn a_journal_of_other_settings_is_refused() {
    let scratch = project();
    scratch.karat(&["check", "-v"]);
    let project = scratch.read("karat.toml").replace("results = 5", "results = 6");
    scratch.write("karat.toml", project);
    scratch.karat(&["check", "--resume", "--quiet"]).expect(2).says(&[
        "retrieval-slow.jsonl",
        "another run",
        "without --resume",
    ]);
}
