//! The values of `WWW-Authenticate`, one a line: a demand for a login within bounds, which can be described in
//! one printable line.
#![no_main]

use karat_io::text::printable;
use karat_mcp::auth::Challenge;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let values = || bytes.split(|byte| *byte == b'\n');
    for status in [401, 403] {
        let Some(challenge) = Challenge::from_values(status, values()) else { continue };
        let said = challenge.describe(None, &[]);
        assert!(!said.contains('\n') && printable(&said) == said, "one printable line: {said:?}");
        assert!(said.len() < 4_096, "{} bytes", said.len());
    }
    assert!(Challenge::from_values(401, values()).is_some(), "401 always asks for a login");
    assert!(Challenge::from_values(404, values()).is_none());
});
