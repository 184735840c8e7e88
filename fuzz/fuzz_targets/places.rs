//! A JSON path, a template, a secret and a document, one a line: found, filled in and hidden, or refused
//! with a message. Text without its secret stays JSON and does not contain it.
#![no_main]

use karat_io::json_path::JsonPath;
use karat_io::redact::Redactor;
use karat_io::secrets::is_hideable;
use karat_io::template::Template;
use serde_json::Value;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let mut parts = text.splitn(4, '\n');
    let mut next = || parts.next().unwrap_or_default();
    let (path, template, secret, document) = (next(), next(), next(), next());
    if let Ok(template) = Template::parse(template) {
        let _ = template.fill(|name| if name.len() < 9 { Ok(name.to_owned()) } else { Err(()) });
    }
    let mut redactor = Redactor::default();
    redactor.add(secret);
    let hidden = redactor.hide(document);
    // A secret can be part of the mark itself, and a short one is hidden where it is alone.
    if is_hideable(secret) && secret.len() > 12 {
        assert!(!hidden.contains(secret), "{hidden}");
    }
    let Ok(mut value) = serde_json::from_str::<Value>(document) else { return };
    let hidden = redactor.hide_in_json(document);
    assert!(serde_json::from_str::<Value>(&hidden).is_ok(), "{hidden}");
    if let Ok(path) = JsonPath::parse(path) {
        let found = path.find(&value).len();
        assert_eq!(path.find_mut(&mut value).len(), found);
        let _ = path.find_listed(&value);
    }
});
