//! Scores of verdicts: each row has the label of an entry and what a detector says about it.

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use karat_detection::dataset::HARD_NEGATIVE;

use crate::columns::{Columns, Text, Truth, no_null, wrong_type};
use crate::rows::{Row, Rows};
use crate::{Error, Kind};

const LABEL: &str = "text (malicious or benign), or bool (true for malicious)";
const VERDICT: &str = "text (flag, pass, unsupported or error), or bool (true for flag)";

/// Scores every row; `group` is the column that has the groups.
pub(crate) fn score(group: &str, batch: &RecordBatch, out: &mut Rows<'_>) -> Result<(), Error> {
    let columns = Columns::of(Kind::Verdicts, batch);
    let ids = columns.full_text("id")?;
    let groups = columns.text(group)?;
    let latencies = columns.number("latency_ms")?;
    let labels = Words::of(&columns, "label", LABEL)?;
    no_null("label", batch.num_rows(), |row| labels.get(row, ["malicious", "benign"]).is_none())?;
    let categories = columns.text("category")?;
    let verdicts = Words::of(&columns, "verdict", VERDICT)?;
    let scores = columns.number("score")?;
    for number in 0..batch.num_rows() {
        let row = Row {
            number,
            id: ids.get(number).unwrap_or_default(),
            group: groups.as_ref().and_then(|groups| groups.get(number)),
            latency_ms: latencies.as_ref().and_then(|latencies| latencies.get(number)),
        };
        let malicious = match labels.get(number, ["malicious", "benign"]) {
            Some("malicious") => true,
            Some("benign") => false,
            other => {
                out.malicious.append_null();
                out.hard_negative.append_null();
                out.score.append_null();
                let other = other.unwrap_or_default();
                out.push_failed(
                    row,
                    &format!("label {other:?} should be malicious or benign"),
                    [],
                )?;
                continue;
            }
        };
        let category = categories.as_ref().and_then(|categories| categories.get(number));
        let is_hard = !malicious && category == Some(HARD_NEGATIVE);
        let (flagged, problem) = match verdicts.get(number, ["flag", "pass"]) {
            Some("flag") => (Some(true), None),
            Some("pass") => (Some(false), None),
            Some("unsupported") => (None, None),
            Some("error") => (None, Some("the detector answered that it failed".to_owned())),
            None => (None, Some("no verdict".to_owned())),
            Some(other) => {
                let problem =
                    format!("verdict {other:?} should be flag, pass, unsupported or error");
                (None, Some(problem))
            }
        };
        let score = scores.as_ref().and_then(|scores| scores.get(number));
        out.malicious.append_value(malicious);
        out.hard_negative.append_value(is_hard);
        out.score.append_option(score.filter(|score| score.is_finite() && flagged.is_some()));
        let values = values(malicious, is_hard, flagged);
        match problem {
            None => out.push(row, values),
            Some(problem) => out.push_failed(row, &problem, values)?,
        }
    }
    Ok(())
}

/// The scores of one verdict, in the order of [`karat_detection::score::RATES`].
fn values(malicious: bool, is_hard: bool, flagged: Option<bool>) -> [Option<f64>; 5] {
    let rate = |applies: bool, hit: bool| {
        flagged.filter(|_| applies).map(|flagged| f64::from(u8::from(flagged == hit)))
    };
    [
        rate(malicious, true),
        rate(!malicious, true),
        rate(is_hard, true),
        rate(!malicious, false),
        Some(f64::from(u8::from(flagged.is_some()))),
    ]
}

/// A column of words that may also be true or false.
enum Words<'b> {
    Text(Text<'b>),
    Truth(Truth<'b>),
}

impl<'b> Words<'b> {
    fn of(columns: &Columns<'b>, name: &str, expected: &str) -> Result<Words<'b>, Error> {
        let array = columns.need(name, expected)?;
        match array.data_type() {
            DataType::Boolean => Ok(Words::Truth(Truth::of(name, array)?)),
            _ => match Text::of(name, array) {
                Ok(text) => Ok(Words::Text(text)),
                Err(_) => Err(wrong_type(name, array, expected)),
            },
        }
    }

    /// The word of a row; `words` are those of true and false.
    fn get(&self, row: usize, words: [&'static str; 2]) -> Option<&str> {
        match self {
            Words::Text(text) => text.get(row),
            Words::Truth(truth) => truth.get(row).map(|truth| words[usize::from(!truth)]),
        }
    }
}
