//! `karat server scan --config FILE`: the servers of an editor's configuration, without starting one.

use crate::common::Scratch;

#[test]
fn every_server_of_a_configuration_is_judged_and_none_is_started() {
    let scratch = Scratch::new();
    let key = format!("sk-{}", "a1B2c3D4e5F6".repeat(3));
    scratch.write(
        "mcp.json",
        format!(
            r#"{{"mcpServers": {{
                "files": {{"command": "touch", "args": ["started", "/"], "autoApprove": ["*"]}},
                "fine": {{"command": "npx", "args": ["-y", "notes@1.2.3", "./notes"], "env": {{"KEY": "${{KEY}}"}}}},
                "remote": {{"url": "http://mcp.example.com/mcp", "headers": {{"Authorization": "Bearer {key}"}}}}
            }}}}"#
        ),
    );
    let ran = scratch.karat(&["server", "scan", "--config", "mcp.json"]).expect(1);
    for rule in ["config-wide-root", "config-approves-all", "config-secret", "config-plain-http"] {
        assert!(ran.stdout.contains(&format!("[{rule}]")), "{rule}: {}", ran.stdout);
    }
    assert!(ran.stdout.contains("3 servers"), "{}", ran.stdout);
    assert!(!ran.stdout.contains(&key[3..]) && !ran.stderr.contains(&key[3..]));
    assert!(!scratch.path("started").exists());
    let json =
        scratch.karat(&["server", "scan", "--config", "mcp.json", "--json"]).expect(1).json();
    assert_eq!(json["servers"][1]["name"], "fine");
    assert_eq!(json["servers"][1]["findings"], serde_json::json!([]));
    assert!(!json.to_string().contains(&key[3..]));
}
