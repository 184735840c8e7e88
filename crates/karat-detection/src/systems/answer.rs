//! An answer in JSON of a scanner's own making, read through path expressions; and the question, filled
//! into a template.
//!
//! Shared by HTTP and MCP scanners: the meaning of the answer's fields, and the parts of an entry that the
//! template shows. An entry that has a result or instructions which the template does not show cannot be
//! judged, so it is `unsupported` and the scanner is not asked.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::adapter::Values;
use karat_core::observed::DetectorFinding;
use karat_detectors::ScanInput;
use karat_io::json_path::JsonPath;
use karat_io::template;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::answer::{Answer, DetectorReport, Lacks, Verdict};
use crate::dataset::Tool;
use crate::decision::most_severe;
use karat_core::error::EvalError;

/// The paths of an answer: `answer = { … }`. At least one of `verdict`, `flagged`, `severity` and
/// `score` is needed; the last two with a decision that goes by them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AnswerConfig {
    /// The verdict as text: `flag`, `pass`, `unsupported`, `error`.
    pub verdict: Option<String>,
    /// True if it is a flag: true or false, a number, a list that is empty or not; a leading `!` negates
    /// it (`!is_safe`).
    pub flagged: Option<String>,
    /// Its severity, or those of its findings.
    pub severity: Option<String>,
    /// A score.
    pub score: Option<String>,
    /// The evidence.
    pub findings: Option<String>,
}

impl AnswerConfig {
    /// The reference in the report.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (String, String)> {
        [
            ("verdict path", &self.verdict),
            ("flagged path", &self.flagged),
            ("severity path", &self.severity),
            ("score path", &self.score),
        ]
        .into_iter()
        .filter_map(|(key, path)| Some((key.to_owned(), path.clone()?)))
    }
}

/// The paths, parsed.
#[derive(Debug)]
pub(super) struct AnswerReader {
    verdict: Option<JsonPath>,
    flagged: Option<Flagged>,
    severity: Option<JsonPath>,
    score: Option<JsonPath>,
    findings: Option<JsonPath>,
    detector: &'static str,
}

/// The place where an answer says whether it is a flag.
#[derive(Debug)]
pub(super) struct Flagged {
    path: JsonPath,
    written: String,
    negated: bool,
    /// The verdict that a word means.
    pub(super) words: BTreeMap<String, Verdict>,
}

impl Flagged {
    pub(super) fn parse(text: &str) -> Result<Flagged, String> {
        let plain = text.strip_prefix('!').unwrap_or(text);
        let path = JsonPath::parse(plain).map_err(|error| error.to_string())?;
        let words = BTreeMap::new();
        Ok(Flagged { path, written: text.to_owned(), negated: plain != text, words })
    }

    /// If the path leads to several values, one flag among them is enough.
    pub(super) fn read(&self, answer: &Value) -> Result<Verdict, String> {
        let found = self.path.find(answer);
        let verdicts =
            found.iter().map(|one| self.read_one(one)).collect::<Result<Vec<bool>, String>>()?;
        match verdicts.as_slice() {
            [] => Err(self.nothing()),
            some if some.contains(&true) => Ok(Verdict::Flag),
            _ => Ok(Verdict::Pass),
        }
    }

    fn read_one(&self, found: &Value) -> Result<bool, String> {
        let flagged = match found {
            Value::String(word) if self.words.contains_key(word) => match self.words[word] {
                Verdict::Flag => true,
                Verdict::Pass => false,
                other => return Err(format!("the scanner answered {word:?}: {}", other.name())),
            },
            Value::Bool(found) => *found,
            Value::Array(list) => !list.is_empty(),
            Value::Number(number) => number.as_f64() != Some(0.0),
            Value::Null => return Err(self.nothing()),
            other => return Err(format!("{} is not a verdict", super::text(&other.to_string()))),
        };
        Ok(flagged ^ self.negated)
    }

    fn nothing(&self) -> String {
        format!("the scanner gave no verdict: nothing at {}", self.written)
    }
}

/// The severities and the score of an answer, where its paths lead.
#[derive(Default)]
pub(super) struct Rated {
    /// The highest; `none` where the list of findings is present and empty.
    pub(super) severity: Option<String>,
    /// All of them, if they differ.
    pub(super) severities: Vec<String>,
    pub(super) score: Option<f64>,
    pub(super) lacks: Lacks,
    /// True if the paths lead to empty lists: nothing was found.
    found_nothing: bool,
}

impl Rated {
    /// Reads an answer. A part of it without the key at the end of a path is not one without findings.
    pub(super) fn read(
        severity: Option<&JsonPath>,
        score: Option<&JsonPath>,
        answer: &Value,
    ) -> Rated {
        let mut rated = Rated { found_nothing: true, ..Rated::default() };
        if let Some((found, complete)) = severity.map(|path| path.find_each(answer)) {
            let known: Vec<String> = found.iter().copied().filter_map(severity_text).collect();
            rated.lacks.severity = !complete || known.len() < found.len();
            let is_empty = found.is_empty() && complete;
            rated.severity = match is_empty {
                true => Some(NOTHING_FOUND.to_owned()),
                false => most_severe(known.iter().map(String::as_str)).map(str::to_owned),
            };
            let different: BTreeSet<String> = known.into_iter().collect();
            if different.len() > 1 {
                rated.severities = different.into_iter().collect();
            }
            rated.found_nothing &= is_empty;
        }
        if let Some((found, complete)) = score.map(|path| path.find_each(answer)) {
            let known: Vec<f64> = found.iter().filter_map(|one| one.as_f64()).collect();
            rated.lacks.score = !complete || known.len() < found.len();
            rated.found_nothing &= found.is_empty() && complete;
            rated.score = known.into_iter().reduce(f64::max);
        }
        rated.found_nothing &= severity.is_some() || score.is_some();
        rated
    }
}

/// The severity of an answer whose list of findings is empty.
const NOTHING_FOUND: &str = "none";

/// A severity as decisions name it: a string, or a number.
fn severity_text(found: &Value) -> Option<String> {
    match found {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(match number.as_f64() {
            Some(whole) if number.is_f64() && whole.fract() == 0.0 => format!("{whole:.0}"),
            _ => number.to_string(),
        }),
        _ => None,
    }
}

impl AnswerReader {
    pub(super) fn new(
        config: &AnswerConfig,
        detector: &'static str,
    ) -> Result<AnswerReader, EvalError> {
        let wrong = |key: &str, error: String| {
            EvalError::Config(format!("system: {detector}: answer: {key}: {error}"))
        };
        let path = |key: &str, text: &Option<String>| {
            let parsed = text.as_deref().map(JsonPath::parse).transpose();
            parsed.map_err(|error| wrong(key, error.to_string()))
        };
        let flagged = config.flagged.as_deref().map(Flagged::parse).transpose();
        let reader = AnswerReader {
            verdict: path("verdict", &config.verdict)?,
            flagged: flagged.map_err(|error| wrong("flagged", error))?,
            severity: path("severity", &config.severity)?,
            score: path("score", &config.score)?,
            findings: path("findings", &config.findings)?,
            detector,
        };
        let says = reader.verdict.is_some() || reader.flagged.is_some();
        if !says && reader.severity.is_none() && reader.score.is_none() {
            let message = "give verdict, flagged, severity or score: where the verdict is";
            return Err(EvalError::Config(format!("system: {detector}: answer: {message}")));
        }
        Ok(reader)
    }

    /// Reads an answer.
    pub(super) fn read(&self, answer: &Value) -> Result<Answer, String> {
        let rated = Rated::read(self.severity.as_ref(), self.score.as_ref(), answer);
        let verdict = match (&self.verdict, &self.flagged) {
            (Some(path), _) => Some(combined(&path.find(answer))?),
            (None, Some(flagged)) => Some(flagged.read(answer)?),
            (None, None) => rated.found_nothing.then_some(Verdict::Pass),
        };
        let findings = self.findings.iter().flat_map(|path| path.find(answer));
        Ok(Answer {
            reports: vec![DetectorReport {
                detector: self.detector.to_owned(),
                verdict,
                severity: rated.severity,
                severities: rated.severities,
                score: rated.score,
                lacks: rated.lacks,
                findings: findings.map(super::evidence).collect(),
            }],
        })
    }
}

/// Several verdicts as one: a flag is enough, and a failure among silent ones is a failure.
fn combined(found: &[&Value]) -> Result<Verdict, String> {
    let verdicts = found.iter().map(|one| stated(one)).collect::<Result<Vec<Verdict>, String>>()?;
    [Verdict::Flag, Verdict::Error, Verdict::Pass, Verdict::Unsupported]
        .into_iter()
        .find(|verdict| verdicts.contains(verdict))
        .ok_or_else(|| "the scanner gave no verdict".to_owned())
}

fn stated(found: &Value) -> Result<Verdict, String> {
    serde_json::from_value(found.clone()).map_err(|_| {
        let found = super::text(&found.to_string());
        format!("{found} is not a verdict; they are flag, pass, unsupported and error")
    })
}

/// The parts of an entry that a template shows.
#[derive(Debug)]
pub(super) struct Question {
    shows_result: bool,
    shows_instructions: bool,
}

impl Question {
    /// Looks at a template; one that names an unknown place is refused.
    pub(super) fn new(template: &Value) -> Result<Question, String> {
        template::fill_json(template, &places(&ScanInput::default(), 0))?;
        let written = template.to_string();
        Ok(Question {
            shows_result: written.contains("{result}"),
            shows_instructions: written.contains("{instructions}"),
        })
    }

    /// The values of one entry, unless the template cannot show all of it.
    pub(super) fn values(&self, input: &ScanInput, run: u32) -> Result<Values, Unshown> {
        if input.result.is_some() && !self.shows_result
            || input.instructions.is_some() && !self.shows_instructions
        {
            return Err(Unshown);
        }
        Ok(places(input, run))
    }
}

/// The template does not show all that an entry consists of.
#[derive(Debug, PartialEq)]
pub(super) struct Unshown;

impl Unshown {
    /// The abstention that follows.
    pub(super) fn answer(&self, detector: &str) -> Answer {
        let message = "the request does not show all that this entry consists of".to_owned();
        Answer {
            reports: vec![DetectorReport {
                detector: detector.to_owned(),
                verdict: Some(Verdict::Unsupported),
                findings: vec![DetectorFinding { message, ..DetectorFinding::default() }],
                ..DetectorReport::default()
            }],
        }
    }
}

/// The places of a template, with their values.
pub(super) fn places(input: &ScanInput, run: u32) -> Values {
    let tool = &input.tool;
    let peers: Vec<Value> = input
        .peers
        .iter()
        .map(|peer| json!({"server": peer.server, "tool": definition(&peer.tool)}))
        .collect();
    [
        ("id", json!(input.id)),
        ("run", json!(run)),
        ("server", json!(input.server)),
        ("name", json!(tool.name)),
        ("description", json!(tool.description)),
        ("schema", tool.input_schema.clone().unwrap_or(Value::Null)),
        ("tool", definition(tool)),
        ("peers", Value::Array(peers)),
        ("before", input.before.as_ref().map_or(Value::Null, definition)),
        ("result", json!(input.result)),
        ("instructions", json!(input.instructions)),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// A tool as the protocol spells it.
pub(super) fn definition(tool: &Tool) -> Value {
    let mut fields = Map::new();
    let mut add = |key: &str, value: Option<Value>| {
        fields.extend(value.map(|value| (key.to_owned(), value)));
    };
    add("name", Some(json!(tool.name)));
    add("title", tool.title.as_ref().map(|title| json!(title)));
    add("description", Some(json!(tool.description)));
    // The protocol requires a schema, and scanners rely on it.
    add(
        "inputSchema",
        Some(tool.input_schema.clone().unwrap_or_else(|| json!({"type": "object"}))),
    );
    add("outputSchema", tool.output_schema.clone());
    add("annotations", tool.annotations.clone());
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_finds_nothing_and_a_missing_one_is_not_a_pass() {
        let read = |severity: &str, score: &str, answer: &Value| {
            let path = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            let config = AnswerConfig {
                severity: path(severity),
                score: path(score),
                ..AnswerConfig::default()
            };
            let read = AnswerReader::new(&config, "mcp").unwrap().read(answer).unwrap();
            let report = read.reports[0].clone();
            (report.verdict, report.severity, report.score, report.lacks)
        };
        let (none, nothing) = (Lacks::default(), json!({"f": []}));
        let text = |severity: &str| Some(severity.to_owned());
        let pass = Some(Verdict::Pass);
        assert_eq!(read("f[*].sev", "", &nothing), (pass, text("none"), None, none));
        assert_eq!(read("", "f[*].risk", &nothing), (pass, None, None, none));
        let found = json!({"f": [{"sev": 9, "risk": 1}, {"sev": 10.0, "risk": 2}]});
        assert_eq!(read("f[*].sev", "f[*].risk", &found), (None, text("10"), Some(2.0), none));
        let no_severity = Lacks { severity: true, score: false };
        for failed in [
            json!({"error": "no model"}),
            json!({"f": null}),
            json!({"f": [{"sev": null}]}),
            json!({"f": [{"sev": {"level": "high"}}]}),
        ] {
            assert_eq!(read("f[*].sev", "", &failed), (None, None, None, no_severity), "{failed}");
        }
        let partly = json!({"f": [{"sev": "low"}, {"error": "timeout"}]});
        assert_eq!(read("f[*].sev", "", &partly), (None, text("low"), None, no_severity));
        let no_score = Lacks { severity: false, score: true };
        let failed = json!({"f": [], "error": "no model"});
        assert_eq!(read("", "risk", &failed), (None, None, None, no_score));
    }

    #[test]
    fn one_flag_among_several_is_enough_and_the_highest_score_counts() {
        let read = |config: AnswerConfig, answer: &Value| {
            let reader = AnswerReader::new(&config, "http").unwrap();
            reader.read(answer).map(|answer| (answer.reports[0].verdict, answer.reports[0].score))
        };
        let flagged = |path: &str| AnswerConfig {
            flagged: Some(path.to_owned()),
            score: Some("f[*].score".to_owned()),
            ..AnswerConfig::default()
        };
        let worded =
            |path: &str| AnswerConfig { verdict: Some(path.to_owned()), ..AnswerConfig::default() };
        let mixed = json!({"f": [
            {"bad": false, "safe": true, "score": 1, "said": "pass"},
            {"bad": true, "safe": false, "score": 9, "said": "flag"},
            {"bad": false, "safe": true, "score": 3, "said": "error"},
        ]});
        let (flag, pass) = (Some(Verdict::Flag), Some(Verdict::Pass));
        assert_eq!(read(flagged("f[*].bad"), &mixed), Ok((flag, Some(9.0))));
        assert_eq!(read(flagged("!f[*].safe"), &mixed), Ok((flag, Some(9.0))));
        assert_eq!(read(worded("f[*].said"), &mixed), Ok((flag, None)));
        let quiet =
            json!({"f": [{"bad": false, "said": "unsupported"}, {"bad": 0, "said": "pass"}]});
        assert_eq!(read(flagged("f[*].bad"), &quiet), Ok((pass, None)));
        assert_eq!(read(worded("f[*].said"), &quiet), Ok((pass, None)));
        for broken in [json!({"f": []}), json!({"f": [{"bad": null}, {"bad": false}]})] {
            assert!(read(flagged("f[*].bad"), &broken).unwrap_err().contains("no verdict"));
        }
        assert!(read(worded("f[*].said"), &json!({"f": [{"said": "pass"}, {"said": 1}]})).is_err());
    }
}
