//! Scores of rankings: each row has what was found and what is relevant.

use std::collections::{HashMap, HashSet};

use arrow_array::{Array as _, RecordBatch};
use arrow_schema::DataType;
use karat_metrics::ranking::{JudgedRanking, Measure, RankingError, Rules};

use crate::columns::{Columns, Fields, Lists, Number, Text};
use crate::rows::{Row, Rows};
use crate::{Error, Kind};

const RANKED: &str = "list<utf8>, the best first";
const RELEVANT: &str = "list<struct<id: utf8, grade: int>> or list<utf8>";

/// Scores every row by these measures; `group` is the column that has the groups.
pub(crate) fn score(
    measures: &[Measure],
    group: &str,
    batch: &RecordBatch,
    out: &mut Rows<'_>,
) -> Result<(), Error> {
    let columns = Columns::of(Kind::Rankings, batch);
    let ids = columns.full_text("id")?;
    let groups = columns.text(group)?;
    let latencies = columns.number("latency_ms")?;
    let ranked = Ranked::of(&columns)?;
    let relevant = Relevant::of(&columns)?;
    let rules = Rules::default();
    let mut join = Join::default();
    let mut judged = JudgedRanking::default();
    for number in 0..batch.num_rows() {
        let row = Row {
            number,
            id: ids.get(number).unwrap_or_default(),
            group: groups.as_ref().and_then(|groups| groups.get(number)),
            latency_ms: latencies.as_ref().and_then(|latencies| latencies.get(number)),
        };
        let scored = join.fill(number, &ranked, &relevant)?;
        if let Err(message) = scored {
            out.push_failed(row, &message, [])?;
            continue;
        }
        judged.refill(join.grades.iter().copied(), join.ranked.iter().copied(), &rules);
        // A query without a relevant document says nothing about the search.
        let has_relevant = join.grades.iter().any(|grade| *grade > 0);
        let value = |measure| has_relevant.then(|| judged.score(measure).ok()).flatten();
        out.push(row, measures.iter().map(|measure| value(*measure)));
    }
    Ok(())
}

struct Ranked<'b> {
    lists: Lists<'b>,
    ids: Text<'b>,
}

impl<'b> Ranked<'b> {
    fn of(columns: &Columns<'b>) -> Result<Ranked<'b>, Error> {
        let array = columns.need("ranked", RANKED)?;
        let lists = Lists::of("ranked", array, RANKED)?;
        let lists = lists.ok_or_else(|| Error::Null { column: "ranked".to_owned(), row: 0 })?;
        let ids = Text::of("ranked[]", lists.values)?;
        Ok(Ranked { lists, ids })
    }
}

struct Relevant<'b> {
    lists: Lists<'b>,
    ids: Text<'b>,
    /// 1 for all if the list has ids alone.
    grades: Option<Number<'b>>,
}

impl<'b> Relevant<'b> {
    fn of(columns: &Columns<'b>) -> Result<Relevant<'b>, Error> {
        let array = columns.need("relevant", RELEVANT)?;
        let lists = Lists::of("relevant", array, RELEVANT)?;
        let lists = lists.ok_or_else(|| Error::Null { column: "relevant".to_owned(), row: 0 })?;
        if !matches!(lists.values.data_type(), DataType::Struct(_)) {
            let ids = Text::of("relevant[]", lists.values)?;
            return Ok(Relevant { lists, ids, grades: None });
        }
        let fields = Fields::of("relevant[]", lists.values, RELEVANT)?;
        let ids = fields.need_text(Kind::Rankings, "id")?;
        let grades = fields.need_number(Kind::Rankings, "grade")?;
        Ok(Relevant { lists, ids, grades: Some(grades) })
    }
}

/// The results of a row joined with its judgements; the memory is used again for the next row.
#[derive(Default)]
struct Join<'b> {
    judged: Judged<'b>,
    grades: Vec<i64>,
    seen: Seen<'b>,
    ranked: Vec<Option<i64>>,
}

/// Among this many ids, looking at each takes less time than a hash.
const FEW: usize = 16;

/// The grades of a row by their ids.
#[derive(Default)]
struct Judged<'b> {
    few: Vec<(&'b str, i64)>,
    many: HashMap<&'b str, i64>,
}

impl<'b> Judged<'b> {
    fn clear(&mut self) {
        self.few.clear();
        self.many.clear();
    }

    fn get(&self, id: &str) -> Option<i64> {
        match self.many.is_empty() {
            true => self.few.iter().find(|(known, _)| *known == id).map(|(_, grade)| *grade),
            false => self.many.get(id).copied(),
        }
    }

    /// Adds a grade; false if the id has one.
    fn insert(&mut self, id: &'b str, grade: i64) -> bool {
        if self.many.is_empty() && self.few.len() < FEW {
            let is_new = self.get(id).is_none();
            self.few.push((id, grade));
            return is_new;
        }
        self.many.extend(self.few.drain(..));
        self.many.insert(id, grade).is_none()
    }
}

/// The results of a row.
#[derive(Default)]
struct Seen<'b> {
    few: Vec<&'b str>,
    many: HashSet<&'b str>,
}

impl<'b> Seen<'b> {
    fn clear(&mut self) {
        self.few.clear();
        self.many.clear();
    }

    /// Adds a result; false if it is there.
    fn insert(&mut self, id: &'b str) -> bool {
        if self.many.is_empty() && self.few.len() < FEW {
            let is_new = !self.few.contains(&id);
            self.few.push(id);
            return is_new;
        }
        self.many.extend(self.few.drain(..));
        self.many.insert(id)
    }
}

impl<'b> Join<'b> {
    /// Joins a row; the inner error is a mistake of this row alone.
    fn fill(
        &mut self,
        row: usize,
        ranked: &'b Ranked<'_>,
        relevant: &'b Relevant<'_>,
    ) -> Result<Result<(), String>, Error> {
        let null = |column: &str| Error::Null { column: column.to_owned(), row };
        self.judged.clear();
        self.grades.clear();
        self.seen.clear();
        self.ranked.clear();
        for place in relevant.lists.range(row).ok_or_else(|| null("relevant"))? {
            let id = relevant.ids.get(place).ok_or_else(|| null("relevant[].id"))?;
            let grade = match &relevant.grades {
                None => 1,
                Some(grades) => {
                    let grade = grades.get(place).ok_or_else(|| null("relevant[].grade"))?;
                    if grade.fract() != 0.0 || grade.abs() > 1e9 {
                        return Ok(Err(format!("grade {grade} of {id:?} is not a whole number")));
                    }
                    #[expect(clippy::cast_possible_truncation, reason = "whole, and at most 10⁹")]
                    let grade = grade as i64;
                    grade
                }
            };
            if !self.judged.insert(id, grade) {
                let id = id.to_owned();
                return Ok(Err(RankingError::DuplicateJudgement { id }.to_string()));
            }
            self.grades.push(grade);
        }
        for place in ranked.lists.range(row).ok_or_else(|| null("ranked"))? {
            let id = ranked.ids.get(place).ok_or_else(|| null("ranked[]"))?;
            if !self.seen.insert(id) {
                return Ok(Err(RankingError::DuplicateResult { id: id.to_owned() }.to_string()));
            }
            self.ranked.push(self.judged.get(id));
        }
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_once_among_few_and_among_many() {
        let names: Vec<String> = (0..3 * FEW).map(|number| format!("tool-{number}")).collect();
        let (mut judged, mut seen) = (Judged::default(), Seen::default());
        for _ in 0..2 {
            judged.clear();
            seen.clear();
            for (place, name) in names.iter().enumerate() {
                let grade = i64::try_from(place).unwrap();
                assert!(judged.get(name).is_none() && judged.insert(name, grade), "{name}");
                assert!(seen.insert(name), "{name}");
                let all_known = |known: &String| judged.get(known).is_some();
                assert!(names[..=place].iter().all(all_known), "{name}");
                assert_eq!(judged.get(name), Some(grade));
            }
        }
        for length in [1, FEW - 1, FEW, FEW + 1, 3 * FEW] {
            judged.clear();
            seen.clear();
            for name in &names[..length] {
                judged.insert(name, 1);
                seen.insert(name);
            }
            assert!(!judged.insert(&names[0], 2) && !seen.insert(&names[length - 1]), "{length}");
        }
    }
}
