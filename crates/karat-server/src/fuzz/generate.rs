//! The inputs for one tool, from its input schema.
//!
//! First what can be listed: what is required, what is possible, every edge of every parameter, every
//! type in the wrong place, what is missing and what is too much. The kinds take turns, so that a small
//! number of cases has some of each; what is left is filled up with seeded mixtures. Whether an input
//! keeps the schema is decided by the schema engine alone, and no input is made twice.

use std::collections::{BTreeMap, HashSet};

use karat_core::dataset::Digest;
use karat_core::schema::Compiled;
use karat_metrics::stats::random::Draws;
use serde_json::{Map, Value, json};

use super::shape::Shapes;
use super::values::{self, Extent, Try};
use super::{Case, Kind, Validity};

/// How many places of one schema are filled, and how deep they are looked for.
const PLACES: usize = 64;
const DEPTH: usize = 5;
/// How many huge inputs one tool gets, and in how many places.
const MOST_HUGE: usize = 6;
const HUGE_PLACES: usize = 3;
/// How often a mixture is tried before there are taken to be no more.
const MIXTURES: usize = 20;

/// The inputs for a tool: `count` of them, or fewer where there are not so many.
#[must_use]
pub fn cases(schema: Option<&Value>, count: usize, seed: u64) -> Vec<Case> {
    cases_around(schema, &Map::new(), count, seed)
}

/// The same around arguments that are known to work: where a parameter is not the one that is tried, it
/// has the value that is given here.
#[must_use]
pub fn cases_around(
    schema: Option<&Value>,
    known: &Map<String, Value>,
    count: usize,
    seed: u64,
) -> Vec<Case> {
    let open = json!({"type": "object"});
    let judge = schema.and_then(|schema| Compiled::new(schema).ok());
    let schema = schema.filter(|_| judge.is_some()).unwrap_or(&open);
    let shapes = Shapes::new(schema);
    let draft = Draft::of(&shapes, schema, known);
    let mut maker = Maker { judge: judge.as_ref(), seen: HashSet::new(), cases: Vec::new() };
    maker.listed(&draft, count);
    maker.mixed(&draft, count, seed);
    maker.cases
}

/// The plainest arguments that keep a schema, as far as they can be made, with what is known to work.
#[must_use]
pub fn plainest(schema: Option<&Value>, known: &Map<String, Value>) -> Map<String, Value> {
    let open = json!({"type": "object"});
    let schema = schema.unwrap_or(&open);
    let shapes = Shapes::new(schema);
    let mut arguments = object(values::base(&shapes, schema, Extent::Required));
    put_known(&shapes, schema, known, &mut arguments);
    arguments
}

/// Puts known values where the schema has a parameter of that name.
fn put_known(
    shapes: &Shapes<'_>,
    schema: &Value,
    known: &Map<String, Value>,
    arguments: &mut Map<String, Value>,
) {
    let Some(plain) = shapes.plain(schema) else { return };
    for (name, value) in known {
        if plain.get("properties").is_some_and(|properties| properties.get(name).is_some()) {
            arguments.insert(name.clone(), value.clone());
        }
    }
}

/// Whether arguments keep a schema.
#[must_use]
pub fn validity(judge: Option<&Compiled>, arguments: &Map<String, Value>) -> Validity {
    let Some(judge) = judge else { return Validity::Unclear };
    let found = judge.check(&Value::Object(arguments.clone()));
    if found.not_checked().is_some() || (found.valid && !found.valid_with_formats) {
        return Validity::Unclear;
    }
    match found.errors.first() {
        _ if found.valid => Validity::Valid,
        Some(first) => Validity::Invalid {
            keyword: first.keyword.clone(),
            at: first.schema_path.clone(),
            why: match first.instance_path.as_str() {
                "" => first.message.clone(),
                place => format!("{place}: {}", first.message),
            },
        },
        None => Validity::Unclear,
    }
}

fn object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// A step into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Entry(usize),
}

/// A place in the arguments, with what fits there and what does not.
struct Place {
    steps: Vec<Step>,
    tries: Vec<Try>,
    /// The object around it demands it.
    required: bool,
}

impl Place {
    fn name(&self) -> String {
        let mut name = String::new();
        for step in &self.steps {
            match step {
                Step::Key(key) if name.is_empty() => name.push_str(key),
                Step::Key(key) => {
                    name.push('.');
                    name.push_str(key);
                }
                Step::Entry(at) => name.push_str(&format!("[{at}]")),
            }
        }
        name
    }
}

/// What is known of a schema before inputs are made from it.
struct Draft {
    least: Map<String, Value>,
    full: Map<String, Value>,
    places: Vec<Place>,
}

impl Draft {
    fn of(shapes: &Shapes<'_>, schema: &Value, known: &Map<String, Value>) -> Draft {
        let mut least = object(values::base(shapes, schema, Extent::Required));
        let mut full = object(values::base(shapes, schema, Extent::All));
        put_known(shapes, schema, known, &mut least);
        put_known(shapes, schema, known, &mut full);
        let mut places = Vec::new();
        gather(shapes, schema, &Value::Object(full.clone()), &[], &mut places);
        Draft { least, full, places }
    }
}

/// The places below one value, outer before inner.
fn gather(
    shapes: &Shapes<'_>,
    schema: &Value,
    value: &Value,
    steps: &[Step],
    places: &mut Vec<Place>,
) {
    let Some(plain) = shapes.plain(schema).filter(|_| steps.len() < DEPTH) else { return };
    let required = values::required(&plain);
    let mut inner: Vec<(Step, &Value, bool)> = Vec::new();
    let properties = plain.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        inner.push((Step::Key(name.clone()), schema, required.contains(&name.as_str())));
    }
    if let Some(items) = plain.get("items").filter(|items| items.is_object())
        && value.as_array().is_some_and(|list| !list.is_empty())
    {
        inner.push((Step::Entry(0), items, true));
    }
    let mut below = Vec::new();
    for (step, schema, required) in inner {
        if places.len() >= PLACES {
            return;
        }
        let mut steps = steps.to_vec();
        steps.push(step.clone());
        let mut tries = values::edges(shapes, schema);
        if places.len() >= HUGE_PLACES {
            tries.retain(|one| one.kind != Kind::Huge);
        }
        places.push(Place { steps: steps.clone(), tries, required });
        if let Some(value) = at(value, &step) {
            below.push((schema, value.clone(), steps));
        }
    }
    for (schema, value, steps) in below {
        gather(shapes, schema, &value, &steps, places);
    }
}

fn at<'a>(value: &'a Value, step: &Step) -> Option<&'a Value> {
    match step {
        Step::Key(key) => value.get(key),
        Step::Entry(at) => value.get(at),
    }
}

/// The arguments with a value put into a place; `None` takes what is there away.
fn with(
    arguments: &Map<String, Value>,
    steps: &[Step],
    new: Option<Value>,
) -> Option<Map<String, Value>> {
    let mut whole = Value::Object(arguments.clone());
    let (last, way) = steps.split_last()?;
    let mut here = &mut whole;
    for step in way {
        here = match step {
            Step::Key(key) => here.get_mut(key)?,
            Step::Entry(at) => here.get_mut(at)?,
        };
    }
    match (here, last, new) {
        (Value::Object(fields), Step::Key(key), Some(new)) => {
            fields.insert(key.clone(), new);
        }
        (Value::Object(fields), Step::Key(key), None) => {
            fields.shift_remove(key)?;
        }
        (Value::Array(list), Step::Entry(at), Some(new)) => *list.get_mut(*at)? = new,
        (Value::Array(list), Step::Entry(at), None) if *at < list.len() => {
            list.remove(*at);
        }
        _ => return None,
    }
    Some(object(Some(whole)))
}

/// An input that is not made yet: all of them together would be large.
struct Job<'d> {
    about: String,
    change: Change<'d>,
}

/// What is changed in the arguments that have everything.
enum Change<'d> {
    /// Something else altogether.
    Whole(Map<String, Value>),
    /// This is left out.
    Without(&'d [Step]),
    /// This is put in.
    With(&'d [Step], &'d Value),
    /// This field is too much, in the object there.
    Surplus(&'d [Step], &'static str),
}

impl Change<'_> {
    fn made(self, full: &Map<String, Value>) -> Option<Map<String, Value>> {
        match self {
            Change::Whole(arguments) => Some(arguments),
            Change::Without(steps) => with(full, steps, None),
            Change::With(steps, value) => with(full, steps, Some(value.clone())),
            Change::Surplus(steps, key) => {
                let mut steps = steps.to_vec();
                steps.push(Step::Key(key.to_owned()));
                with(full, &steps, Some(json!("surplus")))
            }
        }
    }
}

/// Fields that no schema has.
const SURPLUS: [(&str, &str); 5] = [
    ("karat_extra", "a field too much"),
    ("__proto__", "a field that is named __proto__"),
    ("constructor", "a field that is named constructor"),
    ("", "a field without a name"),
    ("\u{202e}👍", "a field with a strange name"),
];

struct Maker<'a> {
    judge: Option<&'a Compiled>,
    seen: HashSet<Digest>,
    cases: Vec<Case>,
}

impl Maker<'_> {
    fn push(&mut self, kind: Kind, about: String, arguments: Map<String, Value>) {
        let text = Value::Object(arguments.clone()).to_string();
        if self.seen.insert(Digest::of(text.as_bytes())) {
            let validity = validity(self.judge, &arguments);
            self.cases.push(Case { kind, about, arguments, validity });
        }
    }

    /// What can be listed, the kinds in turns.
    fn listed(&mut self, draft: &Draft, count: usize) {
        let everywhere: Vec<Try> =
            values::of_all_types().into_iter().chain(values::deep()).collect();
        let mut queues: Vec<(Kind, std::vec::IntoIter<Job<'_>>)> = jobs(draft, &everywhere)
            .into_iter()
            .map(|(kind, jobs)| (kind, jobs.into_iter()))
            .collect();
        while self.cases.len() < count && !queues.is_empty() {
            queues.retain_mut(|(kind, queue)| {
                if self.cases.len() >= count {
                    return true;
                }
                let Some(Job { about, change }) = queue.next() else { return false };
                if let Some(arguments) = change.made(&draft.full) {
                    self.push(*kind, about, arguments);
                }
                true
            });
        }
    }

    /// Seeded mixtures until there are enough.
    fn mixed(&mut self, draft: &Draft, count: usize, seed: u64) {
        let mut draws = Draws::from_seed(seed);
        let mut fruitless = 0;
        while self.cases.len() < count && fruitless < MIXTURES && !draft.places.is_empty() {
            let before = self.cases.len();
            let arguments = mixture(draft, &mut draws);
            self.push(Kind::Mixed, "a mixture".to_owned(), arguments);
            fruitless = if self.cases.len() == before { fruitless + 1 } else { 0 };
        }
    }
}

fn mixture(draft: &Draft, draws: &mut Draws) -> Map<String, Value> {
    let mut arguments = match draws.below(2) {
        0 => draft.least.clone(),
        _ => draft.full.clone(),
    };
    for place in &draft.places {
        let new = match draws.below(8) {
            0..=3 => continue,
            4 => None,
            5 => Some(json!(scribble(draws))),
            _ => match place.tries.get(draws.index(place.tries.len())) {
                Some(one) if one.kind != Kind::Huge => Some(one.value.clone()),
                _ => continue,
            },
        };
        if let Some(changed) = with(&arguments, &place.steps, new) {
            arguments = changed;
        }
    }
    arguments
}

/// Everything that can be listed, by kind.
fn jobs<'d>(draft: &'d Draft, everywhere: &'d [Try]) -> BTreeMap<Kind, Vec<Job<'d>>> {
    let mut all: BTreeMap<Kind, Vec<Job<'d>>> = BTreeMap::new();
    let mut add = |kind: Kind, about: String, change: Change<'d>| {
        all.entry(kind).or_default().push(Job { about, change });
    };
    let least = Change::Whole(draft.least.clone());
    add(Kind::Edge, "what is required and no more".to_owned(), least);
    add(Kind::Edge, "all that there is".to_owned(), Change::Whole(draft.full.clone()));
    add(Kind::Missing, "nothing".to_owned(), Change::Whole(Map::new()));
    for (key, about) in SURPLUS {
        add(Kind::Extra, about.to_owned(), Change::Surplus(&[], key));
    }
    let mut huge = 0;
    for place in &draft.places {
        let name = place.name();
        let (kind, whether) = match place.required {
            true => (Kind::Missing, "which is required"),
            false => (Kind::Edge, "which is optional"),
        };
        add(kind, format!("{name} left out, {whether}"), Change::Without(&place.steps));
        for one in place.tries.iter().chain(everywhere) {
            huge += usize::from(one.kind == Kind::Huge);
            if one.kind == Kind::Huge && huge > MOST_HUGE {
                continue;
            }
            let change = Change::With(&place.steps, &one.value);
            add(one.kind, format!("{name}: {}", one.about), change);
        }
        // Too much inside of it, where it is an object.
        let change = Change::Surplus(&place.steps, SURPLUS[0].0);
        add(Kind::Extra, format!("{name} with a field too much"), change);
    }
    all
}

/// A short text of characters from all over Unicode.
fn scribble(draws: &mut Draws) -> String {
    let length = draws.below(12);
    (0..length)
        .filter_map(|_| {
            let top = [0x7f, 0x7ff, 0xffff, 0x10_ffff][draws.index(4)];
            u32::try_from(draws.below(top)).ok().and_then(char::from_u32)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "$defs": {"colour": {"enum": ["red", "green"]}},
            "properties": {
                "name": {"type": "string", "minLength": 2, "maxLength": 5},
                "count": {"type": "integer", "minimum": 1, "maximum": 10},
                "colour": {"$ref": "#/$defs/colour"},
                "place": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"], "additionalProperties": false},
                "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3, "uniqueItems": true},
                "code": {"type": "string", "pattern": "^[A-Z]{2}-\\d+$"},
                "maybe": {"type": ["string", "null"]},
            },
            "required": ["name", "count"],
            "additionalProperties": false,
        })
    }

    fn kinds(cases: &[Case]) -> std::collections::BTreeSet<Kind> {
        cases.iter().map(|case| case.kind).collect()
    }

    #[test]
    fn a_small_number_of_cases_has_some_of_each_kind() {
        let few = cases(Some(&schema()), 20, 0);
        assert_eq!(few.len(), 20);
        assert_eq!(kinds(&few).len(), 9, "{:?}", kinds(&few));
        assert!(kinds(&cases(Some(&schema()), 2_000, 0)).contains(&Kind::Mixed));
    }

    #[test]
    fn the_edges_of_every_parameter_are_there() {
        let all = cases(Some(&schema()), 1_000, 0);
        let has = |wanted: Value, valid: bool| {
            all.iter().any(|case| {
                let fits = wanted
                    .as_object()
                    .unwrap()
                    .iter()
                    .all(|(key, value)| case.arguments.get(key) == Some(value));
                fits && (case.validity == Validity::Valid) == valid
            })
        };
        assert!(has(json!({"count": 1}), true) && has(json!({"count": 10}), true));
        assert!(has(json!({"count": 0}), false) && has(json!({"count": 11}), false));
        assert!(has(json!({"name": "aa"}), true) && has(json!({"name": "aaaaa"}), true));
        assert!(has(json!({"name": "a"}), false) && has(json!({"name": "aaaaaa"}), false));
        assert!(has(json!({"colour": "red"}), true) && has(json!({"colour": "green"}), true));
        assert!(has(json!({"maybe": null}), true) && has(json!({"place": {"x": "text"}}), false));
        assert!(has(json!({"karat_extra": "surplus"}), false));
        assert!(all.iter().any(|case| !case.arguments.contains_key("name")));
    }

    #[test]
    fn the_plainest_arguments_keep_the_schema() {
        let judge = Compiled::new(&schema()).unwrap();
        let plain = plainest(Some(&schema()), &Map::new());
        assert_eq!(validity(Some(&judge), &plain), Validity::Valid, "{plain:?}");
        assert_eq!(plain.len(), 2);
        let first = cases(Some(&schema()), 200, 0);
        let valid = first.iter().filter(|case| case.validity == Validity::Valid).count();
        let invalid =
            first.iter().filter(|case| matches!(case.validity, Validity::Invalid { .. })).count();
        assert!(valid > 30 && invalid > 30, "{valid} valid, {invalid} invalid");
    }

    #[test]
    fn what_is_known_to_work_stands_around_what_is_tried() {
        let known = json!({"name": "good", "elsewhere": 1});
        let known = known.as_object().unwrap();
        assert_eq!(plainest(Some(&schema()), known)["name"], "good");
        let all = cases_around(Some(&schema()), known, 300, 0);
        let around = all.iter().filter(|case| case.arguments.get("name") == Some(&json!("good")));
        assert!(around.count() > 150);
        assert!(all.iter().all(|case| !case.arguments.contains_key("elsewhere")));
    }

    #[test]
    fn the_same_seed_makes_the_same_cases_and_another_seed_others() {
        let text = |seed| {
            let cases = cases(Some(&schema()), 1_000, seed);
            cases
                .iter()
                .map(|case| Value::Object(case.arguments.clone()).to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }

    #[test]
    fn no_case_is_made_twice_and_an_unusable_schema_still_gives_some() {
        let all = cases(Some(&schema()), 1_000, 3);
        let texts: HashSet<String> =
            all.iter().map(|case| Value::Object(case.arguments.clone()).to_string()).collect();
        assert_eq!(texts.len(), all.len());
        for unusable in [None, Some(json!({"type": "objekt"})), Some(json!(7))] {
            let cases = cases(unusable.as_ref(), 50, 0);
            assert!(!cases.is_empty());
            assert!(cases.iter().all(|case| case.validity == Validity::Unclear));
        }
    }

    /// Schemas as servers write them, and some that nobody should write.
    fn any_schema() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!({"type": "string"})),
            (0_u64..6, 0_u64..6).prop_map(
                |(low, more)| json!({"type": "string", "minLength": low, "maxLength": low + more})
            ),
            (-5_i64..5, 0_i64..5).prop_map(
                |(low, more)| json!({"type": "integer", "minimum": low, "maximum": low + more})
            ),
            Just(json!({"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5})),
            Just(json!({"enum": ["a", 1, null]})),
            Just(json!({"const": true})),
            Just(json!({"type": ["boolean", "null"]})),
            Just(json!({"type": "string", "format": "date"})),
            Just(json!({"type": "string", "pattern": "^[a-c]{2,4}$"})),
            Just(json!({"$ref": "#"})),
            Just(json!({})),
            Just(json!(false)),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                (prop::collection::btree_map("[a-d]", inner.clone(), 0..4), any::<bool>()).prop_map(|(properties, open)| {
                    let required: Vec<String> = properties.keys().take(2).cloned().collect();
                    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": open})
                }),
                inner.clone().prop_map(|items| json!({"type": "array", "items": items, "maxItems": 3})),
                prop::collection::vec(inner.clone(), 1..3).prop_map(|ways| json!({"anyOf": ways})),
                prop::collection::vec(inner, 1..3).prop_map(|parts| json!({"allOf": parts})),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn what_is_called_valid_is_valid_and_what_is_called_invalid_is_not(schema in any_schema(), seed in any::<u64>()) {
            let wrapped = json!({"type": "object", "properties": {"p": schema}});
            let Ok(judge) = Compiled::new(&wrapped) else { return Ok(()) };
            for case in cases(Some(&wrapped), 60, seed) {
                let found = judge.check(&Value::Object(case.arguments.clone()));
                match case.validity {
                    Validity::Valid => prop_assert!(found.valid && found.valid_with_formats),
                    Validity::Invalid { .. } => prop_assert!(!found.valid),
                    Validity::Unclear => {}
                }
            }
        }
    }
}
