//! BM25 over documents of which a few are others for each search.

use std::borrow::Cow;
use std::collections::HashMap;

use super::index::{Best, K1, norm, rarity, rounded};
use super::terms::Stems;
use super::words::for_each_word;

/// An index whose documents can be replaced for a search, without a new one: nothing is computed ahead,
/// so that a change of one document, which changes the averages of all, costs nothing. It finds what an
/// index of the changed documents finds, with the same scores.
pub(crate) struct Editable<const FIELDS: usize> {
    weights: [f32; FIELDS],
    stems: Stems,
    /// The number of each term.
    terms: HashMap<String, usize>,
    /// The documents that have a term in a field, ascending, with its frequency.
    lists: Vec<[Vec<(usize, f32)>; FIELDS]>,
    lengths: Vec<Lengths<FIELDS>>,
    /// The sum of the lengths of all documents.
    totals: Lengths<FIELDS>,
}

/// The number of terms in each field of a document.
type Lengths<const FIELDS: usize> = [usize; FIELDS];

/// A document that replaces another one.
pub(crate) struct Replaced<const FIELDS: usize> {
    doc: usize,
    lengths: Lengths<FIELDS>,
    /// The frequency of each term, by field.
    terms: [HashMap<String, f32>; FIELDS],
}

impl<const FIELDS: usize> Editable<FIELDS> {
    /// An index without documents.
    pub(crate) fn empty(weights: [f32; FIELDS]) -> Editable<FIELDS> {
        Editable {
            weights,
            stems: Stems::new(),
            terms: HashMap::new(),
            lists: Vec::new(),
            lengths: Vec::new(),
            totals: [0; FIELDS],
        }
    }

    /// Adds a document, each of its fields given in pieces.
    pub(crate) fn add(&mut self, fields: [&[&str]; FIELDS]) {
        let Replaced { doc, lengths, terms } = self.document(self.lengths.len(), fields);
        for (field, terms) in terms.into_iter().enumerate() {
            for (term, frequency) in terms {
                let next = self.lists.len();
                let number = *self.terms.entry(term).or_insert(next);
                if number == next {
                    self.lists.push(std::array::from_fn(|_| Vec::new()));
                }
                self.lists[number][field].push((doc, frequency));
            }
        }
        for (total, length) in self.totals.iter_mut().zip(lengths) {
            *total += length;
        }
        self.lengths.push(lengths);
    }

    /// The document with this number, with other fields.
    pub(crate) fn document(&self, doc: usize, fields: [&[&str]; FIELDS]) -> Replaced<FIELDS> {
        let mut lengths = [0; FIELDS];
        let terms = std::array::from_fn(|field| {
            let mut terms: HashMap<String, f32> = HashMap::new();
            for piece in fields[field] {
                for_each_word(piece, |word| {
                    if let Some(term) = self.stems.term(word) {
                        *terms.entry(term.into_owned()).or_default() += 1.0;
                        lengths[field] += 1;
                    }
                });
            }
            terms
        });
        Replaced { doc, lengths, terms }
    }

    /// The best documents for a query with their scores, best first, where some documents are
    /// replaced; these are given in the order of their numbers.
    pub(crate) fn search(
        &self,
        replaced: &[Replaced<FIELDS>],
        query: &str,
        limit: usize,
    ) -> Vec<(usize, f32)> {
        let documents = self.lengths.len();
        let mut totals = self.totals;
        for (field, total) in totals.iter_mut().enumerate() {
            for change in replaced {
                *total = *total + change.lengths[field] - self.lengths[change.doc][field];
            }
        }
        let averages = totals.map(|total| total as f32 / documents as f32);
        let mut terms: Vec<String> = Vec::new();
        for_each_word(query, |word| terms.extend(self.stems.term(word).map(Cow::into_owned)));
        terms.sort_unstable();
        terms.dedup();
        let is_replaced = |doc: usize| replaced.binary_search_by_key(&doc, |one| one.doc).is_ok();
        let mut sums = vec![0.0_f32; documents];
        for term in &terms {
            for (field, average) in averages.iter().enumerate() {
                let kept = self.terms.get(term).map(|number| self.lists[*number][field].as_slice());
                let kept = kept.unwrap_or_default().iter().filter(|(doc, _)| !is_replaced(*doc));
                let kept = kept.map(|(doc, f)| (*doc, *f, self.lengths[*doc][field]));
                let changed = replaced.iter().filter_map(|one| {
                    Some((one.doc, *one.terms[field].get(term)?, one.lengths[field]))
                });
                let all: Vec<(usize, f32, usize)> = kept.chain(changed).collect();
                let weight = rarity(documents, all.len()) * (1.0 + K1) * self.weights[field];
                for (doc, frequency, length) in all {
                    let norm = norm(rounded(length), *average);
                    sums[doc] += frequency / (frequency + norm) * weight;
                }
            }
        }
        let mut best = Best::new(limit.min(documents));
        best.offer_all(0, &sums);
        best.into_sorted()
    }
}

#[cfg(test)]
mod tests {
    use super::super::index::tests::{WEIGHTS, documents, index};
    use super::*;

    #[test]
    fn a_replaced_document_scores_as_in_an_index_of_its_own() {
        let mut documents = documents(500);
        let mut editable = Editable::empty(WEIGHTS);
        for [first, second] in &documents {
            editable.add([&[first], &[second]]);
        }
        let queries = ["w0x", "w1x w900x", "w3x w40x w700x", "new w2x", "no"];
        for query in queries {
            assert_eq!(editable.search(&[], query, 20), index(&documents).search(query, 20));
        }
        let changes = [(3, "new new w2x", "w1x"), (77, "", ""), (499, "w0x", "new w3x w40x")];
        let mut replaced = Vec::new();
        for (doc, first, second) in changes {
            replaced.push(editable.document(doc, [&[first], &[second]]));
            documents[doc] = [first.to_owned(), second.to_owned()];
        }
        let rebuilt = index(&documents);
        for query in queries {
            assert_eq!(editable.search(&replaced, query, 20), rebuilt.search(query, 20), "{query}");
        }
    }
}
