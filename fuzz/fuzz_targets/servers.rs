//! Files of servers (mcp.json and its relatives): read, or refused with an error; what is read can
//! be described without showing a secret's value.
#![no_main]

use std::path::Path;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(servers) = karat_mcp::config::parse(Path::new("mcp.json"), text) else { return };
    for spec in servers.names().filter_map(|name| servers.server(name).ok()) {
        let _ = spec.transport();
        let line = spec.describe();
        assert!(!line.contains('\n'), "one line: {line:?}");
    }
});
