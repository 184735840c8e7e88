//! A search that answers over HTTP.

use std::time::Duration;

use karat_core::adapter::http::{self, HttpEndpoint};
use karat_io::Failure;

use super::answer::{AnswerConfig, AnswerReader};
use crate::system::{Question, Ranking};

/// `http = { … }` of a project entry.
pub type HttpConfig = http::HttpConfig<AnswerConfig>;

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
    pub fn new(
        config: &HttpConfig,
        reader: AnswerReader,
        timeout: Duration,
    ) -> Result<HttpSearch, String> {
        Ok(HttpSearch { endpoint: HttpEndpoint::new(config, timeout)?, reader })
    }

    /// Asks one question.
    pub async fn ask(&self, run: u32, question: &Question) -> Result<Ranking, Failure> {
        let answer = self.endpoint.ask(&question.values(run)).await?;
        self.reader.read(&answer).map_err(|failure| Failure {
            message: self.endpoint.redactor().hidden(failure.message),
            ..failure
        })
    }
}
