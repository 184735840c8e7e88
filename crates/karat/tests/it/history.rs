//! `karat history` and `karat serve`, end to end.

use crate::common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{BM25, GOLDEN, Scratch};

/// A system that finds only one of the two tools.
const HALF: &str = "{ command = [\"python3\", \"-c\", '''\nimport sys, json\nfor line in sys.stdin:\n    q = json.loads(line)\n    print(json.dumps({\"id\": q[\"id\"], \"ranked\": [{\"tool_id\": \"s:list_files\"}]}), flush=True)\n'''] }";

const GATE: &str = "[retrieval.gate.metrics]\n\"mrr\" = { min = 0.9 }\n";

/// A check at a moment of its own.
fn check(scratch: &Scratch, seconds: u32, arguments: &[&str], code: i32) {
    let moment = (1_794_711_845 + u64::from(seconds)).to_string();
    let mut command = scratch.command(&["check", "--quiet"]);
    let output = command.args(arguments).env("SOURCE_DATE_EPOCH", moment).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Three runs: good, worse, and good again on other data.
fn three_runs() -> Scratch {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, GATE, BM25);
    check(&scratch, 0, &["--history", "-o", "one.json"], 0);
    scratch.project(GOLDEN, GATE, HALF);
    check(&scratch, 60, &["--history", "-o", "two.json"], 1);
    let other = GOLDEN.replace("folder", "directory").replace("a ticket", "one ticket");
    scratch.project(&other, GATE, BM25);
    check(&scratch, 120, &["--history", "-o", "three.json"], 0);
    scratch
}

#[test]
fn a_check_adds_its_report_and_the_file_can_be_added_again_without_effect() {
    let scratch = three_runs();
    let listed = scratch.karat(&["history", "list"]).expect(0).stdout;
    insta::assert_snapshot!(listed);
    let again = scratch.karat(&["history", "add", "two.json", "one.json"]).expect(0).stdout;
    insta::assert_snapshot!(again);
    assert_eq!(scratch.karat(&["history", "list"]).expect(0).stdout, listed);
    let json = scratch.karat(&["history", "list", "--json"]).expect(0).json();
    assert_eq!(json["runs"].as_array().unwrap().len(), 3);
    assert_eq!(json["runs"][1]["state"], "fail");
    let none = scratch.karat(&["history", "list", "--evaluation", "retrievel"]).expect(2);
    none.says(&["retrievel", "retrieval"]);
}

#[test]
fn a_metric_is_followed_over_time_and_never_across_data() {
    let scratch = three_runs();
    let shown = scratch.karat(&["history", "show", "mrr"]).expect(0).stdout;
    insta::assert_snapshot!(shown);
    let standing = scratch.karat(&["history", "show", "retrieval/r"]).expect(0).stdout;
    insta::assert_snapshot!(standing);
    let json = scratch.karat(&["history", "show", "mrr", "--json"]).expect(0).json();
    let series = json["series"].as_array().unwrap();
    assert_eq!(series.len(), 2);
    assert_eq!(series[0]["points"][1]["delta"], -0.5);
    assert!(series[1]["points"][0]["delta"].is_null());
    scratch.karat(&["history", "show", "mmr"]).expect(2).says(&["mmr", "mrr"]);
}

#[test]
fn a_sparkline_says_when_it_leaves_runs_out() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, GATE, BM25);
    for run in 0..13 {
        check(&scratch, 60 * run, &["--history"], 0);
    }
    let metric = scratch.karat(&["history", "show", "mrr"]).expect(0).stdout;
    assert!(metric.contains(&format!("  {}\n", "▄".repeat(13))), "{metric}");
    let all = scratch.karat(&["history", "show", "retrieval/r"]).expect(0).stdout;
    assert!(all.contains("last 12 runs"), "{all}");
}

#[test]
fn runs_are_compared_as_reports_are() {
    let scratch = three_runs();
    let runs = scratch.karat(&["history", "compare", "1", "2"]).expect(0).stdout;
    let files = scratch.karat(&["compare", "one.json", "two.json"]).expect(0).stdout;
    assert_eq!(runs, files);
    scratch.karat(&["history", "compare", "1", "3"]).expect(2).says(&["different data"]);
    scratch.karat(&["history", "compare", "1", "9"]).expect(2).says(&["no run 9", "list"]);
}

#[test]
fn an_exported_run_is_the_file_that_was_added() {
    let scratch = three_runs();
    let exported = scratch.karat(&["history", "export", "2"]).expect(0).stdout;
    assert_eq!(exported, scratch.read("two.json"));
    scratch.karat(&["history", "export", "2", "-o", "again.json"]).expect(0);
    assert_eq!(scratch.read("again.json"), exported);
    let mut piped = scratch.command(&["history", "--db", "other.sqlite", "add", "-"]);
    let output = piped.write_stdin(exported).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = scratch.karat(&["history", "list", "--db", "other.sqlite"]).expect(0);
    assert!(listed.stdout.contains("fail"), "{}", listed.stdout);
}

#[test]
fn pruning_says_what_goes() {
    let scratch = three_runs();
    let dry = scratch.karat(&["history", "prune", "--keep", "1", "--dry-run"]).expect(0).stdout;
    assert_eq!(dry, "2 runs would be deleted, from run 1 to run 2\n");
    assert_eq!(
        scratch.karat(&["history", "list", "--json"]).expect(0).json()["runs"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    let gone = scratch.karat(&["history", "prune", "--keep", "1"]).expect(0).stdout;
    assert_eq!(gone, "2 runs deleted, from run 1 to run 2\n");
    let none = scratch.karat(&["history", "prune", "--older-than", "30d"]).expect(0).stdout;
    assert!(none.contains("none deleted"), "{none}");
    scratch.karat(&["history", "prune", "--older-than", "soon"]).expect(2).says(&["soon", "90d"]);
    scratch.karat(&["history", "prune"]).expect(2);
}

#[test]
fn an_impossible_day_prunes_nothing() {
    let scratch = three_runs();
    for day in ["2026-99-99", "2026-02-30", "9999-13-01", "2027-02-29"] {
        let words = [day, "a day such as"];
        scratch.karat(&["history", "prune", "--older-than", day]).expect(2).says(&words);
    }
    let runs = scratch.karat(&["history", "list", "--json"]).expect(0).json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 3);
    let gone = scratch.karat(&["history", "prune", "--older-than", "9999-12-31"]).expect(0).stdout;
    assert!(gone.starts_with("3 runs deleted"), "{gone}");
}

#[test]
fn the_project_can_name_its_history() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    let project =
        format!("[history]\nfile = \"kept/over-time.sqlite\"\n{}", scratch.read("karat.toml"));
    scratch.write("karat.toml", project);
    check(&scratch, 0, &[], 0);
    assert!(scratch.path("kept/over-time.sqlite").exists());
    let listed = scratch.karat(&["history", "list"]).expect(0).stdout;
    assert!(listed.contains("retrieval/r"), "{listed}");
}

#[test]
fn a_foreign_file_stops_a_check_before_anything_runs() {
    let scratch = Scratch::new();
    scratch.project(GOLDEN, "", BM25);
    scratch
        .write("notes.sqlite", "no database, just a page of notes about something else entirely");
    let before = scratch.files();
    let stopped = scratch.karat(&["check", "--history=notes.sqlite"]).expect(2);
    stopped.says(&["notes.sqlite", "not a Karat history"]);
    assert_eq!(scratch.files(), before);
    scratch
        .karat(&["history", "list", "--db", "none.sqlite"])
        .expect(2)
        .says(&["karat history add"]);
    scratch.karat(&["history", "add", "notes.sqlite"]).expect(2);
    assert_eq!(scratch.files(), before, "a wrong report begins no history");
}

/// `karat serve`, ended with the test.
struct Served {
    child: Child,
    address: SocketAddr,
}

impl Served {
    fn start(scratch: &Scratch, arguments: &[&str]) -> Served {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("karat"))
            .current_dir(scratch.path(""))
            .arg("serve")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix('/'));
        let address = address.unwrap_or_else(|| panic!("{line:?}")).parse().unwrap();
        Served { child, address }
    }

    /// The whole answer to a request, head and body.
    fn ask(&self, method: &str, path: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    }

    fn get(&self, path: &str) -> String {
        let answer = self.ask("GET", path, &self.address.to_string());
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        answer
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_dashboard_shows_runs_metrics_and_reports() {
    let scratch = three_runs();
    let served = Served::start(&scratch, &[]);
    let overview = served.get("/");
    assert!(overview.contains("href=\"/evaluations/1\""), "{overview}");
    assert!(overview.contains("first run on this data"), "{overview}");
    let subject = served.get("/evaluations/1");
    let link = subject.split("href=\"").find(|part| part.contains(">mrr<")).unwrap();
    let metric = served.get(link.split('"').next().unwrap());
    assert!(metric.contains("href=\"/runs/2\"") && metric.contains("not joined"), "{metric}");
    assert!(served.get("/runs").contains("/compare?before=2&amp;after=3"));
    assert!(served.get("/runs/2").contains("/runs/2/report"));
    assert!(served.get("/runs/2/report").contains("id=\"inspector\""));
    let json = served.get("/runs/2/report.json");
    assert!(json.ends_with(&scratch.read("two.json")));
    let compared = served.get("/compare?before=1&after=2");
    assert!(compared.contains("report#retrieval-r&#x2f;q1"), "{compared}");
    assert!(served.get("/compare?before=1&after=3").contains("different data"));
    for path in [
        "/runs/9",
        "/runs/x",
        "/evaluations/7",
        "/evaluations/1/metrics/99",
        "/none",
        "/compare?before=1",
        "/../karat.toml",
    ] {
        let answer = served.ask("GET", path, &served.address.to_string());
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
    }
}

#[test]
fn the_dashboard_shows_runs_that_come_while_it_is_open() {
    let scratch = three_runs();
    let served = Served::start(&scratch, &[]);
    assert!(served.get("/runs").contains("3 runs"));
    check(&scratch, 180, &["--history"], 0);
    assert!(served.get("/runs").contains("4 runs"));
}

#[test]
fn the_dashboard_is_for_this_machine_alone_and_read_only() {
    let scratch = three_runs();
    let served = Served::start(&scratch, &["--port", "0"]);
    assert_eq!(served.address.ip(), Ipv4Addr::LOCALHOST);
    // Another address of the same machine is not listened on.
    let other = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), served.address.port()));
    assert!(TcpStream::connect_timeout(&other, Duration::from_secs(5)).is_err());
    let port = served.address.port();
    for host in ["rebound.example", &format!("rebound.example:{port}"), "127.0.0.1", "localhost:1"]
    {
        let answer = served.ask("GET", "/", host);
        assert!(answer.starts_with("HTTP/1.1 403"), "{host}: {answer}");
        assert!(!answer.contains("retrieval"), "{answer}");
    }
    let named = served.ask("GET", "/", &format!("localhost:{port}"));
    assert!(named.starts_with("HTTP/1.1 200"), "{named}");
    let before = std::fs::read(scratch.path("karat-history.sqlite")).unwrap();
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let answer = served.ask(method, "/runs/1", &served.address.to_string());
        assert!(answer.starts_with("HTTP/1.1 405"), "{method}: {answer}");
        assert!(answer.to_lowercase().contains("allow: get, head"), "{answer}");
    }
    assert_eq!(std::fs::read(scratch.path("karat-history.sqlite")).unwrap(), before);
    let head = served.ask("HEAD", "/", &served.address.to_string());
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
    let page = served.get("/").to_lowercase();
    for wanted in [
        "content-security-policy: default-src 'none'",
        "cache-control: no-store",
        "nosniff",
        "cross-origin-resource-policy: same-origin",
    ] {
        assert!(page.contains(wanted), "{wanted}: {page}");
    }
}

#[test]
fn reports_are_shown_without_a_history_and_their_names_are_escaped() {
    let scratch = three_runs();
    let hostile = "<img src=x onerror=alert(1)>";
    let text =
        scratch.read("one.json").replace("\"name\": \"r\"", &format!("\"name\": {hostile:?}"));
    scratch.write("hostile.json", text);
    std::fs::remove_file(scratch.path("karat-history.sqlite")).unwrap();
    let before = scratch.files();
    let served = Served::start(&scratch, &["hostile.json", "two.json"]);
    for path in
        ["/", "/runs", "/runs/1", "/evaluations/1", "/compare?before=1&after=2", "/runs/1/report"]
    {
        let page = served.get(path);
        assert!(!page.contains(hostile), "{path}: {page}");
        assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"), "{path}: {page}");
    }
    assert_eq!(scratch.files(), before, "nothing is written");
}

#[test]
fn ctrl_c_ends_the_dashboard_in_peace() {
    let scratch = three_runs();
    let mut served = Served::start(&scratch, &[]);
    served.get("/");
    let pid = served.child.id().to_string();
    Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
    let left: Vec<String> = scratch.files().into_iter().filter(|f| f.contains("sqlite")).collect();
    assert_eq!(left, ["karat-history.sqlite"]);
}

#[test]
fn a_history_is_written_as_a_site_also_where_it_is_read_only() {
    let scratch = three_runs();
    let ran = scratch.karat(&["history", "site", "pages", "--reports", "1"]).expect(0);
    assert!(ran.stdout.contains("pages/index.html"), "{}", ran.stdout);
    let overview = scratch.read("pages/index.html");
    assert!(overview.contains("href=\"runs/3/index.html\""), "{overview}");
    assert!(scratch.path("pages/runs/3/report/index.html").is_file());
    assert!(!scratch.path("pages/runs/1/report/index.html").exists());
    scratch.write("mine/file.txt", "kept");
    let refused = scratch.karat(&["history", "site", "mine"]).expect(2);
    refused.says(&["not empty"]);
    assert_eq!(scratch.files().iter().filter(|file| file.starts_with("mine/")).count(), 1);
}

#[test]
fn a_site_written_again_has_no_pages_of_runs_that_are_gone() {
    let scratch = three_runs();
    scratch.karat(&["history", "site", "pages"]).expect(0);
    scratch.write("pages/runs/1/notes.txt", "kept");
    assert!(scratch.path("pages/runs/1/report.json").is_file());
    assert!(scratch.path("pages/compare/1-2/index.html").is_file());
    scratch.karat(&["history", "prune", "--keep", "1"]).expect(0);
    scratch.karat(&["history", "site", "pages"]).expect(0);
    let gone =
        |file: &&String| ["runs/1/", "runs/2/", "compare/1-"].iter().any(|at| file.contains(at));
    let left: Vec<String> = scratch.files().iter().filter(gone).cloned().collect();
    assert_eq!(left, ["pages/runs/1/notes.txt"]);
    assert!(scratch.path("pages/runs/3/report/index.html").is_file());
    assert!(!scratch.path("pages/runs/2").exists());
}

#[test]
fn the_latest_value_is_the_one_of_the_latest_run_also_when_data_alternate() {
    let scratch = three_runs();
    scratch.project(GOLDEN, GATE, HALF);
    check(&scratch, 180, &["--history"], 1);
    scratch.karat(&["history", "site", "pages"]).expect(0);
    let overview = scratch.read("pages/index.html");
    assert!(overview.contains("4 values, from 1.0000 to 0.5000"), "{overview}");
}
