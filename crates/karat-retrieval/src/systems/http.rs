//! A search that answers over HTTP.
//!
//! `http = { url = "http://127.0.0.1:8080/search?q={query}&limit={limit}" }`, with `method`,
//! `headers` (values from the environment as `${VAR}`), a JSON `body` with the same places, and
//! `answer`, which says where the ranked ids are ([`super::answer`]).

use std::collections::BTreeMap;
use std::time::Duration;

use karat_io::Failure;
use karat_io::http::{self, Body, Client, Request};
use karat_io::interpolate::{Variables, environment};
use karat_io::template::{self, Template, fill_json, percent_encoded};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answer::{AnswerConfig, AnswerReader};
use crate::system::{Question, Ranking};

/// `http = { … }` of a project entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    /// Where to ask; `{query}`, `{limit}`, `{id}` and `{run}` are filled in, percent-encoded.
    pub url: String,
    /// `GET`, or `POST` where there is a body, unless said otherwise.
    #[serde(default)]
    pub method: Option<String>,
    /// Headers; `${VAR}` comes from the environment.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// A JSON body with the same places.
    #[serde(default)]
    pub body: Option<Value>,
    /// How many redirects are followed; none unless said otherwise.
    #[serde(default)]
    pub redirects: usize,
    /// Where in the answer the ranked ids are.
    #[serde(default)]
    pub answer: AnswerConfig,
}

/// What can be filled in.
fn values(run: u32, question: &Question) -> Map<String, Value> {
    let values = json!({
        "query": question.query, "limit": question.limit, "id": question.id, "run": run,
    });
    match values {
        Value::Object(values) => values,
        _ => Map::new(),
    }
}

impl HttpConfig {
    /// Finds what is wrong before anything is asked; the environment is not looked at.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(&self) -> Result<(), String> {
        let question = Question { id: "q".to_owned(), query: "QUERY".to_owned(), limit: 1 };
        let url = self.url_template(&|_| Some("x".to_owned()))?;
        let request = self.request(&url, 0, &question)?;
        http::check_url(&request.url).map_err(|error| format!("url {:?}: {error}", self.url))?;
        let body = request.body.map(|body| String::from_utf8_lossy(&body.bytes).into_owned());
        if !request.url.contains("QUERY") && !body.is_some_and(|body| body.contains("QUERY")) {
            return Err("neither url nor body has {query} in it".to_owned());
        }
        self.answer.check()
    }

    /// What the report says of it: no header values, and the URL as the project has it.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let mut settings: BTreeMap<String, String> = self.answer.settings().collect();
        settings.insert("method".to_owned(), self.method().to_owned());
        if let Some(body) = &self.body {
            settings.insert("body".to_owned(), body.to_string());
        }
        settings
    }

    /// The URL with its variables replaced, as a template.
    fn url_template(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Template, String> {
        let here = std::env::current_dir().unwrap_or_default();
        let url = Variables::new(lookup, &here).interpolate(&self.url);
        Template::parse(&url.map_err(|error| error.to_string())?.text)
    }

    fn method(&self) -> &str {
        let default = if self.body.is_some() { "POST" } else { "GET" };
        self.method.as_deref().unwrap_or(default)
    }

    fn request(&self, url: &Template, run: u32, question: &Question) -> Result<Request, String> {
        let values = values(run, question);
        let url = url.fill(|place| match values.get(place) {
            Some(value) => Ok(percent_encoded(&template::plain(value))),
            None => Err(template::unknown(place, &values)),
        })?;
        let body = self.body.as_ref().map(|body| fill_json(body, &values)).transpose()?;
        Ok(Request { method: self.method().to_owned(), url, body: body.as_ref().map(Body::json) })
    }
}

/// An endpoint that is ready to be asked.
pub struct HttpSearch {
    config: HttpConfig,
    url: Template,
    client: Client,
    reader: AnswerReader,
}

impl HttpSearch {
    /// Prepares the client; nothing is sent yet.
    ///
    /// # Errors
    /// When a variable of the environment is missing, or the configuration is wrong.
    pub fn new(
        config: &HttpConfig,
        reader: AnswerReader,
        timeout: Duration,
    ) -> Result<HttpSearch, String> {
        let options = http::Options {
            timeout,
            redirects: config.redirects,
            headers: config.headers.clone(),
            ..http::Options::default()
        };
        // A brace in a value is not a placeholder.
        let escaped =
            |name: &str| environment(name).map(|value| value.replace('{', "{{").replace('}', "}}"));
        Ok(HttpSearch {
            url: config.url_template(&escaped)?,
            client: Client::new(&options)?,
            config: config.clone(),
            reader,
        })
    }

    /// Asks one question.
    pub async fn ask(&self, run: u32, question: &Question) -> Result<Ranking, Failure> {
        let request = self.config.request(&self.url, run, question).map_err(Failure::lost)?;
        let answer = self.client.send(&request).await?;
        self.reader.read(&answer.body).map_err(|failure| Failure {
            message: self.client.redactor().hidden(failure.message),
            ..failure
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(value: Value) -> HttpConfig {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn places_are_filled_and_encoded() {
        let config = config(json!({
            "url": "http://127.0.0.1:1/s?q={query}&n={limit}",
            "body": {"text": "{query}", "top": "{limit}", "run": "{run}"}
        }));
        config.check().unwrap();
        let question = Question { id: "q".to_owned(), query: "a&b \"c\"".to_owned(), limit: 7 };
        let url = Template::parse(&config.url).unwrap();
        let request = config.request(&url, 2, &question).unwrap();
        assert_eq!(request.url, "http://127.0.0.1:1/s?q=a%26b%20%22c%22&n=7");
        assert_eq!(request.method, "POST");
        let body: Value = serde_json::from_slice(&request.body.unwrap().bytes).unwrap();
        assert_eq!(body, json!({"text": "a&b \"c\"", "top": 7, "run": 2}));
    }

    #[test]
    fn what_cannot_be_asked_is_refused_before_anything_is() {
        for (value, words) in [
            (json!({"url": "127.0.0.1/{query}"}), "url"),
            (json!({"url": "http://127.0.0.1/"}), "{query}"),
            (json!({"url": "http://127.0.0.1/{quary}"}), "{quary}"),
            (json!({"url": "file:///{query}"}), "http"),
            (json!({"url": "http://h/{query}", "answer": {"ids": "a..b"}}), "path"),
        ] {
            let error = config(value.clone()).check().unwrap_err();
            assert!(error.contains(words), "{value}: {error}");
        }
        config(json!({"url": "http://h/${KEY}/{query}"})).check().unwrap();
    }
}
