//! A search that answers over HTTP.

use std::path::Path;
use std::time::Duration;

use karat_core::adapter::http::{self, HttpEndpoint};
use karat_io::Failure;
use serde_json::Value;

use super::answer::{AnswerConfig, AnswerReader};
use super::pages::{OFFSET, Pages};
use crate::ranking::{Question, Ranking};

/// `http = { … }` of a project entry.
pub(crate) type HttpConfig = http::HttpConfig<AnswerConfig>;

/// Finds mistakes before anything is asked; the environment is not looked at.
pub(crate) fn check(config: &HttpConfig) -> Result<(), String> {
    if !config.preview(&Question::sample().values(0))?.contains(Question::SAMPLE) {
        return Err("neither url nor body has {query} in it".to_owned());
    }
    config.answer.check()
}

/// An endpoint that is ready to be asked.
pub struct HttpSearch {
    endpoint: HttpEndpoint<AnswerConfig>,
    reader: AnswerReader,
}

impl HttpSearch {
    /// Prepares the client; nothing is sent yet.
    ///
    /// # Errors
    /// If a variable of the environment is missing, or the configuration is not valid.
    pub(crate) fn new(
        config: &HttpConfig,
        mut reader: AnswerReader,
        folder: &Path,
        timeout: Duration,
    ) -> Result<HttpSearch, String> {
        let body = config.body.as_ref().map(ToString::to_string).unwrap_or_default();
        reader.by_offset = config.url.contains(OFFSET) || body.contains(OFFSET);
        Ok(HttpSearch { endpoint: HttpEndpoint::new(config, folder, timeout)?, reader })
    }

    /// Asks one question.
    pub(crate) async fn ask(&self, run: u32, question: &Question) -> Result<Ranking, Failure> {
        let mut pages = Pages::new(&self.reader, question, run, Value::from(""));
        while let Some(values) = pages.next() {
            let answer = self.endpoint.ask(&values).await?;
            let page = self.reader.read(&answer).map_err(|failure| Failure {
                message: self.endpoint.redactor().hidden(failure.message),
                ..failure
            })?;
            pages.add(page);
        }
        Ok(pages.into_ranking())
    }
}
