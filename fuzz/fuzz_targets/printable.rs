//! Any text made printable: nothing that steers a terminal is left, and doing it twice changes nothing.
#![no_main]

use karat_io::text::{clip, printable};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let shown = printable(text);
    assert!(
        !shown
            .chars()
            .any(|letter| letter.is_control() || ('\u{202a}'..='\u{202e}').contains(&letter))
    );
    assert_eq!(printable(&shown), shown);
    let _ = clip(&shown, 10);
});
