//! A whole file in memory, by query: for files that cannot be read query by query.

use hashbrown::{DefaultHashBuilder, HashTable};

use super::error::TrecError;
use super::fields::{Records, Value};
use super::group::{Entry, Rows};
use super::input::Blocks;
use super::join::hash;

/// The lines of a file, those of a query together, in the order of the file.
pub(super) struct Table<V> {
    bytes: Vec<u8>,
    /// The entries, grouped by query.
    entries: Vec<Entry<V>>,
    /// The queries in the order of their first lines; the value is the index of their first entry.
    queries: Vec<Entry<usize>>,
    index: HashTable<usize>,
    hasher: DefaultHashBuilder,
}

impl<V: Value> Table<V> {
    pub(super) fn load(blocks: Blocks<'_>) -> Result<Self, TrecError> {
        let mut table = Self {
            bytes: Vec::new(),
            entries: Vec::new(),
            queries: Vec::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        };
        let mut records = Records::new(blocks);
        let mut owned: Vec<(usize, Entry<V>)> = Vec::new();
        let mut query = 0;
        while let Some(record) = records.next::<V>()? {
            if owned.is_empty() || table.query(query) != record.query {
                query = table.find_or_add(record.query, record.line);
            }
            let entry = Entry::append(&mut table.bytes, record.document, record.line, record.value);
            owned.push((query, entry));
        }
        if !owned.is_sorted_by_key(|(query, _)| *query) {
            owned.sort_by_key(|(query, _)| *query);
        }
        let mut next = 0;
        for (position, (query, _)) in owned.iter().enumerate() {
            if *query == next {
                table.queries[next].value = position;
                next += 1;
            }
        }
        table.entries = owned.into_iter().map(|(_, entry)| entry).collect();
        Ok(table)
    }

    fn find_or_add(&mut self, query: &[u8], line: u64) -> usize {
        if let Some(found) = self.find(query) {
            return found;
        }
        let added = self.queries.len();
        self.queries.push(Entry::append(&mut self.bytes, query, line, 0));
        let (queries, bytes, hasher) = (&self.queries, &self.bytes, &self.hasher);
        let hash_of = |index: &usize| hash(hasher, queries[*index].id(bytes));
        self.index.insert_unique(hash_of(&added), added, hash_of);
        added
    }

    /// The number of a query.
    pub(super) fn find(&self, query: &[u8]) -> Option<usize> {
        self.index.find(hash(&self.hasher, query), |index| self.query(*index) == query).copied()
    }

    /// The number of queries.
    pub(super) fn len(&self) -> usize {
        self.queries.len()
    }

    /// The id of a query.
    pub(super) fn query(&self, index: usize) -> &[u8] {
        self.queries[index].id(&self.bytes)
    }

    /// The lines of a query.
    pub(super) fn rows(&self, index: usize) -> Rows<'_, V> {
        let start = self.queries[index].value;
        let end = self.queries.get(index + 1).map_or(self.entries.len(), |next| next.value);
        Rows { bytes: &self.bytes, entries: &self.entries[start..end] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Input;

    #[test]
    fn scattered_lines_are_grouped_in_the_order_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("qrels");
        std::fs::write(&path, "b 0 x 1\na 0 y 0\nb 0 z 2\n\nc 0 x 1\na 0 x 3\n").unwrap();
        let input = Input::file(&path);
        let table = Table::<i64>::load(input.open().unwrap()).unwrap();
        let listed = |query: usize| {
            let rows = table.rows(query);
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let entries = 0..rows.entries.len();
            let entries =
                entries.map(|row| format!(" {}={}", text(rows.id(row)), rows.entries[row].value));
            format!("{}:{}", text(table.query(query)), entries.collect::<String>())
        };
        let all: Vec<_> = (0..table.len()).map(listed).collect();
        assert_eq!(all, ["b: x=1 z=2", "a: y=0 x=3", "c: x=1"]);
        assert_eq!(table.find(b"c"), Some(2));
        assert_eq!(table.find(b"d"), None);
    }
}
