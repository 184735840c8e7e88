//! The real servers of `datasets/real-servers`: captured, proven to be those of the lock, and searched.
//! `tests/live/real-servers` installs them.

use crate::common;

use std::path::PathBuf;

use common::Scratch;
use karat_core::dataset::DatasetFiles;
use karat_retrieval::audit::shared_words;
use karat_retrieval::dataset::Dataset;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[test]
#[ignore = "needs tests/live/real-servers; ./test real_servers runs it"]
fn the_real_servers_are_those_of_the_lock_and_their_tools_are_searched() {
    let installed = repository().join("target/live/real-servers");
    assert!(installed.is_dir(), "the servers are not installed: run tests/live/real-servers");
    let scratch = Scratch::new();
    let run = ["retrieval", "run", "--real-servers", installed.to_str().unwrap()];
    let more = ["--builtin", "bm25", "--builtin", "bm25-names", "--keep", "real/v2", "--json"];
    let ran = scratch.karat(&[&run[..], &more].concat());
    eprint!("{}", ran.stderr);
    let reports = ran.expect(0).json()["reports"].as_array().unwrap().clone();

    let data = Dataset::open(DatasetFiles::Folder(scratch.path("real/v2"))).unwrap();
    let servers: std::collections::BTreeSet<&str> =
        data.tools.iter().map(|tool| tool.server.as_str()).collect();
    assert!(servers.len() >= 120 && data.tools.len() >= 2_500 && data.queries.len() >= 400);
    for report in &reports {
        for metric in report["metrics"].as_array().unwrap() {
            eprintln!("{} {}: {}", report["name"], metric["id"], metric["value"]);
        }
        // How good it is, is the engine's business; that it is measured, the controls say.
        for control in report["controls"].as_array().unwrap() {
            assert_eq!(control["ok"], true, "{control}");
        }
    }
    assert_eq!(reports.len(), 2);

    let mut shared = Vec::new();
    for query in data.queries.iter().filter(|query| query.kind.as_deref() == Some("paraphrase")) {
        for label in query.labels.iter().filter(|label| label.relevance == 2) {
            let words = shared_words(&query.query, data.tool(&label.tool_id).unwrap());
            if !words.is_empty() {
                shared.push(format!("{} and {}: {words:?}", query.id, label.tool_id));
            }
        }
    }
    assert!(shared.is_empty(), "paraphrases with words of their tools:\n{}", shared.join("\n"));
    let verify = scratch.karat(&["corpus", "verify", "real/v2", "--json"]).expect(0).json();
    let leaks = verify["findings"].as_array().unwrap().iter().filter(|one| one["rule"] == "leak");
    assert_eq!(leaks.count(), 0, "a server has queries in train and in test");
}
