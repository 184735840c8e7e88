//! The amount of work a schema makes on a value, counted before the engine starts.
//!
//! A page of schema can ask for more steps than there are atoms: definitions that each refer twice
//! to the next, or `unevaluatedProperties` inside `unevaluatedProperties`. The engine has no limit of
//! its own, so the steps are counted first: the number of visits of each (subschema, value) pair of
//! the [`Graph`] is summed with memory, which takes no longer than there are pairs. The count is an
//! upper bound, not a prediction: keywords that need not be looked at are counted.

use std::collections::HashMap;

use serde_json::Value;

use super::graph::{Graph, Id};

/// Visits that are allowed on any value, and for each part of the value on top. Visiting takes the
/// engine from 50 ns to 7 µs.
const VISITS: u64 = 1_000_000;
const VISITS_PER_VALUE: u64 = 4;
/// Subschemas that may be entered inside one another: three for each level of the deepest value. Each took
/// up to 1 KiB of stack in release and 4 KiB in debug builds.
const NESTED: usize = 400;
/// Visits for a reference to a published meta-schema, per part of the value.
const META_SCHEMA: u64 = 200;

/// Checking would take too long or too deep a stack.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMuch;

impl Graph {
    /// Returns whether a value of this many parts can be checked.
    pub(super) fn work(&self, value: &Value, parts: usize) -> Result<(), TooMuch> {
        let parts = parts as u64;
        let limit = VISITS.saturating_add(VISITS_PER_VALUE.saturating_mul(parts));
        let weight: u64 = self.nodes.iter().map(|node| node.weight).sum();
        if self.simple && weight.saturating_mul(parts) <= limit {
            return Ok(());
        }
        let mut count = Count { graph: self, limit, known: HashMap::new() };
        count.visits(0, value, 0).map(drop)
    }
}

/// Counts visits, each pair of subschema and value once.
struct Count<'g> {
    graph: &'g Graph,
    limit: u64,
    /// By subschema and address of the value, which stays where it is meanwhile.
    known: HashMap<(Id, usize), u64>,
}

impl Count<'_> {
    fn visits(&mut self, id: Id, value: &Value, nested: usize) -> Result<u64, TooMuch> {
        let pair = (id, std::ptr::from_ref(value).addr());
        if let Some(&visits) = self.known.get(&pair) {
            return Ok(visits);
        }
        if nested > NESTED {
            return Err(TooMuch);
        }
        let graph = self.graph;
        let node = &graph.nodes[id];
        let mut visits = 0;
        for &same in &node.same {
            self.add(&mut visits, same, value, nested)?;
        }
        if let Value::Object(entries) = value {
            for (_, dependent) in node.dependent.iter().filter(|(key, _)| entries.contains_key(key))
            {
                self.add(&mut visits, *dependent, value, nested)?;
            }
        }
        visits = visits.saturating_mul(node.times) + node.weight;
        match value {
            Value::Object(entries) => {
                for (key, entry) in entries {
                    if let Some(&property) = node.property.get(key) {
                        self.add(&mut visits, property, entry, nested)?;
                    }
                    for &every in &node.every_property {
                        self.add(&mut visits, every, entry, nested)?;
                    }
                    for &name in &node.names {
                        // Names are strings; any value without parts costs the same.
                        self.add(&mut visits, name, &Value::Null, nested)?;
                    }
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    if let Some(&prefix) = node.prefix.get(at) {
                        self.add(&mut visits, prefix, item, nested)?;
                    }
                    for &every in &node.every_item {
                        self.add(&mut visits, every, item, nested)?;
                    }
                }
            }
            _ => {}
        }
        if node.meta > 0 {
            // Meta-schemas call what the schema anchors as `meta`; then it is unknown.
            if node.meta_returns {
                return Err(TooMuch);
            }
            let parts =
                super::size::measure(value, usize::MAX).map_or(0, |size| size.values as u64);
            visits = visits.saturating_add(node.meta * META_SCHEMA * parts);
        }
        if visits > self.limit {
            return Err(TooMuch);
        }
        self.known.insert(pair, visits);
        Ok(visits)
    }

    fn add(&mut self, sum: &mut u64, id: Id, value: &Value, nested: usize) -> Result<(), TooMuch> {
        *sum = sum.saturating_add(self.visits(id, value, nested + 1)?);
        if *sum > self.limit { Err(TooMuch) } else { Ok(()) }
    }
}
