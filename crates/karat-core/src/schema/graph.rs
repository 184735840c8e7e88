//! A schema as a graph: which subschemas are visited on the same value, and which on its parts.
//!
//! Built for counting work and for finding references that lead in a circle without going down into
//! the value. What a schema with such a circle means is undefined, and the number of ways through
//! several circles has no bound, so it is refused.

use std::collections::HashMap;

use jsonschema::{Uri, uri};
use karat_io::template::percent_decoded;
use serde_json::{Map, Value};

use super::error::{SchemaError, place};

/// The number of times the engine goes through the parts of a schema with `unevaluated…`: once for the verdict
/// and about twice to know what was evaluated (measured: 2.2 times in all per level).
const UNEVALUATED: u64 = 3;

/// Keywords whose value is one subschema, or a list of them, for the same value.
const SAME: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
const DEPENDENT: [&str; 2] = ["dependentSchemas", "dependencies"];
const EVERY_PROPERTY: [&str; 2] = ["additionalProperties", "unevaluatedProperties"];
const EVERY_ITEM: [&str; 4] = ["items", "contains", "additionalItems", "unevaluatedItems"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The number of a node.
pub(super) type Id = usize;

/// The graph; node 0 is the whole schema.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// True if the simple product of sizes bounds the work: no references, nothing gone through
    /// more than once.
    pub(super) simple: bool,
}

/// One subschema.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The cost of its own keywords.
    pub(super) weight: u64,
    /// The number of times the subschemas on the same value are gone through.
    pub(super) times: u64,
    pub(super) same: Vec<Id>,
    /// On the same value, if it has the property.
    pub(super) dependent: Vec<(String, Id)>,
    pub(super) property: HashMap<String, Id>,
    pub(super) every_property: Vec<Id>,
    pub(super) names: Vec<Id>,
    pub(super) prefix: Vec<Id>,
    pub(super) every_item: Vec<Id>,
    /// References to built-in meta-schemas, which are not part of the graph.
    pub(super) meta: u64,
    /// True if those lead back into the graph wherever they go down into the value.
    pub(super) meta_returns: bool,
}

impl Node {
    fn on_the_same_value(&self) -> impl Iterator<Item = Id> + '_ {
        self.same.iter().copied().chain(self.dependent.iter().map(|(_, id)| *id))
    }

    fn all(&self) -> impl Iterator<Item = Id> + '_ {
        let lists = [&self.every_property, &self.names, &self.prefix, &self.every_item];
        let parts = self.property.values().chain(lists.into_iter().flatten());
        self.on_the_same_value().chain(parts.copied())
    }
}

impl Graph {
    pub(super) fn new(schema: &Value) -> Result<Self, SchemaError> {
        let builder = Builder::new(schema);
        let nodes: Vec<Node> = builder.places.iter().map(|place| builder.node(place)).collect();
        let simple = nodes.iter().all(|node| node.times == 1) && !builder.refers;
        let graph = Self { nodes, simple };
        match graph.circle() {
            Some(at) => {
                Err(SchemaError::Circular { at: pointer_to(schema, builder.places[at].value) })
            }
            None => Ok(graph),
        }
    }

    /// A node from which the same value leads back to itself, among those that can be reached.
    fn circle(&self) -> Option<Id> {
        let mut reached = vec![false; self.nodes.len()];
        let mut waiting = vec![0];
        while let Some(id) = waiting.pop() {
            if !std::mem::replace(&mut reached[id], true) {
                waiting.extend(self.nodes[id].all());
            }
        }

        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done,
        }
        let mut states = vec![State::New; self.nodes.len()];
        for start in (0..self.nodes.len()).filter(|&id| reached[id]) {
            if states[start] != State::New {
                continue;
            }
            states[start] = State::Open;
            let successors = |id: Id| self.nodes[id].on_the_same_value().collect::<Vec<_>>();
            let mut path = vec![(start, successors(start))];
            while let Some((id, left)) = path.last_mut() {
                match left.pop() {
                    Some(next) if states[next] == State::Open => return Some(next),
                    Some(next) if states[next] == State::New => {
                        states[next] = State::Open;
                        path.push((next, successors(next)));
                    }
                    Some(_) => {}
                    None => {
                        states[*id] = State::Done;
                        path.pop();
                    }
                }
            }
        }
        None
    }
}

/// A value in the schema and the resource it belongs to.
struct Place<'s> {
    value: &'s Value,
    resource: usize,
}

/// A schema with a URI of its own: the root, and everything with `$id`.
struct Resource<'s> {
    uri: Option<Uri<String>>,
    value: &'s Value,
    /// The resource around it.
    outer: usize,
}

/// Turns JSON into nodes: one for every value in the schema, since a reference may mean any.
#[derive(Default)]
struct Builder<'s> {
    places: Vec<Place<'s>>,
    ids: HashMap<usize, Id>,
    resources: Vec<Resource<'s>>,
    by_uri: HashMap<String, Vec<usize>>,
    anchors: HashMap<&'s str, Vec<&'s Value>>,
    /// True if there is any reference.
    refers: bool,
    /// True if there is a `$recursiveAnchor`.
    recursive: bool,
}

impl<'s> Builder<'s> {
    fn new(schema: &'s Value) -> Self {
        let root = Resource { uri: uri::from_str("json-schema:///").ok(), value: schema, outer: 0 };
        let mut builder = Self { resources: vec![root], ..Self::default() };
        let mut waiting = vec![(schema, 0)];
        while let Some((value, outer)) = waiting.pop() {
            let resource = builder.resource(value, outer);
            builder.ids.insert(address(value), builder.places.len());
            builder.places.push(Place { value, resource });
            match value {
                Value::Array(items) => waiting.extend(items.iter().map(|item| (item, resource))),
                Value::Object(entries) => {
                    waiting.extend(entries.values().map(|entry| (entry, resource)));
                }
                _ => {}
            }
        }
        builder
    }

    /// Notes what names and anchors a value has; gives the resource it belongs to.
    fn resource(&mut self, value: &'s Value, outer: usize) -> usize {
        let Value::Object(entries) = value else { return outer };
        self.recursive |= entries.contains_key("$recursiveAnchor");
        self.refers |= REFERENCES.iter().any(|&word| entries.contains_key(word));
        for anchor in ["$anchor", "$dynamicAnchor"] {
            if let Some(anchor) = entries.get(anchor).and_then(Value::as_str) {
                self.anchors.entry(anchor).or_default().push(value);
            }
        }
        // Draft 4 writes `id`, and up to draft 7 a name of `#` and a word is an anchor.
        let name = ["$id", "id"].iter().find_map(|&id| entries.get(id)?.as_str());
        let Some(name) = name else { return outer };
        if let Some(anchor) = name.strip_prefix('#') {
            self.anchors.entry(anchor).or_default().push(value);
            return outer;
        }
        let base = self.resources[outer].uri.as_ref();
        let uri = base.and_then(|base| uri::resolve_against(&base.borrow(), name).ok());
        let number = self.resources.len();
        if let Some(uri) = &uri {
            self.by_uri.entry(without_fragment(uri.as_str()).to_owned()).or_default().push(number);
        }
        self.resources.push(Resource { uri, value, outer });
        number
    }

    fn node(&self, place: &Place<'s>) -> Node {
        let mut node = Node { weight: 1, times: 1, ..Node::default() };
        let Value::Object(keywords) = place.value else { return node };
        let length = |word: &str| keywords.get(word).and_then(Value::as_array).map_or(0, Vec::len);
        node.weight = (1 + length("enum") + length("required")) as u64;
        let unevaluated = |word: &&str| keywords.contains_key(*word);
        if ["unevaluatedProperties", "unevaluatedItems"].iter().any(unevaluated) {
            node.times = UNEVALUATED;
        }
        node.same.extend(SAME.iter().flat_map(|word| self.one_or_list(keywords, word)));
        for word in REFERENCES {
            if let Some(reference) = keywords.get(word).and_then(Value::as_str) {
                let mut targets = self.targets(reference, place);
                if word == "$recursiveRef" {
                    // It means whichever resource was entered first.
                    targets.extend(self.resources.iter().filter_map(|found| self.id(found.value)));
                }
                node.meta += u64::from(targets.is_empty());
                node.same.extend(targets);
            }
        }
        node.meta_returns = self.anchors.contains_key("meta") || self.recursive;
        node.dependent.extend(DEPENDENT.iter().flat_map(|word| self.entries(keywords, word)));
        node.property = self.entries(keywords, "properties").collect();
        node.every_property.extend(self.entries(keywords, "patternProperties").map(|(_, id)| id));
        let one = |word: &&str| keywords.get(*word).and_then(|value| self.id(value));
        node.every_property.extend(EVERY_PROPERTY.iter().filter_map(one));
        node.every_item.extend(EVERY_ITEM.iter().filter_map(one));
        node.names.extend(one(&"propertyNames"));
        // Up to draft 2019-09, `items` with a list means what `prefixItems` means now.
        for word in ["prefixItems", "items"] {
            if keywords.get(word).is_some_and(Value::is_array) {
                node.prefix.extend(self.one_or_list(keywords, word));
            }
        }
        node
    }

    fn id(&self, value: &Value) -> Option<Id> {
        self.ids.get(&address(value)).copied()
    }

    fn one_or_list<'a>(
        &'a self,
        keywords: &'a Map<String, Value>,
        word: &str,
    ) -> impl Iterator<Item = Id> + 'a {
        let all = match keywords.get(word) {
            Some(Value::Array(list)) => list.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        all.iter().filter_map(|value| self.id(value))
    }

    fn entries<'a>(
        &'a self,
        keywords: &'a Map<String, Value>,
        word: &str,
    ) -> impl Iterator<Item = (String, Id)> + 'a {
        let entries = keywords.get(word).and_then(Value::as_object);
        entries
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), self.id(value)?)))
    }

    /// The target of a reference; none for a built-in meta-schema. Where it could mean one of
    /// several, all of them, so that counts stay upper bounds.
    fn targets(&self, reference: &str, place: &Place<'s>) -> Vec<Id> {
        let (_, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let fragment = percent_decoded(fragment);
        let own = &self.resources[place.resource];
        // Up to draft 7, `$id` next to `$ref` counts for nothing.
        let beside = std::ptr::eq(own.value, place.value).then_some(own.outer);
        let mut found = Vec::new();
        for base in [Some(place.resource), beside].into_iter().flatten() {
            let base = &self.resources[base];
            if reference.starts_with('#') {
                found.extend(self.part(base, &fragment));
                continue;
            }
            let uri = base.uri.as_ref();
            let uri = uri.and_then(|uri| uri::resolve_against(&uri.borrow(), reference).ok());
            let named = uri.and_then(|uri| self.by_uri.get(without_fragment(uri.as_str())));
            for &resource in named.into_iter().flatten() {
                found.extend(self.part(&self.resources[resource], &fragment));
            }
        }
        found.extend(self.anchors.get(fragment.as_str()).into_iter().flatten());
        let mut ids: Vec<Id> = found.into_iter().filter_map(|value| self.id(value)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// The target of a fragment other than an anchor in a resource.
    fn part(&self, resource: &Resource<'s>, fragment: &str) -> Option<&'s Value> {
        resource.value.pointer(fragment)
    }
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

fn without_fragment(uri: &str) -> &str {
    uri.split('#').next().unwrap_or_default()
}

/// The JSON pointer to a part of a schema.
fn pointer_to(schema: &Value, part: &Value) -> String {
    let mut waiting = vec![(schema, String::new())];
    while let Some((value, pointer)) = waiting.pop() {
        if std::ptr::eq(value, part) {
            return place(&pointer);
        }
        match value {
            Value::Array(items) => {
                let items = items.iter().enumerate();
                waiting.extend(items.map(|(at, item)| (item, format!("{pointer}/{at}"))));
            }
            Value::Object(entries) => waiting.extend(entries.iter().map(|(key, entry)| {
                (entry, format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")))
            })),
            _ => {}
        }
    }
    place("")
}
