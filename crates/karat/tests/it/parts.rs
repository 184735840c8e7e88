//! A run in parts: the merged report is that of a run that was not divided, and parts that do not belong
//! together are refused.

use crate::common::{BM25, GOLDEN, Ran, Scratch};
use crate::resume;

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Measures part `part` of `of` into the folder `parts/PART`.
fn run_part(scratch: &Scratch, part: usize, of: usize, more: &[&str]) -> Ran {
    let (partition, out) = (format!("hash:{part}/{of}"), format!("parts/{part}"));
    let fixed = ["check", "--partition", &partition, "--out", &out];
    scratch.karat(&[&fixed[..], more].concat())
}

fn merge(scratch: &Scratch, parts: &[usize]) -> Ran {
    merge_with(scratch, parts, &[])
}

fn merge_with(scratch: &Scratch, parts: &[usize], more: &[&str]) -> Ran {
    let folders: Vec<String> = parts.iter().map(|part| format!("parts/{part}")).collect();
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    scratch.karat(&[&["merge", "--out", "merged"], more, &folders[..]].concat())
}

#[test]
fn eight_parts_of_the_bundled_project_give_the_report_of_one_run() {
    let scratch = Scratch::new();
    let whole = scratch.karat(&["check", "--bundled"]).expect(0);
    let mut items = 0;
    for part in 1..=8 {
        let ran = run_part(&scratch, part, 8, &["--bundled", "--json"]).expect(0).json();
        let entries = ran["entries"].as_array().unwrap();
        items += entries.iter().map(|entry| entry["items"].as_u64().unwrap()).sum::<u64>();
        assert!(!scratch.path(&format!("parts/{part}/report.json")).exists());
    }
    assert!(items > 500, "{items}");

    // What `kill -9` leaves of two parts: a journal that ends within a line.
    for journal in ["retrieval-bm25", "detection-builtin"] {
        let name = format!("parts/3/journal/{journal}.part-3-of-8.jsonl");
        let text = scratch.read(&name);
        scratch.write(&name, &text[..text.len() * 2 / 3]);
    }
    let all = [8, 3, 1, 2, 7, 6, 5, 4];
    let refused = merge_with(&scratch, &all, &["--bundled"]).expect(2);
    let said = "bm25: parts/3/journal/retrieval-bm25.part-3-of-8.jsonl: the part is not finished";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);
    assert!(refused.stderr.contains("--partition hash:3/8 --resume"), "{}", refused.stderr);
    assert!(!scratch.path("merged/report.json").exists());
    run_part(&scratch, 3, 8, &["--bundled", "--resume"]).expect(0);

    let merged = merge_with(&scratch, &all, &["--bundled"]).expect(0);
    for file in ["report.json", "report.html"] {
        let (merged, whole) = (format!("merged/{file}"), format!("karat-report/{file}"));
        assert!(scratch.read(&merged) == scratch.read(&whole), "{file} differs");
    }
    let table = |ran: &Ran| ran.stdout.split("report: ").next().unwrap().to_owned();
    assert_eq!(table(&merged), table(&whole));
}

#[test]
fn a_part_that_is_killed_is_resumed_and_merged() {
    let whole = resume::project();
    let exit = whole.karat(&["check"]).code;

    let scratch = resume::project();
    for part in [1, 3] {
        run_part(&scratch, part, 3, &[]).expect(0);
    }
    let journal = scratch.path("parts/2/journal/retrieval-slow.part-2-of-3.jsonl");
    let mut run = Command::new(env!("CARGO_BIN_EXE_karat"))
        .args(["check", "--partition", "hash:2/3", "--out", "parts/2"])
        .current_dir(scratch.path(""))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while std::fs::read_to_string(&journal).map_or(0, |text| text.lines().count()) < 50 {
        assert!(Instant::now() < deadline, "the part does not get on");
        std::thread::sleep(Duration::from_millis(5));
    }
    run.kill().unwrap();
    run.wait().unwrap();
    merge(&scratch, &[1, 2, 3]).expect(2).says(&["the part is not finished", "hash:2/3 --resume"]);
    run_part(&scratch, 2, 3, &["--resume"]).expect(0);

    std::fs::remove_file(scratch.path("asked.log")).unwrap();
    assert_eq!(merge(&scratch, &[1, 2, 3]).code, exit);
    assert_eq!(scratch.read("merged/report.json"), whole.read("karat-report/report.json"));
    // The program may have been ended before it opened its log.
    let asked = std::fs::read_to_string(scratch.path("asked.log")).unwrap_or_default();
    assert_eq!(asked, "", "the merge asks nothing");
}

#[test]
fn parts_that_do_not_belong_together_are_refused() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    for part in 1..=3 {
        run_part(&scratch, part, 3, &[]).expect(0);
    }
    let journal = "parts/2/journal/retrieval-r.part-2-of-3.jsonl";
    let kept = scratch.read(journal);
    let refused = |parts: &[usize], words: &[&str]| merge(&scratch, parts).expect(2).says(words);

    refused(&[1, 3], &["r: part 2 of 3 is missing", "--partition hash:2/3"]);
    refused(&[2], &["r: 2 of 3 parts are missing (1, 3)"]);
    refused(&[1, 2, 3, 2], &["duplicate part 2 of 3", journal]);
    refused(&[1, 2, 9], &["parts/9: no such file or folder"]);
    run_part(&scratch, 4, 4, &[]).expect(0);
    refused(&[1, 2, 3, 4], &["parts/4/", "is one of 4 parts", "parts/1/", "one of 3"]);

    // A part of another run, whatever differs.
    let project = scratch.read("karat.toml");
    let others = [
        ("name = \"r\"", "name = \"r\"\nseed = 3", "seed 3 there, 0 here"),
        ("name = \"r\"", "name = \"r\"\nresults = 7", "settings differ"),
        ("name = \"r\"", "name = \"r\"\nruns = 2", "runs 2 there, 1 here"),
        (
            "name = \"r\"",
            "name = \"other\"",
            "the entry retrieval other, which is not in the project",
        ),
        ("golden.jsonl", "others.jsonl", "dataset "),
    ];
    scratch.write("others.jsonl", GOLDEN.replace("open a ticket", "open one ticket"));
    for (from, to, said) in others {
        scratch.write("karat.toml", project.replacen(from, to, 1));
        std::fs::remove_dir_all(scratch.path("parts/2")).unwrap();
        run_part(&scratch, 2, 3, &[]).expect(0);
        scratch.write("karat.toml", &project);
        refused(&[1, 2, 3], &["parts/2/journal/retrieval-", said]);
    }
    // All parts alike, and of another run than the project describes.
    scratch.write("karat.toml", project.replacen("name = \"r\"", "name = \"r\"\nresults = 9", 1));
    std::fs::remove_dir_all(scratch.path("parts/2")).unwrap();
    scratch.write(journal, &kept);
    refused(&[1, 2, 3], &["to another run (the system or its settings differ)"]);
    scratch.write("karat.toml", &project);

    scratch.write(journal, "");
    refused(&[1, 2, 3], &[journal, "was stopped before it began"]);
    scratch.write(journal, "no journal\n");
    refused(&[1, 2, 3], &[&format!("{journal}:1"), "not a journal line"]);
    let version = format!("\"karat\":\"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(kept.contains(&version), "{kept}");
    scratch.write(journal, kept.replace(&version, "\"karat\":\"9.9.9\""));
    refused(&[1, 2, 3], &[journal, "made by karat 9.9.9"]);

    scratch.karat(&["check"]).expect(0);
    let whole = "karat-report/journal/retrieval-r.jsonl";
    scratch.karat(&["merge", whole]).expect(2).says(&[whole, "the journal of a whole run"]);
    scratch.karat(&["merge", "karat-report"]).expect(2).says(&["karat-report: no part of a run"]);

    // And with what belongs there, there is a report.
    scratch.write(journal, &kept);
    merge(&scratch, &[3, 2, 1]).expect(0);
    assert_eq!(scratch.read("merged/report.json"), scratch.read("karat-report/report.json"));
}

#[test]
fn parts_may_be_compressed() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    let journals = [1, 2].map(|part| {
        run_part(&scratch, part, 2, &[]).expect(0);
        format!("parts/{part}/journal/retrieval-r.part-{part}-of-2.jsonl")
    });
    let second = format!("{}.gz", journals[1]);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(scratch.read(&journals[1]).as_bytes()).unwrap();
    let compressed = encoder.finish().unwrap();
    std::fs::write(scratch.path(&second), &compressed).unwrap();
    scratch.karat(&["merge", "--out", "plain", &journals[0], &journals[1]]).expect(0);
    scratch.karat(&["merge", "--out", "merged", &journals[0], &second]).expect(0);
    assert_eq!(scratch.read("merged/report.json"), scratch.read("plain/report.json"));
    std::fs::remove_file(scratch.path(&journals[1])).unwrap();
    scratch.karat(&["merge", "--out", "folders", "parts/1", "parts/2"]).expect(0);
    assert_eq!(scratch.read("folders/report.json"), scratch.read("plain/report.json"));

    std::fs::write(scratch.path(&second), &compressed[..compressed.len() - 9]).unwrap();
    let refused = scratch.karat(&["merge", &journals[0], &second]).expect(2);
    refused.says(&[&second, "the gzip data is cut off or damaged"]);
}

#[test]
fn an_entry_that_is_measured_as_a_whole_is_in_one_part() {
    let scratch = Scratch::new();
    let suite = "test_cases:\n  - {id: sum, tool: add, input: {a: 2, b: 3}, expect: {json: $.sum, equals: 5}}\n";
    scratch.write("suite.yaml", suite);
    let project = "[[server]]\nname = \"demo\"\nsuite = \"suite.yaml\"\nbuiltin = \"demo\"\n";
    scratch.write("karat.toml", project);
    let whole = scratch.karat(&["check"]);
    let mut owners = Vec::new();
    for part in 1..=3 {
        let done = run_part(&scratch, part, 3, &["--json"]).expect(0).json();
        if !done["entries"].as_array().unwrap().is_empty() {
            owners.push(part);
        } else {
            assert_eq!(done["elsewhere"][0]["name"], "demo");
        }
    }
    let [owner] = owners[..] else { panic!("{owners:?}") };
    merge(&scratch, &[owner]).expect(whole.code);
    assert_eq!(scratch.read("merged/report.json"), scratch.read("karat-report/report.json"));

    scratch.write("karat.toml", project.replace("builtin", "timeout_ms = 9000\nbuiltin"));
    merge(&scratch, &[owner]).expect(2).says(&["part-", "to another run (settings sha256:"]);
    let file = scratch.files().into_iter().find(|file| file.ends_with("-of-3.json")).unwrap();
    std::fs::remove_file(scratch.path(&file)).unwrap();
    let other = scratch.karat(&["merge", &format!("parts/{owner}")]).expect(2);
    other.says(&["no part of a run; make one"]);
}

#[test]
fn what_cannot_be_done_in_parts_is_said_before_anything_runs() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    for wrong in ["hash:0/3", "hash:4/3", "3", "count:1/3"] {
        let ran = scratch.karat(&["check", "--partition", wrong]).expect(2);
        assert!(ran.stderr.contains("hash:PART/PARTS"), "{}", ran.stderr);
    }
    let both = ["check", "--partition", "hash:1/3", "-o", "report.md"];
    scratch.karat(&both).expect(2);
    let without = ["retrieval", "run", "--builtin", "bm25", "--partition", "hash:1/3"];
    scratch.karat(&without).expect(2).says(&["--partition requires a project"]);
    assert!(!scratch.path("karat-report").exists());
}
