//! JSON written small, and readable piece by piece: a text that comes again is written once, and so are
//! the names of the fields of objects that are alike.
//!
//! Nothing is lost, and nothing in a report can be mistaken for the packing: every list begins with a
//! number that says how to read it, and there are no objects. data.js reads it, and only what it needs.
//!
//! | begins with | then | is |
//! | --- | --- | --- |
//! | 0 | values | a list |
//! | 1 | values, numbers being places in `texts` | a list without numbers |
//! | 2 | place in `names`, values | an object |
//! | 3 | place in `names`, values as under 1 | an object without numbers |
//! | 4 | place in `names`, a list for each name | a list of objects with these names |
//! | 5 | length, value, then place and value of each exception | a list of mostly the same |
//! | 6 | place in `texts` | a text |

use std::cmp::Reverse;
use std::collections::HashMap;

use serde::{Serialize, Serializer};
use serde_json::Value;

const LIST: usize = 0;
const OBJECT: usize = 2;
const TABLE: usize = 4;
const SAME: usize = 5;
const TEXT: usize = 6;

/// What a place in `texts` takes up, roughly.
const PLACE: usize = 5;

/// A packed value.
pub(super) enum Packed<'a> {
    /// As it is: null, true, false, a number or a text that does not come again.
    Plain(&'a Value),
    /// A number of the packing.
    Code(usize),
    List(Vec<Packed<'a>>),
}

impl Serialize for Packed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Packed::Plain(value) => value.serialize(serializer),
            Packed::Code(code) => code.serialize(serializer),
            Packed::List(list) => list.serialize(serializer),
        }
    }
}

/// Packs values that share their texts and names.
pub(super) struct Packer<'a> {
    texts: Vec<&'a str>,
    places: HashMap<&'a str, usize>,
    names: Vec<Vec<&'a str>>,
    known: HashMap<Vec<&'a str>, usize>,
}

impl<'a> Packer<'a> {
    /// Looks through all that will be packed.
    pub(super) fn over(values: impl IntoIterator<Item = &'a Value>) -> Packer<'a> {
        let mut counts = HashMap::new();
        for value in values {
            count(value, &mut counts);
        }
        let mut repeated: Vec<(&str, usize)> = counts
            .into_iter()
            .filter(|(text, count)| (count - 1) * (text.len() + 3) > count * PLACE)
            .collect();
        // The most frequent have the shortest numbers.
        repeated.sort_by_key(|(text, count)| (Reverse(*count), *text));
        let texts: Vec<&str> = repeated.into_iter().map(|(text, _)| text).collect();
        let places = texts.iter().enumerate().map(|(place, text)| (*text, place)).collect();
        Packer { texts, places, names: Vec::new(), known: HashMap::new() }
    }

    /// The texts and lists of names to which the packed values refer.
    pub(super) fn into_parts(self) -> (Vec<&'a str>, Vec<Vec<&'a str>>) {
        (self.texts, self.names)
    }

    pub(super) fn pack(&mut self, value: &'a Value) -> Packed<'a> {
        match value {
            Value::String(text) => match self.places.get(text.as_str()) {
                Some(place) => Packed::List(vec![Packed::Code(TEXT), Packed::Code(*place)]),
                None => Packed::Plain(value),
            },
            Value::Array(values) => self.list(&values.iter().collect::<Vec<_>>()),
            Value::Object(fields) => {
                let names = self.place_of(fields.keys().map(String::as_str).collect());
                self.cells(OBJECT, Some(names), &fields.values().collect::<Vec<_>>())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Packed::Plain(value),
        }
    }

    /// A list, in the form that suits it.
    pub(super) fn list(&mut self, values: &[&'a Value]) -> Packed<'a> {
        if let Some(names) = common_names(values) {
            let columns: Vec<Vec<&'a Value>> =
                names.iter().map(|name| values.iter().map(|row| &row[*name]).collect()).collect();
            let mut table = vec![Packed::Code(TABLE), Packed::Code(self.place_of(names))];
            table.extend(columns.iter().map(|column| self.list(column)));
            return Packed::List(table);
        }
        match majority(values) {
            Some(usual) => {
                let others = values.iter().enumerate().filter(|(_, value)| !same(value, usual));
                self.mostly(values.len(), usual, others.map(|(place, value)| (place, *value)))
            }
            None => self.cells(LIST, None, values),
        }
    }

    /// A list of this length with the same value but for some places.
    pub(super) fn mostly(
        &mut self,
        length: usize,
        usual: &'a Value,
        others: impl IntoIterator<Item = (usize, &'a Value)>,
    ) -> Packed<'a> {
        let mut list = vec![Packed::Code(SAME), Packed::Code(length), self.pack(usual)];
        for (place, value) in others {
            list.extend([Packed::Code(place), self.pack(value)]);
        }
        Packed::List(list)
    }

    /// Values after their head. Where none is a number, numbers can stand for texts.
    fn cells(&mut self, kind: usize, names: Option<usize>, values: &[&'a Value]) -> Packed<'a> {
        let coded = !values.iter().any(|value| value.is_number());
        let mut list = vec![Packed::Code(kind + usize::from(coded))];
        list.extend(names.map(Packed::Code));
        for value in values {
            let place = value.as_str().and_then(|text| self.places.get(text));
            list.push(match place {
                Some(place) if coded => Packed::Code(*place),
                _ => self.pack(value),
            });
        }
        Packed::List(list)
    }

    fn place_of(&mut self, names: Vec<&'a str>) -> usize {
        if let Some(place) = self.known.get(&names) {
            return *place;
        }
        let place = self.names.len();
        self.names.push(names.clone());
        self.known.insert(names, place);
        place
    }
}

fn count<'a>(value: &'a Value, counts: &mut HashMap<&'a str, usize>) {
    match value {
        Value::String(text) => *counts.entry(text).or_default() += 1,
        Value::Array(values) => values.iter().for_each(|value| count(value, counts)),
        Value::Object(fields) => fields.values().for_each(|value| count(value, counts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The names that all the objects of a list have, in the same order.
fn common_names<'a>(values: &[&'a Value]) -> Option<Vec<&'a str>> {
    let first: Vec<&str> = values.first()?.as_object()?.keys().map(String::as_str).collect();
    let alike =
        |value: &&Value| value.as_object().is_some_and(|row| row.keys().eq(first.iter().copied()));
    (values.len() > 1 && !first.is_empty() && values.iter().all(alike)).then_some(first)
}

/// Whether two values are written alike: minus zero is equal to zero, but not the same.
fn same(one: &Value, other: &Value) -> bool {
    let bits = |value: &Value| value.as_f64().map(f64::to_bits);
    one == other && bits(one) == bits(other)
}

/// The value that stands so often in a list that only the others need to be written.
fn majority<'a>(values: &[&'a Value]) -> Option<&'a Value> {
    // Whatever fills more than half of a list is left when different values cancel each other out.
    let mut left: Option<&Value> = None;
    let mut votes = 0_usize;
    for value in values.iter().copied() {
        let nested = value.is_array() || value.is_object();
        match left {
            Some(usual) if !nested && same(usual, value) => votes += 1,
            _ if nested || votes > 0 => votes = votes.saturating_sub(1),
            _ => (left, votes) = (Some(value), 1),
        }
    }
    let usual = left?;
    let others = values.iter().filter(|value| !same(value, usual)).count();
    let size = match usual {
        // It may be one of the texts that are written once.
        Value::String(text) => text.len().min(PLACE),
        other => other.to_string().len(),
    };
    let place = values.len().to_string().len();
    let saved = (values.len() - others) * (size + 1);
    (saved > others * (place + 1) + PLACE * 2).then_some(usual)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The packed value with the texts and names it refers to.
    fn packed(value: &Value) -> Value {
        let mut packer = Packer::over([value]);
        let packed = json!(packer.pack(value));
        let (texts, names) = packer.into_parts();
        json!({"is": packed, "texts": texts, "names": names})
    }

    #[test]
    fn what_comes_once_stays_as_it_is() {
        let value = json!([1, "a", null, [], {"a": 2.5}, {}]);
        assert_eq!(
            packed(&value),
            json!({"is": [0, 1, "a", null, [1], [2, 0, 2.5], [3, 1]], "texts": [], "names": [["a"], []]})
        );
    }

    #[test]
    fn a_text_that_comes_again_is_written_once() {
        let value = json!(["files:read_file", ["git:log of everything", 7], "files:read_file", {"x": "git:log of everything"}]);
        assert_eq!(
            packed(&value),
            json!({
                "is": [1, 0, [0, [6, 1], 7], 0, [3, 0, 1]],
                "texts": ["files:read_file", "git:log of everything"],
                "names": [["x"]],
            })
        );
    }

    #[test]
    fn objects_that_are_alike_become_columns() {
        let value = json!([{"a": 1, "b": [2]}, {"a": 3, "b": "x"}]);
        assert_eq!(
            packed(&value),
            json!({"is": [4, 0, [0, 1, 3], [1, [0, 2], "x"]], "texts": [], "names": [["a", "b"]]})
        );
    }

    #[test]
    fn of_a_list_of_the_same_only_the_others_are_written() {
        let mut values = vec![json!(null); 20];
        values[3] = json!(2);
        assert_eq!(packed(&Value::Array(values))["is"], json!([5, 20, null, 3, 2]));
        assert_eq!(packed(&json!([null, 1, null]))["is"], json!([0, null, 1, null]));
    }
}
