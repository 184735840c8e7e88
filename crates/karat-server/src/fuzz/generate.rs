//! The inputs for one tool, from its input schema.
//!
//! First the inputs that can be listed: the required and all possible arguments, every edge of every
//! parameter, every wrong type, missing and surplus fields. Parameters are found inside objects, lists
//! and maps and below every alternative of a schema, each within arguments in which it has a meaning.
//! The kinds take turns, and so do the parameters within a kind, so that even a few cases have some of
//! each. The rest is filled with seeded mixtures. The schema validator alone decides whether an input
//! matches, and no input is made twice.

use std::collections::{BTreeMap, HashSet, VecDeque};

use karat_core::dataset::Digest;
use karat_core::schema::Compiled;
use karat_metrics::stats::random::Draws;
use serde_json::{Map, Value, json};

use super::case::{COERCION, Case, InputKind as Kind, Validity};
use super::coercion::is_coercion;
use super::place::{self, Step, with};
use super::repair::{Bases, Repair};
use super::shape::{Plain, Shapes};
use super::values::{self, Extent, Reach, Try};

/// The number of places of one schema that are filled, and their depth.
const MAX_PLACES: usize = 64;
const MAX_DEPTH: usize = 5;
/// The number of base arguments, and of parts of the schema that are searched for them.
const MAX_BASES: usize = 24;
const MAX_PARTS: usize = 256;
/// The number of huge inputs of one tool, and of the places they are put in.
const MAX_HUGE: usize = 6;
const HUGE_PLACES: usize = 3;
/// The number of duplicate mixtures after which there are assumed to be no more.
const MAX_DUPLICATES: usize = 20;

/// The inputs for a tool.
pub(super) struct Plan {
    /// The inputs.
    pub(super) cases: Vec<Case>,
    /// Obstacles to measuring.
    pub(super) warnings: Vec<String>,
    /// The names of known values that the schema forbids.
    pub(super) unused: Vec<String>,
    /// True if the schema is usable and still no input could be made that matches it.
    pub(super) none_valid: bool,
}

/// The inputs for a schema: `count` of them, or fewer if there are not that many.
#[must_use]
pub fn cases(schema: Option<&Value>, count: usize, seed: u64) -> Vec<Case> {
    plan(schema, &Map::new(), count, seed).cases
}

/// Plans `count` inputs for a tool, or fewer if there are not that many. Parameters that an input does not
/// vary have their `known` value.
pub(super) fn plan(
    schema: Option<&Value>,
    known: &Map<String, Value>,
    count: usize,
    seed: u64,
) -> Plan {
    let open = json!({"type": "object"});
    let mut warnings = Vec::new();
    let validator = match schema.map(Compiled::new) {
        None => None,
        Some(Ok(validator)) => Some(validator),
        Some(Err(error)) => {
            warnings.push(format!(
                "its input schema is unusable, so no input counts as valid or as invalid: {error}"
            ));
            None
        }
    };
    let schema = schema.filter(|_| validator.is_some()).unwrap_or(&open);
    let shapes = Shapes::new(schema);
    let repair = Repair { shapes: &shapes, schema, validator: validator.as_ref(), known };
    let Bases { least, full, is_valid, unused } = repair.bases();
    let draft = Draft::of(&repair, least, full);
    let mut maker =
        Maker { validator: validator.as_ref(), schema, seen: HashSet::new(), cases: Vec::new() };
    maker.listed(&draft, count);
    maker.mixed(&draft, count, seed);
    let cases = maker.cases;
    let invalid = |case: &Case| matches!(case.validity, Validity::Invalid { .. });
    let none_valid = !is_valid && !cases.is_empty() && cases.iter().all(invalid);
    if none_valid {
        warnings.push(
            "no input that matches its schema could be generated, so only refusals were tested; give \
             valid values with --set, or as examples in the schema"
                .to_owned(),
        );
    }
    Plan { cases, warnings, unused, none_valid }
}

/// The simplest arguments that match a schema, as far as they can be made, with the known values.
pub(crate) fn plainest(schema: Option<&Value>, known: &Map<String, Value>) -> Map<String, Value> {
    let open = json!({"type": "object"});
    let schema = schema.unwrap_or(&open);
    let shapes = Shapes::new(schema);
    let validator = Compiled::new(schema).ok();
    Repair { shapes: &shapes, schema, validator: validator.as_ref(), known }.least()
}

/// Returns whether arguments match a schema.
pub(super) fn validity(
    validator: Option<&Compiled>,
    schema: Option<&Value>,
    arguments: &Map<String, Value>,
) -> Validity {
    let Some(validator) = validator else { return Validity::Unclear };
    let arguments = Value::Object(arguments.clone());
    let found = validator.check(&arguments);
    if found.not_checked().is_some() || (found.valid && !found.valid_with_formats) {
        return Validity::Unclear;
    }
    match found.errors.first() {
        _ if found.valid => Validity::Valid,
        Some(first) => Validity::Invalid {
            keyword: match schema {
                Some(schema)
                    if found.errors.iter().all(|one| is_coercion(schema, &arguments, one)) =>
                {
                    COERCION.to_owned()
                }
                _ => first.keyword.clone(),
            },
            at: first.schema_path.clone(),
            why: match first.instance_path.as_str() {
                "" => first.message.clone(),
                place => format!("{place}: {}", first.message),
            },
        },
        None => Validity::Unclear,
    }
}

/// A place in the arguments, with the values to try there.
struct Place {
    steps: Vec<Step>,
    /// The number of the base arguments that contain it.
    base: usize,
    tries: Vec<Try>,
    /// True if the object around it requires it.
    required: bool,
}

/// The base arguments of a schema and the places in them.
struct Draft {
    least: Map<String, Value>,
    /// The full arguments first, then those with another alternative in some place.
    bases: Vec<Map<String, Value>>,
    places: Vec<Place>,
}

/// A part of the schema that is still to be searched.
struct Part {
    schema: Value,
    base: usize,
    steps: Vec<Step>,
}

impl Draft {
    fn of(repair: &Repair<'_>, least: Map<String, Value>, full: Map<String, Value>) -> Draft {
        let mut draft = Draft { least, bases: vec![full], places: Vec::new() };
        let root = Part { schema: repair.schema.clone(), base: 0, steps: Vec::new() };
        let mut parts = VecDeque::from([root]);
        for _ in 0..MAX_PARTS {
            let Some(part) = parts.pop_front() else { break };
            draft.look(repair, &part, &mut parts);
        }
        draft
    }

    /// Finds the places inside a part, below each of its alternatives.
    fn look(&mut self, repair: &Repair<'_>, part: &Part, parts: &mut VecDeque<Part>) {
        if part.steps.len() >= MAX_DEPTH {
            return;
        }
        for (number, way) in repair.shapes.alternatives(&part.schema).iter().enumerate() {
            let Some(base) = self.base_of(repair, part, way, number) else { continue };
            let Some(value) = self.value(base, &part.steps) else { continue };
            for (step, schema, required) in inner(way, &value) {
                if self.places.len() >= MAX_PLACES {
                    return;
                }
                let mut steps = part.steps.clone();
                steps.push(step);
                // A value that was left out for another gets base arguments of its own.
                let base = match place::at(&self.bases[base], &steps) {
                    Some(_) => base,
                    None => values::base(repair.shapes, &schema, Extent::All)
                        .and_then(|value| self.rebased(repair, base, &steps, value))
                        .unwrap_or(base),
                };
                let reach =
                    if self.places.len() < HUGE_PLACES { Reach::Huge } else { Reach::Small };
                let tries = values::edges(repair.shapes, &schema, reach);
                self.places.push(Place { steps: steps.clone(), base, tries, required });
                parts.push_back(Part { schema, base, steps });
            }
        }
    }

    /// The base arguments in which a part has this alternative.
    fn base_of(
        &mut self,
        repair: &Repair<'_>,
        part: &Part,
        way: &Plain,
        number: usize,
    ) -> Option<usize> {
        let is = self.value(part.base, &part.steps);
        let fits = match values::kind_of(way) {
            Some("object") => is.as_ref().is_some_and(Value::is_object),
            Some("array") => is.as_ref().is_some_and(Value::is_array),
            _ => return None,
        };
        if fits && number == 0 {
            return Some(part.base);
        }
        let value = values::of_way(repair.shapes, way, Extent::All)?;
        match inner(way, &value).is_empty() {
            true => None,
            false => self.rebased(repair, part.base, &part.steps, value),
        }
    }

    /// Base arguments with this value in that place, if they can match the schema.
    fn rebased(
        &mut self,
        repair: &Repair<'_>,
        base: usize,
        steps: &[Step],
        value: Value,
    ) -> Option<usize> {
        let (list, object) = (value.is_array(), value.is_object());
        let changed = match steps {
            [] => repair.filled(Some(value)),
            _ => with(&self.bases[base], steps, Some(value))?,
        };
        let repaired = repair.repaired(changed)?;
        let there = |value: &Value| value.is_array() == list && value.is_object() == object;
        if !steps.is_empty() && !place::at(&repaired, steps).is_some_and(there) {
            return None;
        }
        if let Some(known) = self.bases.iter().position(|known| *known == repaired) {
            // At the root they are nothing new; elsewhere they were made for another place.
            return (!steps.is_empty()).then_some(known);
        }
        if self.bases.len() >= MAX_BASES {
            return None;
        }
        self.bases.push(repaired);
        Some(self.bases.len() - 1)
    }

    fn value(&self, base: usize, steps: &[Step]) -> Option<Value> {
        match steps {
            [] => Some(Value::Object(self.bases[base].clone())),
            _ => place::at(&self.bases[base], steps).cloned(),
        }
    }
}

/// The values directly inside a value: the step, the schema, and whether it is required.
fn inner(way: &Plain, value: &Value) -> Vec<(Step, Value, bool)> {
    let required = values::required(way);
    let mut found = Vec::new();
    let properties = way.get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        let required = required.contains(&name.as_str());
        found.push((Step::Key(name.clone()), schema.clone(), required));
    }
    // One field with an invented name represents all of them, and so does one entry of a list.
    let is_invented = |name: &&String| !properties.is_some_and(|known| known.contains_key(*name));
    let mut fields = value.as_object().into_iter().flat_map(Map::keys);
    if let Some(name) = fields.rfind(is_invented)
        && let Some(schema) = values::property(way, name).filter(|schema| schema.is_object())
    {
        found.push((Step::Key(name.clone()), schema.clone(), false));
    }
    let prefix = way.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
    let length = value.as_array().map_or(0, Vec::len);
    for at in 0..length.min(prefix + 1) {
        if let Some(schema) = values::entry(way, at).filter(|schema| schema.is_object()) {
            found.push((Step::Entry(at), schema.clone(), true));
        }
    }
    found
}

/// An input that is not made yet: all of them together would need much memory.
struct Job<'d> {
    about: String,
    change: Change<'d>,
}

/// A change of base arguments.
enum Change<'d> {
    /// No arguments at all.
    Nothing,
    /// These arguments as they are.
    Whole(&'d Map<String, Value>),
    /// Without the value in this place.
    Without(&'d Place),
    /// With this value in this place.
    With(&'d Place, &'d Value),
    /// With a surplus field, in the object in this place or at the top.
    Surplus(Option<&'d Place>, &'static str),
}

impl Change<'_> {
    fn made(self, draft: &Draft) -> Option<Map<String, Value>> {
        let base = |place: &Place| &draft.bases[place.base];
        match self {
            Change::Nothing => Some(Map::new()),
            Change::Whole(arguments) => Some(arguments.clone()),
            Change::Without(place) => with(base(place), &place.steps, None),
            Change::With(place, value) => with(base(place), &place.steps, Some(value.clone())),
            Change::Surplus(place, key) => {
                let mut steps = place.map_or_else(Vec::new, |place| place.steps.clone());
                steps.push(Step::Key(key.to_owned()));
                with(place.map_or(&draft.bases[0], base), &steps, Some(json!("surplus")))
            }
        }
    }
}

/// Surplus fields.
const SURPLUS: [(&str, &str); 5] = [
    ("karat_extra", "a surplus field"),
    ("__proto__", "a field named __proto__"),
    ("constructor", "a field named constructor"),
    ("", "a field without a name"),
    ("\u{202e}👍", "a field with a strange name"),
];

struct Maker<'a> {
    validator: Option<&'a Compiled>,
    schema: &'a Value,
    seen: HashSet<Digest>,
    cases: Vec<Case>,
}

impl Maker<'_> {
    fn push(&mut self, kind: Kind, about: String, arguments: Map<String, Value>) {
        let text = Value::Object(arguments.clone()).to_string();
        if self.seen.insert(Digest::of(text.as_bytes())) {
            let validity = validity(self.validator, Some(self.schema), &arguments);
            self.cases.push(Case { kind, about, arguments, validity });
        }
    }

    /// Makes the inputs that can be listed, with the kinds taking turns.
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
                if let Some(arguments) = change.made(draft) {
                    self.push(*kind, about, arguments);
                }
                true
            });
        }
    }

    /// Adds seeded mixtures until there are enough inputs.
    fn mixed(&mut self, draft: &Draft, count: usize, seed: u64) {
        let mut draws = Draws::from_seed(seed);
        let mut duplicates = 0;
        while self.cases.len() < count && duplicates < MAX_DUPLICATES && !draft.places.is_empty() {
            let before = self.cases.len();
            let arguments = mixture(draft, &mut draws);
            self.push(Kind::Mixed, "a mixture".to_owned(), arguments);
            duplicates = if self.cases.len() == before { duplicates + 1 } else { 0 };
        }
    }
}

/// Changes several places at once: about half of a few, and about two of many, so that wrong values are
/// not hidden behind others.
fn mixture(draft: &Draft, draws: &mut Draws) -> Map<String, Value> {
    let (base, mut arguments) = match draws.below(2) {
        0 => (0, draft.least.clone()),
        _ => {
            let many = draft.bases.len();
            let base = if many > 1 { draws.index(many) } else { 0 };
            (base, draft.bases[base].clone())
        }
    };
    let here: Vec<&Place> =
        draft.places.iter().filter(|place| place.base == 0 || place.base == base).collect();
    for place in &here {
        let new = match draws.index(8.max(2 * here.len())) {
            4 => None,
            5 => Some(json!(scribble(draws))),
            6 | 7 => match place.tries.get(draws.index(place.tries.len())) {
                Some(one) if one.kind != Kind::Huge => Some(one.value.clone()),
                _ => continue,
            },
            _ => continue,
        };
        if let Some(changed) = with(&arguments, &place.steps, new) {
            arguments = changed;
        }
    }
    arguments
}

/// The inputs of one kind, by round and place.
type Turns<'d> = BTreeMap<(usize, usize), Vec<Job<'d>>>;

/// All inputs that can be listed, by kind, with the places taking turns.
fn jobs<'d>(draft: &'d Draft, everywhere: &'d [Try]) -> BTreeMap<Kind, Vec<Job<'d>>> {
    let mut all: BTreeMap<Kind, Turns<'d>> = BTreeMap::new();
    let mut add = |kind: Kind, turn: (usize, usize), about: String, change: Change<'d>| {
        let turns = all.entry(kind).or_default();
        turns.entry(turn).or_default().push(Job { about, change });
    };
    let first = (0, 0);
    let least = Change::Whole(&draft.least);
    add(Kind::Edge, first, "only the required arguments".to_owned(), least);
    for (number, base) in draft.bases.iter().enumerate() {
        let about =
            if number == 0 { "all arguments" } else { "all arguments of another alternative" };
        add(Kind::Edge, first, about.to_owned(), Change::Whole(base));
    }
    add(Kind::Missing, first, "no arguments".to_owned(), Change::Nothing);
    for (key, about) in SURPLUS {
        add(Kind::Extra, first, about.to_owned(), Change::Surplus(None, key));
    }
    let mut huge = 0;
    for (number, place) in draft.places.iter().enumerate() {
        let name = place::name(&place.steps);
        let (kind, whether) = match place.required {
            true => (Kind::Missing, "required"),
            false => (Kind::Edge, "optional"),
        };
        let about = format!("without {name}, which is {whether}");
        add(kind, (0, number), about, Change::Without(place));
        // A surplus field inside it, if it is an object.
        let change = Change::Surplus(Some(place), SURPLUS[0].0);
        add(Kind::Extra, (0, number), format!("{name} with a surplus field"), change);
        for (kind, tries) in by_kind(place.tries.iter().chain(everywhere)) {
            for (at, one) in tries.iter().enumerate() {
                huge += usize::from(kind == Kind::Huge);
                if kind == Kind::Huge && huge > MAX_HUGE {
                    continue;
                }
                let turn = (round(kind, at, tries.len(), number), number);
                add(kind, turn, format!("{name}: {}", one.about), Change::With(place, &one.value));
            }
        }
    }
    let in_order = |turns: Turns<'d>| turns.into_values().flatten().collect();
    all.into_iter().map(|(kind, turns)| (kind, in_order(turns))).collect()
}

fn by_kind<'d>(tries: impl Iterator<Item = &'d Try>) -> BTreeMap<Kind, Vec<&'d Try>> {
    let mut found: BTreeMap<Kind, Vec<&Try>> = BTreeMap::new();
    for one in tries {
        found.entry(one.kind).or_default().push(one);
    }
    found
}

/// The round of a try. Where all places have the same tries each place begins with another one, so
/// that even a few cases have many of them.
fn round(kind: Kind, at: usize, of: usize, place: usize) -> usize {
    match kind {
        Kind::Type | Kind::Unicode | Kind::Injection => (at + of - place % of.max(1)) % of.max(1),
        _ => at,
    }
}

/// A short text of characters from all of Unicode.
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
    fn a_few_cases_have_some_of_each_kind() {
        let few = cases(Some(&schema()), 20, 0);
        assert_eq!(few.len(), 20);
        assert_eq!(kinds(&few).len(), 9, "{:?}", kinds(&few));
        assert!(kinds(&cases(Some(&schema()), 2_000, 0)).contains(&Kind::Mixed));
    }

    #[test]
    fn the_edges_of_every_parameter_are_tried() {
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
    fn the_simplest_arguments_match_the_schema() {
        let judge = Compiled::new(&schema()).unwrap();
        let plain = plainest(Some(&schema()), &Map::new());
        assert_eq!(validity(Some(&judge), None, &plain), Validity::Valid, "{plain:?}");
        assert_eq!(plain.len(), 2);
        let first = cases(Some(&schema()), 200, 0);
        let valid = first.iter().filter(|case| case.validity == Validity::Valid).count();
        let invalid =
            first.iter().filter(|case| matches!(case.validity, Validity::Invalid { .. })).count();
        assert!(valid > 30 && invalid > 30, "{valid} valid, {invalid} invalid");
    }

    #[test]
    fn parameters_that_are_not_varied_have_their_known_value() {
        let known = json!({"name": "good", "elsewhere": 1});
        let known = known.as_object().unwrap();
        assert_eq!(plainest(Some(&schema()), known)["name"], "good");
        let all = plan(Some(&schema()), known, 300, 0).cases;
        let around = all.iter().filter(|case| case.arguments.get("name") == Some(&json!("good")));
        assert!(around.count() > 150);
        assert!(all.iter().all(|case| !case.arguments.contains_key("elsewhere")));
    }

    #[test]
    fn the_same_seed_gives_the_same_cases_and_another_seed_others() {
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
    fn no_case_is_made_twice_and_an_unusable_schema_gives_cases() {
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

    /// Returns whether some case has this value at this JSON pointer, with this validity.
    fn tried(cases: &[Case], pointer: &str, value: &Value, valid: bool) -> bool {
        cases.iter().any(|case| {
            let whole = Value::Object(case.arguments.clone());
            whole.pointer(pointer) == Some(value) && (case.validity == Validity::Valid) == valid
        })
    }

    fn one(property: &Value) -> Value {
        json!({"type": "object", "properties": {"p": property}, "required": ["p"]})
    }

    #[test]
    fn the_entries_of_lists_and_maps_are_varied() {
        let entry = json!({"type": "object", "required": ["k", "s"], "properties": {
            "k": {"type": "integer", "maximum": 5}, "s": {"type": "string"}}});
        let list = cases(Some(&one(&json!({"type": "array", "items": entry}))), 200, 0);
        assert!(tried(&list, "/p/0/k", &json!(5), true));
        assert!(tried(&list, "/p/0/k", &json!(6), false));
        assert!(tried(&list, "/p/0/k", &json!(-1), true));
        assert!(tried(&list, "/p/0/s", &json!("İßŉ"), true));
        let map = one(&json!({"type": "object", "additionalProperties": {"type": "integer"}}));
        let map = cases(Some(&map), 200, 0);
        assert!(
            tried(&map, "/p/key", &json!(0), true) && tried(&map, "/p/key", &json!("7"), false)
        );
        let pair = json!({"type": "array", "items": false, "minItems": 2,
            "prefixItems": [{"type": "string"}, {"type": "integer", "minimum": 3}]});
        let pair = cases(Some(&one(&pair)), 200, 0);
        assert!(tried(&pair, "/p/1", &json!(3), true) && tried(&pair, "/p/1", &json!(2), false));
    }

    #[test]
    fn every_alternative_is_varied() {
        let with = |kind: &str, name: &str| {
            json!({"type": "object", "required": ["kind", name], "additionalProperties": false,
                "properties": {"kind": {"const": kind}, name: {"type": "integer", "maximum": 5}}})
        };
        for union in ["anyOf", "oneOf"] {
            let ways = json!({union: [{"type": "null"}, with("a", "x"), with("b", "y"),
                {"type": "array", "items": {"type": "integer", "maximum": 5}}]});
            let all = cases(Some(&one(&ways)), 200, 0);
            for place in ["/p/x", "/p/y", "/p/0"] {
                assert!(tried(&all, place, &json!(5), true), "{union} {place}");
                assert!(tried(&all, place, &json!(6), false), "{union} {place}");
            }
            let mut root = json!({union: [with("a", "x"), with("b", "y")]});
            root["type"] = json!("object");
            let all = cases(Some(&root), 200, 0);
            for place in ["/x", "/y"] {
                assert!(tried(&all, place, &json!(5), true), "{union} {place}");
                assert!(tried(&all, place, &json!(6), false), "{union} {place}");
            }
        }
    }

    #[test]
    fn parameters_that_exclude_each_other_are_tried_separately() {
        let schema = json!({"type": "object", "properties": {
            "id": {"type": "integer", "maximum": 5}, "name": {"type": "string", "maxLength": 3}},
            "oneOf": [{"required": ["id"]}, {"required": ["name"]}]});
        let all = cases(Some(&schema), 200, 0);
        assert!(tried(&all, "/id", &json!(5), true) && tried(&all, "/name", &json!("aaa"), true));
    }

    #[test]
    fn every_parameter_has_its_turn_in_a_few_cases() {
        let names: Vec<String> = (0..8).map(|number| format!("n{number}")).collect();
        let properties: Map<String, Value> =
            names.iter().map(|name| (name.clone(), json!({"type": "integer"}))).collect();
        let inner = json!({"type": "object", "properties": properties});
        let schema = json!({"type": "object", "properties": {"outer": inner}});
        let all = cases(Some(&schema), 200, 0);
        for name in &names {
            let of = |kind: Kind| {
                let start = format!("outer.{name}: ");
                all.iter()
                    .filter(|case| case.kind == kind && case.about.starts_with(&start))
                    .count()
            };
            assert!(of(Kind::Type) >= 2 && of(Kind::Edge) >= 2, "{name}");
        }
    }

    #[test]
    fn a_schema_that_no_input_matches_is_reported() {
        let nothing = one(&json!({"type": "integer", "minimum": 5, "maximum": 3}));
        let plan = plan(Some(&nothing), &Map::new(), 100, 0);
        assert!(plan.none_valid && plan.warnings[0].contains("no input"), "{:?}", plan.warnings);
        let known = json!({"name": 7});
        let good = super::plan(Some(&schema()), known.as_object().unwrap(), 100, 0);
        assert!(!good.none_valid);
        assert_eq!(good.unused, ["name"]);
        let unusable = super::plan(Some(&json!({"type": "objekt"})), &Map::new(), 100, 0);
        assert!(!unusable.none_valid && unusable.warnings[0].contains("is unusable"));
    }

    /// Schemas as servers write them, and some that make no sense.
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
        fn the_validity_of_every_case_is_that_of_the_validator(schema in any_schema(), seed in any::<u64>()) {
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
