//! The inputs for one tool, from its input schema.
//!
//! First what can be listed: what is required, what is possible, every edge of every parameter, every
//! type in the wrong place, what is missing and what is too much. The kinds take turns, so that a small
//! number of cases has some of each; what is left is filled up with seeded mixtures. Whether an input
//! keeps the schema is decided by the schema engine alone, and no input is made twice.

use std::collections::{BTreeMap, HashSet};

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
    let open = json!({"type": "object"});
    let judge = schema.and_then(|schema| Compiled::new(schema).ok());
    let schema = schema.filter(|_| judge.is_some()).unwrap_or(&open);
    let shapes = Shapes::new(schema);
    let mut maker = Maker {
        draft: Draft::of(&shapes, schema),
        judge: judge.as_ref(),
        seen: HashSet::new(),
        cases: Vec::new(),
    };
    maker.listed(count);
    maker.mixed(count, seed);
    maker.cases
}

/// The plainest arguments that keep a schema, as far as they can be made.
#[must_use]
pub fn plainest(schema: Option<&Value>) -> Map<String, Value> {
    let open = json!({"type": "object"});
    let schema = schema.unwrap_or(&open);
    object(values::base(&Shapes::new(schema), schema, Extent::Required))
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
    fn of(shapes: &Shapes<'_>, schema: &Value) -> Draft {
        let least = object(values::base(shapes, schema, Extent::Required));
        let full = object(values::base(shapes, schema, Extent::All));
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

/// An input with what it is, in words.
type Input = (String, Map<String, Value>);

struct Maker<'a> {
    draft: Draft,
    judge: Option<&'a Compiled>,
    seen: HashSet<String>,
    cases: Vec<Case>,
}

impl Maker<'_> {
    fn push(&mut self, kind: Kind, about: String, arguments: Map<String, Value>) {
        let text = Value::Object(arguments.clone()).to_string();
        if self.seen.insert(text) {
            let validity = validity(self.judge, &arguments);
            self.cases.push(Case { kind, about, arguments, validity });
        }
    }

    /// What can be listed, the kinds in turns.
    fn listed(&mut self, count: usize) {
        let (least, full) = (self.draft.least.clone(), self.draft.full.clone());
        let mut all: BTreeMap<Kind, Vec<Input>> = BTreeMap::new();
        let mut add = |kind: Kind, about: String, arguments: Option<Map<String, Value>>| {
            if let Some(arguments) = arguments {
                all.entry(kind).or_default().push((about, arguments));
            }
        };
        add(Kind::Edge, "what is required and no more".to_owned(), Some(least));
        add(Kind::Edge, "all that there is".to_owned(), Some(full.clone()));
        add(Kind::Missing, "nothing".to_owned(), Some(Map::new()));
        let mut huge = 0;
        for place in &self.draft.places {
            let name = place.name();
            let whether = if place.required { "which is required" } else { "which is optional" };
            let kind = if place.required { Kind::Missing } else { Kind::Edge };
            add(kind, format!("{name} left out, {whether}"), with(&full, &place.steps, None));
            for one in
                place.tries.iter().cloned().chain(values::of_all_types()).chain(values::deep())
            {
                if one.kind == Kind::Huge {
                    huge += 1;
                    if huge > MOST_HUGE {
                        continue;
                    }
                }
                let arguments = with(&full, &place.steps, Some(one.value));
                add(one.kind, format!("{name}: {}", one.about), arguments);
            }
            // Too much inside of it, where it is an object.
            let mut steps = place.steps.clone();
            steps.push(Step::Key("karat_extra".to_owned()));
            let arguments = with(&full, &steps, Some(json!("surplus")));
            add(Kind::Extra, format!("{name} with a field too much"), arguments);
        }
        for (key, about) in [
            ("karat_extra", "a field too much"),
            ("__proto__", "a field that is named __proto__"),
            ("constructor", "a field that is named constructor"),
            ("", "a field without a name"),
            ("\u{202e}👍", "a field with a strange name"),
        ] {
            let arguments = with(&full, &[Step::Key(key.to_owned())], Some(json!("surplus")));
            add(Kind::Extra, about.to_owned(), arguments);
        }
        let mut queues: Vec<(Kind, std::vec::IntoIter<Input>)> =
            all.into_iter().map(|(kind, list)| (kind, list.into_iter())).collect();
        while self.cases.len() < count && !queues.is_empty() {
            queues.retain_mut(|(kind, queue)| match queue.next() {
                Some((about, arguments)) => {
                    if self.cases.len() < count {
                        self.push(*kind, about, arguments);
                    }
                    true
                }
                None => false,
            });
        }
    }

    /// Seeded mixtures until there are enough.
    fn mixed(&mut self, count: usize, seed: u64) {
        let mut draws = Draws::from_seed(seed);
        let mut fruitless = 0;
        while self.cases.len() < count && fruitless < MIXTURES && !self.draft.places.is_empty() {
            let before = self.cases.len();
            let arguments = self.mixture(&mut draws);
            self.push(Kind::Mixed, "a mixture".to_owned(), arguments);
            fruitless = if self.cases.len() == before { fruitless + 1 } else { 0 };
        }
    }

    fn mixture(&self, draws: &mut Draws) -> Map<String, Value> {
        let mut arguments = match draws.below(2) {
            0 => self.draft.least.clone(),
            _ => self.draft.full.clone(),
        };
        for place in &self.draft.places {
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
        let all = cases(Some(&schema()), 5_000, 0);
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
        let plain = plainest(Some(&schema()));
        assert_eq!(validity(Some(&judge), &plain), Validity::Valid, "{plain:?}");
        assert_eq!(plain.len(), 2);
        let first = cases(Some(&schema()), 200, 0);
        let valid = first.iter().filter(|case| case.validity == Validity::Valid).count();
        let invalid =
            first.iter().filter(|case| matches!(case.validity, Validity::Invalid { .. })).count();
        assert!(valid > 30 && invalid > 30, "{valid} valid, {invalid} invalid");
    }

    #[test]
    fn the_same_seed_makes_the_same_cases_and_another_seed_others() {
        let text = |seed| {
            let cases = cases(Some(&schema()), 1_500, seed);
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
        #![proptest_config(ProptestConfig::with_cases(64))]

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
