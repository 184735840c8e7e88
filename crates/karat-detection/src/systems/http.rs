//! A scanner behind an HTTP endpoint: one request for each entry.
//!
//! The body is a template with places for the parts of an entry; the answer is JSON, read through paths.
//! A status of 400 and above is a failure of that question, never a verdict.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use karat_io::http::{Body, Client, Options, Request};
use karat_io::input::{self, Format};
use karat_io::{Failure, FailureClass};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answer::{AnswerConfig, AnswerReader, Question};
use crate::system::{Answer, Exhibit};
use karat_core::error::EvalError;

/// What the one detector of an endpoint is called.
pub const DETECTOR: &str = "http";

/// `http = { … }` of a system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    /// The place where to.
    pub url: String,
    /// How.
    #[serde(default = "default_method")]
    pub method: String,
    /// Headers; `${VAR}` in a value comes from the environment.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// What is sent: JSON with places such as `{tool}`. All that an entry consists of, where it is not
    /// given.
    #[serde(default = "default_body")]
    pub body: Value,
    /// The place where the answer says what.
    pub answer: AnswerConfig,
}

fn default_method() -> String {
    "POST".to_owned()
}

fn default_body() -> Value {
    let names = ["id", "server", "tool", "peers", "before", "result", "instructions"];
    names.iter().map(|name| ((*name).to_owned(), json!(format!("{{{name}}}")))).collect()
}

impl HttpConfig {
    fn question(&self) -> Result<Question, EvalError> {
        Question::new(self.body.clone())
            .map_err(|error| EvalError::Config(format!("system: http: body: {error}")))
    }

    pub(crate) fn check(&self) -> Result<(), EvalError> {
        self.question()?;
        AnswerReader::new(&self.answer, DETECTOR).map(|_| ())
    }

    /// The reference in the report.
    pub(crate) fn settings(&self) -> BTreeMap<String, String> {
        self.answer.settings().collect()
    }
}

/// An endpoint that can be asked.
#[derive(Debug)]
pub struct HttpScanner {
    client: Client,
    method: String,
    url: String,
    question: Question,
    answer: AnswerReader,
}

impl HttpScanner {
    /// Makes the client; nothing is asked yet.
    ///
    /// # Errors
    /// When the configuration is wrong, or a variable that a header needs is not set.
    pub fn new(config: &HttpConfig, timeout: Duration) -> Result<HttpScanner, EvalError> {
        let options = Options { timeout, headers: config.headers.clone(), ..Options::default() };
        let client = Client::new(&options)
            .map_err(|error| EvalError::Config(format!("system: http: {error}")))?;
        Ok(HttpScanner {
            client,
            method: config.method.clone(),
            url: config.url.clone(),
            question: config.question()?,
            answer: AnswerReader::new(&config.answer, DETECTOR)?,
        })
    }

    /// Asks about one entry.
    ///
    /// # Errors
    /// When there is no answer, or none that can be read.
    pub async fn ask(&self, run: u32, exhibit: &Exhibit) -> Result<Answer, Failure> {
        let body = match self.question.fill(exhibit, run) {
            Ok(body) => body,
            Err(unshown) => return Ok(unshown.answer(DETECTOR)),
        };
        let request = Request {
            method: self.method.clone(),
            url: self.url.clone(),
            body: Some(Body::json(&body)),
        };
        let answer = self.client.send(&request).await?;
        let invalid = |message: String| Failure::new(FailureClass::InvalidAnswer, message);
        let text = String::from_utf8(answer.body)
            .map_err(|_| invalid("the answer is not UTF-8".to_owned()))?;
        let value: Value = input::parse(Path::new("answer"), &text, Format::Json)
            .map_err(|error| invalid(format!("the answer is not JSON: {error}")))?;
        self.answer.read(&value).map_err(invalid)
    }
}
