//! The real servers of `datasets/real-servers`: captured, proven to be those of the lock, and searched.
//! `tests/live/real-servers` installs them.

use crate::common;

use std::path::PathBuf;

use common::Scratch;
use serde_json::Value;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[test]
#[ignore = "needs tests/live/real-servers; ./test real_servers runs it"]
fn the_real_servers_are_those_of_the_lock_and_their_tools_are_found() {
    let installed = repository().join("target/live/real-servers");
    assert!(installed.is_dir(), "the servers are not installed: run tests/live/real-servers");
    let data = repository().join("datasets/real-servers/v1");
    let file = |name: &str| data.join(name).to_string_lossy().into_owned();
    let scratch = Scratch::new();

    let ran = scratch.karat(&[
        "corpus",
        "capture",
        "--servers",
        &file("servers.toml"),
        "--installed",
        installed.to_str().unwrap(),
        "--out",
        "captured",
        "--timeout",
        "180",
        "--parallel",
        "2",
    ]);
    eprint!("{}", ran.stdout);
    ran.expect(0);
    let ran = scratch.karat(&["corpus", "verify", "--lock", &file("lock.json"), "captured"]);
    eprint!("{}", ran.stdout);
    ran.expect(0);

    let freeze = [
        "corpus",
        "freeze",
        "captured",
        "--into",
        "real",
        "--golden",
        &file("queries"),
        "--licence",
        "LicenseRef-various",
        "--made",
        "Captured from installed packages.",
    ];
    scratch.karat(&freeze).expect(0);
    scratch.write(
        "karat.toml",
        "[[retrieval]]\nname = \"bm25\"\ndataset = \"real/v1\"\nsystem = { builtin = \"bm25\" }\n",
    );
    let check = scratch.karat(&["retrieval", "run", "--json", "--quiet"]).expect(0).json();
    let metrics = check["reports"][0]["metrics"].as_array().unwrap();
    let metric = |id: &str| -> &Value {
        metrics.iter().find(|metric| metric["id"] == id).unwrap_or_else(|| panic!("no {id}"))
    };
    let queries = scratch.read("real/v1/golden/golden.jsonl").lines().count();
    for id in ["recall@1", "recall@3", "recall@5", "recall@10", "mrr", "ndcg@10", "map"] {
        eprintln!("bm25 {id} {:.4} (n {})", metric(id)["value"], metric(id)["n"]);
        assert_eq!(metric(id)["n"].as_u64().unwrap(), queries as u64, "{id}");
    }
    // How good it is, is the engine's business; that it is measured, the controls say.
    assert!(metric("recall@5")["value"].as_f64().unwrap() > 0.0);
    for control in check["reports"][0]["controls"].as_array().unwrap() {
        assert_eq!(control["ok"], true, "{control}");
    }
}
