//! The script reads only fields that the types of the report have.
//!
//! A function of the script says the type of what it reads with `@param {Type} name`. In its file that
//! name is then always of this type, and every `name.field` must be a field of the type's schema, so a
//! field that is renamed in Rust fails here. Fields that no script reads are listed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

const FILES: [(&str, &str); 6] = [
    ("agent.js", include_str!("../../assets/script/agent.js")),
    ("detection.js", include_str!("../../assets/script/detection.js")),
    ("inspector.js", include_str!("../../assets/script/inspector.js")),
    ("retrieval.js", include_str!("../../assets/script/retrieval.js")),
    ("server.js", include_str!("../../assets/script/server.js")),
    ("slices.js", include_str!("../../assets/script/slices.js")),
];

/// Types of observations whose fields a script reads one by one or as a whole.
const TYPES: [&str; 19] = [
    "Attack",
    "AttackEvidence",
    "DetectorFinding",
    "Difference",
    "Finding",
    "Fuzz",
    "Item",
    "ItemError",
    "Load",
    "Measured",
    "RankedTool",
    "Ranking",
    "ShownCall",
    "ShownExpectation",
    "Slice",
    "Step",
    "Suite",
    "Traces",
    "Trajectory",
];

/// Fields that no script reads by name, with the reason.
const UNREAD: [(&str, &str); 6] = [
    ("Finding.tool", "it is the id of the item"),
    ("Measured.better", "the columns have it"),
    ("Measured.count", "the figures show it"),
    ("Measured.left_out", "the figures show it"),
    ("Measured.per_run", "the figures show it"),
    ("Trajectory.id", "it is the id of the item"),
];

/// The fields of a type and of the variants of an enum.
fn fields(schema: &Value, into: &mut BTreeSet<String>) {
    let properties = schema["properties"].as_object();
    into.extend(properties.into_iter().flat_map(|properties| properties.keys().cloned()));
    for variants in ["oneOf", "anyOf"] {
        let variants = schema[variants].as_array();
        variants.into_iter().flatten().for_each(|variant| fields(variant, into));
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || character == '$'
}

/// The names that a file declares, with their types.
fn declared(script: &str) -> BTreeMap<&str, &str> {
    let declarations = script.split("@param {").skip(1);
    let mut names = BTreeMap::new();
    for declaration in declarations {
        let (types, rest) = declaration.split_once("} ").unwrap();
        let name = rest.split(|c| !is_word(c)).next().unwrap();
        let earlier = names.insert(name, types);
        assert!(earlier.is_none_or(|earlier| earlier == types), "{name} has two types");
    }
    names
}

/// The text after each use of a name: `.field`, or another character.
fn uses<'a>(script: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    script.match_indices(name).filter_map(move |(at, _)| {
        let after = &script[at + name.len()..];
        // After a dot it is a field of something else.
        let before = script[..at].chars().next_back();
        let whole = !before.is_some_and(|c| is_word(c) || c == '.') && !after.starts_with(is_word);
        whole.then_some(after)
    })
}

#[test]
fn the_script_reads_fields_that_exist_and_all_that_matter() {
    let schema = karat_core::report::report_schema();
    let known = |types: &str| {
        let mut known = BTreeSet::new();
        for name in types.split('|') {
            let definition = &schema["$defs"][name];
            assert!(definition.is_object(), "the schema has no type {name}");
            fields(definition, &mut known);
        }
        known
    };
    let mut read: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (file, script) in FILES {
        let code: Vec<&str> =
            script.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let code = code.join("\n");
        for (name, types) in declared(script) {
            let known = known(types);
            for after in uses(&code, name) {
                assert!(!after.starts_with('['), "{file}: {name}[…] cannot be checked");
                let Some(field) = after.strip_prefix('.') else { continue };
                let field = field.split(|c| !is_word(c)).next().unwrap();
                if field.is_empty() {
                    continue; // The end of a sentence.
                }
                assert!(known.contains(field), "{file}: {types} has no field {field}: {known:?}");
                for one in types.split('|') {
                    read.entry(one).or_default().insert(field.to_owned());
                }
            }
        }
    }
    let mut unread = Vec::new();
    for name in TYPES {
        let read = read.get(name).unwrap_or_else(|| panic!("no script reads {name}"));
        unread.extend(known(name).difference(read).map(|field| format!("{name}.{field}")));
    }
    let expected: Vec<&str> = UNREAD.iter().map(|(field, _)| *field).collect();
    assert_eq!(unread, expected, "fields that no script reads");
}
