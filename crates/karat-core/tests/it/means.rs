//! The schema of means in docs/ is the one of the types.

#[test]
fn the_schema_of_means_is_up_to_date() {
    let made = format!("{:#}\n", karat_core::means::schema());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/traces.schema.json");
    if std::env::var_os("KARAT_GUIDE").is_some_and(|how| how == "update") {
        std::fs::write(path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(committed == made, "docs/traces.schema.json is out of date: ./test update");
}
