//! mcptest through its adapter file, on the bundled corpus. Apart from the other scanners, since cargo
//! compiles it for minutes.

use crate::{common, live_scanners};

use std::path::Path;

use common::Scratch;

#[test]
#[ignore = "compiles a real scanner; ./test mcptest runs it"]
fn mcptest_is_measured_through_its_adapter() {
    let scratch = Scratch::new();
    let file = live_scanners::adapter(&scratch, "mcptest.toml");
    let folder = Path::new(live_scanners::ROOT).join("target/live/mcptest/bin");
    let folder = folder.canonicalize().expect("./test mcptest installs it");
    let report = live_scanners::measure_with(&scratch, &file, vec![folder]);
    live_scanners::judged_all_but(&report, &["tool_result", "server_instructions"]);
    let said = report["warnings"].to_string();
    assert!(!said.contains("canary"), "{said}");
}
