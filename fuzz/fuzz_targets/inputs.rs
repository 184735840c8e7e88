//! A schema of a stranger: inputs are made from it in bounded memory and time, and what is called valid
//! is valid.
#![no_main]

use karat_core::schema::Compiled;
use karat_server::fuzz::Validity;
use karat_server::fuzz::generate::cases;
use serde_json::Value;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(schema) = serde_json::from_str::<Value>(text) else { return };
    let judge = Compiled::new(&schema);
    for case in cases(Some(&schema), 30, 0) {
        if let (Ok(judge), Validity::Valid) = (&judge, &case.validity) {
            assert!(judge.check(&Value::Object(case.arguments)).valid);
        }
    }
});
