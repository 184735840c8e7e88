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
    by_id: HashMap<&'b str, i64>,
    grades: Vec<i64>,
    seen: HashSet<&'b str>,
    ranked: Vec<Option<i64>>,
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
        self.by_id.clear();
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
            if self.by_id.insert(id, grade).is_some() {
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
            self.ranked.push(self.by_id.get(id).copied());
        }
        Ok(Ok(()))
    }
}
