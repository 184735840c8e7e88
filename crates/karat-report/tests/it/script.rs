//! The script agrees with the types of the report.
//!
//! A function of the script says the type of what it reads with `@param {Type} name`. In its file that
//! name is then always of this type, and every `name.field` must be a field of the type's schema, so a
//! field that is renamed in Rust fails here. A table says what its keys are with
//! `@type {Map<Type["field"], …>}` and must have exactly the values of that field.
//!
//! Files come from the folder and types from the schema, so a new one cannot be forgotten: what no
//! script reads is listed here with the reason. A field that is read through a name without a type is
//! not noticed.

use crate::sample;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use karat_core::report::{Kind, report_schema};
use karat_report::html;
use serde_json::Value;

/// The types that a page takes over from a report: each line of its data is an item, and its head has
/// the slices.
const ROOTS: [&str; 2] = ["Item", "Slice"];

/// Files that read no type of the report, with the reason.
const UNTYPED: [(&str, &str); 5] = [
    ("data.js", "the types of its rows are in html/data.rs, and it hands items on as they are"),
    ("definitions.js", "it reads the page"),
    ("main.js", "it puts the page together"),
    ("parts.js", "it shows what the views give it"),
    ("text.js", "it shows what the views give it"),
];

/// Types of which no script reads a field by name, with the reason.
const WHOLE: [(&str, &str); 4] = [
    ("Count", "the figures show it"),
    ("FuzzCounts", "every count is shown under its own name"),
    ("Groups", "the figures show it"),
    ("Other", "it is shown as a tree"),
];

/// Fields that no script reads by name, with the reason.
const UNREAD: [(&str, &str); 8] = [
    ("Finding.tool", "it is the id of the item"),
    ("Interval.level", "all intervals have the same"),
    ("Measured.better", "the columns have it"),
    ("Measured.count", "the figures show it"),
    ("Measured.left_out", "the figures show it"),
    ("Measured.per_run", "the figures show it"),
    ("Resilience.delivered", "the outcome says it"),
    ("Trajectory.id", "it is the id of the item"),
];

/// Enums that have no table, with the reason.
const NO_TABLE: [(&str, &str); 2] =
    [("Finding.severity", "it is shown as it is"), ("Measured.better", "no script reads it")];

/// The files of the script by name.
fn files() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/script");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "js"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect()
}

fn definition<'a>(schema: &'a Value, name: &str) -> &'a Value {
    let definition = &schema["$defs"][name];
    assert!(definition.is_object(), "the schema has no type {name}");
    definition
}

/// The types that a page takes over, and those that they refer to, with their definitions.
fn types(schema: &Value) -> BTreeMap<String, &Value> {
    let mut found = BTreeMap::new();
    let mut open = Vec::from(ROOTS.map(str::to_owned));
    while let Some(name) = open.pop() {
        let definition = definition(schema, &name);
        if found.insert(name, definition).is_some() {
            continue;
        }
        let text = definition.to_string();
        let names = text.split("\"#/$defs/").skip(1).filter_map(|rest| rest.split('"').next());
        open.extend(names.map(str::to_owned));
    }
    found
}

/// The fields of a type and of the variants of an enum, each with its schema.
fn fields(definition: &Value) -> Vec<(&str, &Value)> {
    let own = definition["properties"].as_object().into_iter().flatten();
    let mut found: Vec<(&str, &Value)> = own.map(|(name, part)| (name.as_str(), part)).collect();
    for variants in ["oneOf", "anyOf"] {
        let variants = definition[variants].as_array().into_iter().flatten();
        found.extend(variants.flat_map(fields));
    }
    found
}

/// The values of an enum; none if the schema is not that of one.
fn values(schema: &Value, part: &Value) -> BTreeSet<String> {
    if let Some(reference) = part["$ref"].as_str() {
        return values(schema, definition(schema, reference.trim_start_matches("#/$defs/")));
    }
    let listed = part["enum"].as_array().into_iter().flatten().chain([&part["const"]]);
    let mut found: BTreeSet<String> = listed.filter_map(Value::as_str).map(str::to_owned).collect();
    for variants in ["oneOf", "anyOf"] {
        let variants = part[variants].as_array().into_iter().flatten();
        found.extend(variants.flat_map(|variant| values(schema, variant)));
    }
    found
}

/// The values of a field that is an enum, or the tag of one.
fn values_of(schema: &Value, name: &str, field: &str) -> BTreeSet<String> {
    let named = fields(definition(schema, name)).into_iter().filter(|(name, _)| *name == field);
    named.flat_map(|(_, part)| values(schema, part)).collect()
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
        // What is read of a list are its methods; its elements have a name of their own.
        if types.ends_with("[]") {
            continue;
        }
        let name = rest.split(|c| !is_word(c)).next().unwrap();
        let earlier = names.insert(name, types);
        assert!(earlier.is_none_or(|earlier| earlier == types), "{name} has two types");
    }
    names
}

/// The text before and after each use of a name.
fn uses<'a>(code: &'a str, name: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    code.match_indices(name).filter_map(move |(at, _)| {
        let (before, after) = (&code[..at], &code[at + name.len()..]);
        // After a dot it is a field of something else, after three it is spread.
        let is_field = before.ends_with('.') && !before.ends_with("...");
        let is_part = before.ends_with(is_word) || after.starts_with(is_word);
        (!is_field && !is_part).then_some((before, after))
    })
}

/// A field that a script reads, and the text that it compares it with, if it does.
struct Read<'a> {
    field: &'a str,
    compared: Option<&'a str>,
}

/// The fields of a name that a file reads.
fn reads<'a>(file: &str, code: &'a str, name: &'a str) -> Vec<Read<'a>> {
    let mut found = Vec::new();
    for (before, after) in uses(code, name) {
        let is_opaque = after.starts_with('[') || after.starts_with("?.[");
        assert!(!is_opaque, "{file}: {name}[…] cannot be checked");
        let Some(rest) = after.strip_prefix("?.").or_else(|| after.strip_prefix('.')) else {
            assert!(!before.ends_with("} = "), "{file}: {{ … }} = {name} cannot be checked");
            continue;
        };
        let (field, rest) = rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
        if field.is_empty() {
            continue; // The end of a sentence.
        }
        let compared = rest.strip_prefix(" === \"").or_else(|| rest.strip_prefix(" !== \""));
        let compared = compared.and_then(|text| text.split('"').next());
        found.push(Read { field, compared });
    }
    found
}

/// A constant that maps values of the report to what is shown for them.
struct Table<'a> {
    name: &'a str,
    /// The type of the keys.
    keys: &'a str,
    entries: Vec<(&'a str, &'a str)>,
}

/// The tables of a file. Each must say what its keys are, so none is left unchecked.
fn tables<'a>(file: &str, script: &'a str) -> Vec<Table<'a>> {
    let lines: Vec<&'a str> = script.lines().collect();
    let entry = |line: &'a str| {
        let inside = line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix("],"));
        let parts = inside.and_then(|inside| inside.split_once(", "));
        let (key, value) = parts.unwrap_or_else(|| panic!("{file}: not an entry: {line}"));
        (key.trim_matches('"'), value)
    };
    let mut found = Vec::new();
    for (at, pair) in lines.windows(2).enumerate() {
        let (above, line) = (pair[0], pair[1]);
        let name = line.strip_prefix("const ").and_then(|rest| rest.strip_suffix(" = new Map(["));
        let Some(name) = name else { continue };
        let keys = above.strip_prefix("/** @type {Map<").and_then(|rest| rest.split_once(", "));
        let (keys, _) = keys.unwrap_or_else(|| panic!("{file}: {name} has no type"));
        let inside = lines[at + 2..].iter().copied().take_while(|line| *line != "]);");
        found.push(Table { name, keys, entries: inside.map(entry).collect() });
    }
    found
}

#[test]
fn the_page_has_every_file_of_the_script() {
    let page = html::page(&sample::small()).unwrap();
    for (file, script) in files() {
        assert!(page.contains(&script), "{file} is not in the page");
    }
}

#[test]
fn the_script_reads_fields_that_exist_and_all_that_matter() {
    let schema = report_schema();
    let mut untyped = Vec::new();
    let mut read: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, script) in files() {
        let code: Vec<&str> =
            script.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let code = code.join("\n");
        let names = declared(&script);
        for (name, types) in &names {
            let types: Vec<&str> = types.split('|').collect();
            let definitions = types.iter().map(|one| definition(&schema, one));
            let known: BTreeSet<&str> =
                definitions.flat_map(fields).map(|(field, _)| field).collect();
            for Read { field, compared } in reads(&file, &code, name) {
                assert!(known.contains(field), "{file}: {types:?} has no field {field}: {known:?}");
                let values = types.iter().flat_map(|one| values_of(&schema, one, field));
                let values: BTreeSet<String> = values.collect();
                let is_value = |text: &str| values.is_empty() || values.contains(text);
                assert!(
                    compared.is_none_or(is_value),
                    "{file}: {name}.{field} is compared with {compared:?}, and can be {values:?}"
                );
                for one in &types {
                    read.entry((*one).to_owned()).or_default().insert(field.to_owned());
                }
            }
        }
        if names.is_empty() {
            untyped.push(file);
        }
    }
    assert_eq!(untyped, UNTYPED.map(|(file, _)| file), "files that declare no type");
    let (mut whole, mut unread) = (Vec::new(), Vec::new());
    for (name, definition) in types(&schema) {
        let known: BTreeSet<String> =
            fields(definition).into_iter().map(|(field, _)| field.to_owned()).collect();
        match read.get(&name) {
            Some(read) => {
                unread.extend(known.difference(read).map(|field| format!("{name}.{field}")));
            }
            None if known.is_empty() => {} // A text, or an enum of texts.
            None => whole.push(name),
        }
    }
    assert_eq!(whole, WHOLE.map(|(name, _)| name), "types that no script reads");
    assert_eq!(unread, UNREAD.map(|(field, _)| field), "fields that no script reads");
}

#[test]
fn the_tables_of_the_script_have_every_value_of_their_enums_and_no_other() {
    let schema = report_schema();
    let mut tabled = BTreeSet::new();
    for (file, script) in files() {
        for Table { name, keys, entries } in tables(&file, &script) {
            let place = keys.strip_suffix("\"]").and_then(|keys| keys.split_once("[\""));
            let Some((of, field)) = place else {
                assert_eq!(keys, "number", "{file}: the keys of {name} cannot be checked");
                continue;
            };
            let keys: BTreeSet<String> = entries.iter().map(|(key, _)| (*key).to_owned()).collect();
            let values = values_of(&schema, of, field);
            assert_eq!(keys, values, "{file}: the keys of {name}, and the values of {of}.{field}");
            tabled.insert(format!("{of}.{field}"));
        }
    }
    let mut without = BTreeSet::new();
    for (name, definition) in types(&schema) {
        let enums = fields(definition).into_iter();
        let enums = enums.filter(|(_, part)| !values(&schema, part).is_empty());
        without.extend(enums.map(|(field, _)| format!("{name}.{field}")));
    }
    let without: Vec<&String> = without.difference(&tabled).collect();
    assert_eq!(without, NO_TABLE.map(|(field, _)| field), "enums without a table");
}

/// Without a view of its own a kind is shown as a tree of its fields, which is for kinds that this build
/// does not know.
#[test]
fn every_known_kind_has_a_view_of_its_type() {
    let schema = report_schema();
    let files = files();
    let tables = tables("parts.js", &files["parts.js"]);
    let views = &tables.iter().find(|table| table.name == "VIEWS").unwrap().entries;
    let shown: BTreeSet<&str> = views.iter().map(|(kind, _)| *kind).collect();
    let known: BTreeSet<&str> = Kind::KNOWN.iter().map(Kind::name).collect();
    assert_eq!(shown, known, "kinds with a view, and known kinds");
    let variants = definition(&schema, "Observed")["anyOf"].as_array().unwrap();
    for (kind, view) in views {
        let is_kind = |variant: &&Value| variant["properties"]["kind"]["const"] == *kind;
        let variant = variants.iter().find(is_kind).unwrap_or_else(|| panic!("no type of {kind}"));
        let of = variant["$ref"].as_str().unwrap().trim_start_matches("#/$defs/");
        let start = format!("function {view}(");
        let mut lines =
            files.values().flat_map(|script| script.lines().zip(script.lines().skip(1)));
        let found = lines.find(|(_, line)| line.starts_with(&start));
        let (above, function) = found.unwrap_or_else(|| panic!("no {start}"));
        let argument = function[start.len()..].split([',', ')']).next().unwrap();
        assert_eq!(above, format!("/** @param {{{of}}} {argument} */"), "above {function}");
    }
}
