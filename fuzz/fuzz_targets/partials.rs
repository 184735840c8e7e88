//! What follows the format and the version in a partial result: read, or refused with an error. What is read is
//! written the same, merges with itself and becomes a report or an error.
#![no_main]

use std::sync::OnceLock;

use karat_arrow::{Kind, Options, Partial};
use karat_core::dataset::Digest;

/// The start of every partial result of this version: the format, and the version as a text.
fn start() -> &'static [u8] {
    static START: OnceLock<Vec<u8>> = OnceLock::new();
    START.get_or_init(|| {
        let empty = Partial::new(Kind::Rankings, &Options::default()).expect("the usual options");
        let mut bytes = empty.to_bytes();
        let line = bytes.iter().position(|byte| *byte == b'\n').expect("the line of the format");
        bytes.truncate(line + 2 + usize::from(bytes[line + 1]));
        bytes
    })
}

/// A digest behind the bytes, which no mutation would find.
fn signed(mut bytes: Vec<u8>) -> Vec<u8> {
    let digest = Digest::of(&bytes).to_string();
    let digits = digest.trim_start_matches("sha256:").as_bytes().chunks(2);
    let texts = digits.filter_map(|pair| std::str::from_utf8(pair).ok());
    bytes.extend(texts.filter_map(|pair| u8::from_str_radix(pair, 16).ok()));
    bytes
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = Partial::from_bytes(bytes);
    let Ok(read) = Partial::from_bytes(&signed([start(), bytes].concat())) else { return };
    let again = Partial::from_bytes(&read.to_bytes()).expect("what is written can be read");
    assert!(again.to_bytes() == read.to_bytes(), "another partial result");
    let mut twice = read.clone();
    let _ = twice.merge(again);
    let _ = twice.report();
    let _ = read.report();
});
