//! A scanner behind an HTTP endpoint: one request for each entry.

use std::path::Path;
use std::time::Duration;

use karat_core::adapter::http::{self, HttpEndpoint};
use karat_core::error::EvalError;
use karat_detectors::ScanInput;
use karat_io::input;
use karat_io::{Failure, FailureClass};
use serde_json::{Value, json};

use super::answer::{AnswerConfig, AnswerReader, Question};
use crate::answer::Answer;

/// The name of the one detector of an endpoint.
pub(crate) const DETECTOR: &str = "http";

/// `http = { … }` of a system.
pub(crate) type HttpConfig = http::HttpConfig<AnswerConfig>;

/// The configuration with a body that shows a whole entry where none is given.
fn complete(config: &HttpConfig) -> HttpConfig {
    let names = ["id", "server", "tool", "peers", "before", "result", "instructions"];
    let whole = || names.iter().map(|name| (*name, json!(format!("{{{name}}}")))).collect();
    HttpConfig { body: Some(config.body.clone().unwrap_or_else(whole)), ..config.clone() }
}

fn question(config: &HttpConfig) -> Result<Question, EvalError> {
    let body = config.body.clone().unwrap_or_default();
    Question::new(&body).map_err(|error| EvalError::config(format!("system: http: body: {error}")))
}

/// Finds mistakes before anything is asked.
pub(crate) fn check(config: &HttpConfig) -> Result<(), EvalError> {
    let config = complete(config);
    question(&config)?;
    config
        .preview(&super::answer::places(&ScanInput::default(), 0))
        .map_err(|error| EvalError::config(format!("system: http: {error}")))?;
    AnswerReader::new(&config.answer, DETECTOR).map(drop)
}

/// An endpoint that can be asked.
pub struct HttpScanner {
    endpoint: HttpEndpoint<AnswerConfig>,
    question: Question,
    answer: AnswerReader,
}

impl HttpScanner {
    /// Prepares the client; nothing is asked yet.
    ///
    /// # Errors
    /// If the configuration is not valid, or a variable that it needs is not set.
    pub(crate) fn new(
        config: &HttpConfig,
        folder: &Path,
        timeout: Duration,
    ) -> Result<HttpScanner, EvalError> {
        let config = complete(config);
        let endpoint = HttpEndpoint::new(&config, folder, timeout)
            .map_err(|error| EvalError::config(format!("system: http: {error}")))?;
        let answer = AnswerReader::new(&config.answer, DETECTOR)?;
        Ok(HttpScanner { endpoint, question: question(&config)?, answer })
    }

    /// Asks about one entry.
    ///
    /// # Errors
    /// If there is no answer, or none that can be read.
    pub(crate) async fn ask(&self, run: u32, input: &ScanInput) -> Result<Answer, Failure> {
        let values = match self.question.values(input, run) {
            Ok(values) => values,
            Err(unshown) => return Ok(unshown.answer(DETECTOR)),
        };
        let answer = self.endpoint.ask(&values).await?;
        let invalid = |message: String| Failure::new(FailureClass::InvalidAnswer, message);
        let text =
            String::from_utf8(answer).map_err(|_| invalid("the answer is not UTF-8".to_owned()))?;
        let redactor = self.endpoint.redactor();
        let mut value: Value =
            input::parse_json_text(Path::new("answer"), &text).map_err(|error| {
                invalid(redactor.hidden(format!("the answer is not JSON: {error}")))
            })?;
        // Evidence is kept in journals and reports.
        redactor.hide_in(&mut value);
        self.answer.read(&value).map_err(invalid)
    }
}
