//! A schema and an instance, split at the first line of dashes: checked, or refused with an error.
#![no_main]

use karat_core::schema::Compiled;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let (schema, instance) = text.split_once("\n---\n").unwrap_or((text, "null"));
    let (Ok(schema), Ok(instance)) = (serde_json::from_str(schema), serde_json::from_str(instance))
    else {
        return;
    };
    if let Ok(compiled) = Compiled::new(&schema) {
        let _ = compiled.check(&instance);
    }
});
