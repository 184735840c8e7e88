//! A ranking that a search gives in pages: by a cursor in each answer, or by the place of its first
//! result.

use karat_core::adapter::Values;
use serde_json::{Value, json};

use super::answer::{AnswerReader, Page};
use crate::ranking::{Question, Ranking};

/// The most pages of one answer: a cursor that leads in a circle ends here.
const MAX_PAGES: usize = 1_000;

/// The place of a request that takes the number of results that are there already.
pub(super) const OFFSET: &str = "{offset}";

/// The pages of one answer.
pub(super) struct Pages<'a> {
    reader: &'a AnswerReader,
    question: &'a Question,
    run: u32,
    asked: usize,
    ranking: Ranking,
    /// The cursor of the next page; none where there is no further one.
    cursor: Option<Value>,
}

impl<'a> Pages<'a> {
    /// Nothing yet; `first` is the cursor of the first page.
    pub(super) fn new(
        reader: &'a AnswerReader,
        question: &'a Question,
        run: u32,
        first: Value,
    ) -> Pages<'a> {
        let ranking = Ranking::new(Vec::new());
        Pages { reader, question, run, asked: 0, ranking, cursor: Some(first) }
    }

    /// The values of the next request, unless there is nothing more to ask for.
    pub(super) fn next(&mut self) -> Option<Values> {
        let found = self.ranking.ranked.len();
        let cursor = self.cursor.take()?;
        if self.asked > 0 && (found >= self.question.limit || self.asked >= MAX_PAGES) {
            return None;
        }
        self.asked += 1;
        let mut values = self.question.values(self.run);
        values.insert("limit".to_owned(), json!(self.size()));
        values.insert("offset".to_owned(), json!(found));
        values.insert("cursor".to_owned(), cursor);
        Some(values)
    }

    pub(super) fn add(&mut self, page: Page) {
        let results = page.ranking.ranked.len();
        // A full page may have another one after it. A cursor after an empty page leads nowhere.
        let full = self.reader.by_offset && results >= self.size();
        self.cursor = page.next.or(full.then(|| json!(""))).filter(|_| results > 0);
        self.ranking.ranked.extend(page.ranking.ranked);
        let tokens = self.ranking.answer_tokens.into_iter().chain(page.ranking.answer_tokens);
        self.ranking.answer_tokens = tokens.reduce(|sum, tokens| sum + tokens);
    }

    /// The number of results that the next page may have.
    fn size(&self) -> usize {
        let missing = self.question.limit.saturating_sub(self.ranking.ranked.len());
        missing.min(self.reader.page_size.unwrap_or(usize::MAX))
    }

    pub(super) fn into_ranking(self) -> Ranking {
        self.ranking
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::dataset::Dataset;
    use crate::ranking::Ranked;
    use crate::systems::answer::AnswerConfig;

    fn page(ids: &[&str], next: Option<&str>) -> Page {
        let ranked = ids.iter().map(|id| Ranked { tool_id: (*id).to_owned(), score: None });
        let ranking = Ranking { answer_tokens: Some(3), ..Ranking::new(ranked.collect()) };
        Page { ranking, next: next.map(|next| json!(next)) }
    }

    #[test]
    fn pages_are_asked_for_until_there_is_enough_or_nothing_more() {
        let config = AnswerConfig { page_size: Some(2), ..AnswerConfig::default() };
        let reader =
            AnswerReader::new(&config, &Dataset::default(), Path::new("."), false).unwrap();
        let question = Question { id: "q".into(), query: "x".into(), limit: 5 };
        let mut pages = Pages::new(&reader, &question, 0, json!(""));
        let first = pages.next().unwrap();
        assert_eq!(
            (&first["limit"], &first["offset"], &first["cursor"]),
            (&json!(2), &json!(0), &json!(""))
        );
        pages.add(page(&["a", "b"], Some("c1")));
        let second = pages.next().unwrap();
        assert_eq!((&second["offset"], &second["cursor"]), (&json!(2), &json!("c1")));
        pages.add(page(&["c", "d"], Some("c2")));
        assert_eq!(pages.next().unwrap()["limit"], 1, "no more than is wanted");
        pages.add(page(&["e"], Some("c3")));
        assert!(pages.next().is_none());
        let ranking = pages.into_ranking();
        assert_eq!((ranking.ranked.len(), ranking.answer_tokens), (5, Some(9)));

        let mut pages = Pages::new(&reader, &question, 0, json!(""));
        pages.next().unwrap();
        pages.add(page(&[], Some("round and round")));
        assert!(pages.next().is_none());

        let mut reader = reader;
        reader.by_offset = true;
        let mut pages = Pages::new(&reader, &question, 0, json!(""));
        pages.next().unwrap();
        pages.add(page(&["a", "b"], None));
        assert_eq!(pages.next().unwrap()["offset"], 2, "the first page was full");
        pages.add(page(&["c"], None));
        assert!(pages.next().is_none());
    }
}
