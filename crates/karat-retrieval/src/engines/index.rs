//! An inverted index in memory, ranked by BM25.
//!
//! A document scores, over the distinct terms of the query and the fields that have them,
//!
//! ```text
//! Σ weight(field) · ln(1 + (N − n + 0.5) / (n + 0.5)) · (k1 + 1) · f / (f + k1 · (1 − b + b · l / L))
//! ```
//!
//! with N documents, n of which have the term in the field, this one f times; l is the length of its
//! field in terms, L the average length; k1 = 1.2, b = 0.75. Lengths are rounded as Lucene and tantivy
//! round them ([`rounded`]). The sum is taken in single precision, terms in alphabetical order and
//! fields in theirs, so a score depends neither on the number of results asked for nor on the order
//! in which documents are visited. Equal scores are ordered by document.
//!
//! Documents do not change once they are indexed. Everything but the sum is computed when the index is
//! built: a posting is a document and what the term adds to its score.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;

use super::terms::Stems;
use super::words::for_each_word;

/// The saturation of repeated terms.
pub(super) const K1: f32 = 1.2;
/// The influence of a field's length.
const B: f32 = 0.75;

/// The number of documents whose scores are summed up at once: the sums fit the first-level cache.
const WINDOW: usize = 1 << 12;

/// The time to look up a posting, in additions of postings.
const LOOKUP: usize = 16;

/// Documents of `FIELDS` fields each.
pub(crate) struct Index<const FIELDS: usize> {
    stems: Stems,
    documents: usize,
    /// The number of each term.
    terms: HashMap<String, u32>,
    /// The place of the first posting of a term in a field, at `term * FIELDS + field`, and the end
    /// of the last.
    starts: Vec<usize>,
    /// The largest score in each list.
    most: Vec<f32>,
    /// The documents of each list, ascending.
    docs: Vec<u32>,
    /// The contribution of each posting to the score of its document.
    scores: Vec<f32>,
}

/// The postings of one term in one field, while they are gone through.
struct List {
    /// Those within the window.
    here: Range<usize>,
    /// The end of all.
    end: usize,
    /// The largest score of a posting.
    most: f32,
}

impl<const FIELDS: usize> Index<FIELDS> {
    /// The best documents for a query with their scores, best first.
    ///
    /// The documents are gone through in windows. Once there are enough results, lists that even
    /// together lift no document above the worst result are left out, and the score of a document
    /// that another list has is looked up (Turtle and Flood's MaxScore).
    pub(crate) fn search(&self, query: &str, limit: usize) -> Vec<(usize, f32)> {
        let mut lists = self.lists(query);
        let mut ascending: Vec<usize> = (0..lists.len()).collect();
        ascending.sort_by(|a, b| lists[*a].most.total_cmp(&lists[*b].most));
        // More than rounding can add to or take from a sum of this many scores.
        let slack = 1.0 + 4.0 * f32::EPSILON * lists.len() as f32;

        let mut best = Best::new(limit.min(self.documents));
        let mut sums = vec![0.0; WINDOW.min(self.documents)];
        for first in (0..self.documents).step_by(WINDOW) {
            for list in &mut lists {
                // There is at most one posting for each document of the window.
                let rest = &self.docs[list.here.end..list.end.min(list.here.end + WINDOW)];
                let within = rest.partition_point(|doc| (*doc as usize) < first + WINDOW);
                list.here = list.here.end..list.here.end + within;
            }
            // How many lists can be left out, and what they could add to a score.
            let (mut count, mut others) = (0, 0.0);
            for list in &ascending {
                let with = others + lists[*list].most;
                if with * slack > best.floor {
                    break;
                }
                (count, others) = (count + 1, with);
            }
            if count == lists.len() {
                break;
            }
            let postings =
                |part: &[usize]| -> usize { part.iter().map(|list| lists[*list].here.len()).sum() };
            let (left_out, needed) = ascending.split_at(count);
            let affordable = postings(left_out) / (LOOKUP * lists.len());
            let candidates = if postings(needed) <= affordable {
                Some(self.documents_of(needed.iter().map(|list| &lists[*list])))
            } else if affordable > 0 {
                for list in needed {
                    self.add(&lists[*list], first, &mut sums);
                }
                let found = above(best.floor / slack - others, first, &sums, affordable);
                sums.fill(0.0);
                found
            } else {
                None
            };
            match candidates {
                Some(candidates) => {
                    for doc in candidates {
                        best.offer(doc, self.score(&lists, doc));
                    }
                }
                None => {
                    for list in &lists {
                        self.add(list, first, &mut sums);
                    }
                    best.offer_all(first, &sums);
                    sums.fill(0.0);
                }
            }
        }
        best.into_sorted()
    }

    /// The documents of lists within the window, ascending.
    fn documents_of<'a>(&self, lists: impl Iterator<Item = &'a List>) -> Vec<usize> {
        let mut found: Vec<usize> =
            lists.flat_map(|list| &self.docs[list.here.clone()]).map(|doc| *doc as usize).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The lists of a query's terms in the order in which their scores are summed up.
    fn lists(&self, query: &str) -> Vec<List> {
        let mut terms: Vec<String> = Vec::new();
        for_each_word(query, |word| {
            terms.extend(self.stems.term(word).map(Cow::into_owned));
        });
        terms.sort_unstable();
        terms.dedup();
        terms
            .iter()
            .filter_map(|term| self.terms.get(term))
            .flat_map(|term| {
                let first = *term as usize * FIELDS;
                first..first + FIELDS
            })
            .map(|list| List {
                here: self.starts[list]..self.starts[list],
                end: self.starts[list + 1],
                most: self.most[list],
            })
            .filter(|list| list.here.end < list.end)
            .collect()
    }

    /// Adds the postings of a list within the window to the sums of their documents.
    // Inlined into the search, its loop would keep its variables in memory.
    #[inline(never)]
    fn add(&self, list: &List, first: usize, sums: &mut [f32]) {
        let docs = &self.docs[list.here.clone()];
        for (doc, score) in docs.iter().zip(&self.scores[list.here.clone()]) {
            sums[*doc as usize - first] += score;
        }
    }

    /// The score of a document within the window.
    fn score(&self, lists: &[List], doc: usize) -> f32 {
        let mut sum = 0.0;
        for list in lists {
            let docs = &self.docs[list.here.clone()];
            if let Ok(place) = docs.binary_search_by(|other| (*other as usize).cmp(&doc)) {
                sum += self.scores[list.here.start + place];
            }
        }
        sum
    }
}

/// The documents from `first` on whose sums are above a floor, unless they are more than `most`.
fn above(floor: f32, first: usize, sums: &[f32], most: usize) -> Option<Vec<usize>> {
    // A document that is in none of the lists is not a result.
    let floor = floor.max(0.0);
    let mut found = Vec::new();
    for (place, group) in groups_above(floor, sums) {
        let docs = (first + place..).zip(group);
        found.extend(docs.filter(|(_, sum)| **sum > floor).map(|(doc, _)| doc));
        if found.len() > most {
            return None;
        }
    }
    Some(found)
}

/// The groups of sums that have one above a floor: most have none, which one look at all of a group
/// shows.
fn groups_above(floor: f32, sums: &[f32]) -> impl Iterator<Item = (usize, &[f32])> {
    const GROUP: usize = 16;
    let places = (0..).step_by(GROUP);
    places
        .zip(sums.chunks(GROUP))
        .filter(move |(_, group)| group.iter().fold(false, |any, sum| any | (*sum > floor)))
}

/// The best of the documents that were offered, in ascending order of their numbers.
pub(super) struct Best {
    limit: usize,
    found: Vec<(usize, f32)>,
    /// The score that a further document must exceed.
    floor: f32,
}

impl Best {
    pub(super) fn new(limit: usize) -> Best {
        let floor = if limit == 0 { f32::INFINITY } else { 0.0 };
        Best { limit, found: Vec::new(), floor }
    }

    /// Offers the sums of documents from `first` on; a document without a match has none.
    pub(super) fn offer_all(&mut self, first: usize, sums: &[f32]) {
        for (place, group) in groups_above(self.floor, sums) {
            for (doc, sum) in (first + place..).zip(group) {
                self.offer(doc, *sum);
            }
        }
    }

    /// Of equal scores, that of the earlier document is kept.
    fn offer(&mut self, doc: usize, score: f32) {
        if score > self.floor {
            self.found.push((doc, score));
            // Cut now and then, not each time: a document costs O(1) on average.
            if self.found.len() >= self.limit.saturating_mul(2) {
                self.cut();
            }
        }
    }

    fn cut(&mut self) {
        if self.found.len() > self.limit {
            let (_, last, _) = self.found.select_nth_unstable_by(self.limit - 1, by_score);
            self.floor = last.1;
            self.found.truncate(self.limit);
        }
    }

    pub(super) fn into_sorted(mut self) -> Vec<(usize, f32)> {
        self.cut();
        self.found.sort_unstable_by(by_score);
        self.found
    }
}

fn by_score(a: &(usize, f32), b: &(usize, f32)) -> Ordering {
    b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))
}

/// An index while documents are added to it.
pub(crate) struct Builder<const FIELDS: usize> {
    weights: [f32; FIELDS],
    stems: Stems,
    terms: HashMap<String, u32>,
    /// The number of the next new term.
    next_term: u32,
    /// The term of each word, so that no word is stemmed twice.
    words: HashMap<String, Option<u32>>,
    entries: Vec<Entry>,
    /// The number of the next document.
    next_doc: u32,
    /// The rounded length of each field of each document.
    lengths: Vec<[f32; FIELDS]>,
    /// The number of terms in each field of all documents.
    totals: [usize; FIELDS],
}

/// A term in a field of a document.
struct Entry {
    term: u32,
    doc: u32,
    frequency: f32,
    field: u8,
}

impl<const FIELDS: usize> Builder<FIELDS> {
    /// An empty index whose fields have these weights.
    pub(crate) fn new(weights: [f32; FIELDS]) -> Builder<FIELDS> {
        Builder {
            weights,
            stems: Stems::new(),
            terms: HashMap::new(),
            next_term: 0,
            words: HashMap::new(),
            entries: Vec::new(),
            next_doc: 0,
            lengths: Vec::new(),
            totals: [0; FIELDS],
        }
    }

    /// Adds a document, each of its fields given in pieces.
    pub(crate) fn add(&mut self, fields: [&[&str]; FIELDS]) {
        let mut lengths = [0.0; FIELDS];
        let mut found = Vec::new();
        for ((field, pieces), length) in (0..).zip(fields).zip(&mut lengths) {
            found.clear();
            for piece in pieces {
                for_each_word(piece, |word| found.extend(self.term(word)));
            }
            *length = rounded(found.len());
            self.totals[field as usize] += found.len();
            found.sort_unstable();
            for same in found.chunk_by(|a, b| a == b) {
                let frequency = same.len() as f32;
                self.entries.push(Entry { term: same[0], doc: self.next_doc, frequency, field });
            }
        }
        self.lengths.push(lengths);
        self.next_doc += 1;
    }

    fn term(&mut self, word: &str) -> Option<u32> {
        if let Some(known) = self.words.get(word) {
            return *known;
        }
        let term = self.stems.term(word).map(|term| {
            *self.terms.entry(term.into_owned()).or_insert_with(|| {
                self.next_term += 1;
                self.next_term - 1
            })
        });
        self.words.insert(word.to_owned(), term);
        term
    }

    /// Sorts the postings into lists and computes their scores.
    pub(crate) fn finish(self) -> Index<FIELDS> {
        let documents = self.lengths.len();
        let averages = self.totals.map(|total| total as f32 / documents as f32);
        let list = |entry: &Entry| entry.term as usize * FIELDS + entry.field as usize;
        let mut starts = vec![0; self.terms.len() * FIELDS + 1];
        for entry in &self.entries {
            starts[list(entry) + 1] += 1;
        }
        for place in 1..starts.len() {
            starts[place] += starts[place - 1];
        }
        let mut next = starts.clone();
        let mut docs = vec![0; self.entries.len()];
        let mut scores = vec![0.0; self.entries.len()];
        for entry in &self.entries {
            let field = entry.field as usize;
            let length = self.lengths[entry.doc as usize][field];
            let norm = norm(length, averages[field]);
            let place = &mut next[list(entry)];
            docs[*place] = entry.doc;
            scores[*place] = entry.frequency / (entry.frequency + norm);
            *place += 1;
        }
        let mut most = Vec::with_capacity(starts.len());
        for (list, bounds) in starts.windows(2).enumerate() {
            let having = bounds[1] - bounds[0];
            let weight = rarity(documents, having) * (1.0 + K1) * self.weights[list % FIELDS];
            let scores = &mut scores[bounds[0]..bounds[1]];
            scores.iter_mut().for_each(|score| *score *= weight);
            most.push(scores.iter().copied().fold(0.0, f32::max));
        }
        Index { stems: self.stems, documents, terms: self.terms, starts, most, docs, scores }
    }
}

/// The weight of a term that this many documents have.
pub(super) fn rarity(documents: usize, having: usize) -> f32 {
    let others = documents - having;
    (1.0 + (others as f32 + 0.5) / (having as f32 + 0.5)).ln()
}

/// The resistance of a field to further occurrences of a term.
pub(super) fn norm(length: f32, average: f32) -> f32 {
    K1 * (1.0 - B + B * length / average)
}

/// A length with four significant bits above 24, rounded down: the precision that Lucene and tantivy
/// keep of it in one byte. Scores would differ from theirs without it.
pub(super) fn rounded(length: usize) -> f32 {
    const EXACT: usize = 24;
    let Some(above) = length.checked_sub(EXACT) else { return length as f32 };
    let dropped = (usize::BITS - above.leading_zeros()).saturating_sub(4);
    (EXACT + (above >> dropped << dropped)) as f32
}

#[cfg(test)]
pub(super) mod tests {
    use karat_metrics::stats::random::Draws;

    use super::*;

    pub(in super::super) const WEIGHTS: [f32; 2] = [2.0, 0.4];

    /// Documents of two fields whose first words are frequent and whose last ones are rare.
    pub(in super::super) fn documents(count: usize) -> Vec<[String; 2]> {
        let mut draws = Draws::from_seed(7);
        let mut text = |words: usize| -> String {
            let mut word = || {
                let size = 1 << draws.index(12);
                format!("w{}x", draws.index(size))
            };
            (0..words).map(|_| word()).collect::<Vec<_>>().join(" ")
        };
        (0..count).map(|n| [text(n % 4), text(n % 60)]).collect()
    }

    pub(in super::super) fn index(documents: &[[String; 2]]) -> Index<2> {
        let mut builder = Builder::new(WEIGHTS);
        for [first, second] in documents {
            builder.add([&[first], &[second]]);
        }
        builder.finish()
    }

    /// The formula of the module, document by document.
    fn every_score(documents: &[[String; 2]], query: &str) -> Vec<(usize, f32)> {
        let mut terms: Vec<&str> = query.split(' ').collect();
        terms.sort_unstable();
        terms.dedup();
        let count = |text: &str, term: &str| text.split(' ').filter(|word| *word == term).count();
        let length = |text: &str| text.split(' ').filter(|word| !word.is_empty()).count();
        let mut sums = vec![0.0_f32; documents.len()];
        for term in terms {
            for (field, weight) in WEIGHTS.iter().enumerate() {
                let having =
                    documents.iter().filter(|texts| count(&texts[field], term) > 0).count();
                let all: usize = documents.iter().map(|texts| length(&texts[field])).sum();
                let average = all as f32 / documents.len() as f32;
                let without = (documents.len() - having) as f32;
                let rarity = (1.0 + (without + 0.5) / (having as f32 + 0.5)).ln();
                for (sum, texts) in sums.iter_mut().zip(documents) {
                    let f = count(&texts[field], term) as f32;
                    let norm = 1.2 * (1.0 - 0.75 + 0.75 * rounded(length(&texts[field])) / average);
                    *sum += rarity * (1.0 + 1.2) * weight * (f / (f + norm));
                }
            }
        }
        let mut found: Vec<(usize, f32)> =
            sums.into_iter().enumerate().filter(|(_, sum)| *sum > 0.0).collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        found
    }

    #[test]
    fn the_best_are_found_whatever_is_left_out_on_the_way() {
        // Several windows: with a small limit most lists are left out in the later ones.
        let documents = documents(2 * WINDOW + 100);
        let index = index(&documents);
        let queries =
            ["w0x", "w1x w900x", "w0x w1x w2x w3x", "w3x w40x w700x w1500x", "w2000x", "no"];
        for query in queries {
            let expected = every_score(&documents, query);
            for limit in [0, 1, 5, 20, 1_000, 100_000] {
                let wanted = &expected[..limit.min(expected.len())];
                assert_eq!(index.search(query, limit), wanted, "{query}, {limit} results");
            }
        }
    }

    #[test]
    fn equal_documents_come_in_their_order() {
        let documents: Vec<[String; 2]> =
            (0..100).map(|_| ["same".to_owned(), "same words".to_owned()]).collect();
        let found = index(&documents).search("same words", 10);
        assert_eq!(
            found.iter().map(|(doc, _)| *doc).collect::<Vec<_>>(),
            (0..10).collect::<Vec<_>>()
        );
        assert!(found.iter().all(|(_, score)| *score == found[0].1));
    }

    #[test]
    fn an_empty_index_finds_nothing() {
        assert!(index(&[]).search("words", 10).is_empty());
        assert!(index(&[[String::new(), String::new()]]).search("words", 10).is_empty());
    }

    #[test]
    fn long_fields_are_rounded_to_four_bits() {
        let exact: Vec<f32> = (0..40).map(rounded).collect();
        assert_eq!(exact, (0_u8..40).map(f32::from).collect::<Vec<_>>());
        for (length, expected) in
            [(40, 40.0), (41, 40.0), (42, 42.0), (55, 54.0), (56, 56.0), (59, 56.0), (1_000, 984.0)]
        {
            assert_eq!(rounded(length), expected, "{length}");
        }
    }
}
