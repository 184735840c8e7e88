//! A system behind an HTTP endpoint: one request for each question.
//!
//! `http = { url = "http://127.0.0.1:8080/search?q={query}", headers = { … }, answer = { … } }`. A
//! status of 400 and above is a failure of that question, never an answer.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use karat_io::Failure;
use karat_io::http::{self, Body, Client, Request};
use karat_io::interpolate::{Variables, environment};
use karat_io::redact::{HIDDEN, Redactor};
use karat_io::secrets;
use karat_io::template::{self, Template, fill_json, percent_encoded};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Values;

/// `http = { … }` of a system; `A` reads the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig<A> {
    /// The address. Places such as `{query}` are filled in, percent-encoded; `${VAR}` comes from the
    /// environment.
    pub url: String,
    /// The method; by default `GET`, or `POST` if there is a body.
    pub method: Option<String>,
    /// Headers; `${VAR}` comes from the environment.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// A JSON body with the same places.
    pub body: Option<Value>,
    /// The number of redirects that are followed; none by default.
    #[serde(default)]
    pub redirects: usize,
    /// The rules for reading the answer.
    #[serde(default)]
    pub answer: A,
}

impl<A> HttpConfig<A> {
    /// The method of the requests.
    pub(crate) fn method(&self) -> &str {
        let default = if self.body.is_some() { "POST" } else { "GET" };
        self.method.as_deref().unwrap_or(default)
    }

    /// Makes a request of these values and returns it as text: for finding mistakes before anything is
    /// asked. A variable that is not set is an error later, where its value is needed; the address is
    /// checked if all of its variables are set.
    ///
    /// # Errors
    /// If the address is not valid or a place is unknown.
    pub fn preview(&self, values: &Values) -> Result<String, String> {
        let folder = Path::new("");
        let request = self.request(&self.template(folder, &|_| Some("x".to_owned()))?, values)?;
        http::check_method(&request.method).map_err(|error| format!("method: {error}"))?;
        if let Ok(url) = self.template(folder, &environment) {
            self.check_url(&url)?;
        }
        let body = request.body.map(|body| String::from_utf8_lossy(&body.bytes).into_owned());
        Ok(format!("{} {}", request.url, body.unwrap_or_default()))
    }

    /// Checks the address with its variables replaced; the message shows the configured one.
    fn check_url(&self, url: &Template) -> Result<(), String> {
        let Ok(filled) = url.fill(|_| Ok::<_, Infallible>("1".to_owned()));
        http::check_url(&filled).map_err(|error| format!("url {:?}: {error}", self.describe()))
    }

    /// The settings as the report shows them: no header values, and the address as it is written.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::from([("method".to_owned(), self.method().to_owned())]);
        settings.extend(self.body.as_ref().map(|body| ("body".to_owned(), body.to_string())));
        settings
    }

    /// The address as it is written, without the secrets that are written there.
    pub fn describe(&self) -> String {
        let mut shown = self.url.clone();
        for part in secrets::in_urls(&self.url).into_iter().rev() {
            // A place or a variable is not a secret.
            if !self.url[part.clone()].contains('{') {
                shown.replace_range(part, HIDDEN);
            }
        }
        shown
    }

    /// The address with its variables replaced, as a template.
    fn template(
        &self,
        folder: &Path,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Template, String> {
        // A brace in a value is not a placeholder.
        let escaped =
            |name: &str| variable(name).map(|value| value.replace('{', "{{").replace('}', "}}"));
        let url = Variables::new(&escaped, folder).interpolate(&self.url);
        Template::parse(&url.map_err(|error| format!("url: {error}"))?.text)
    }

    fn request(&self, url: &Template, values: &Values) -> Result<Request, String> {
        let url = url.fill(|place| match values.get(place) {
            Some(value) => Ok(percent_encoded(&template::plain(value))),
            None => Err(template::unknown(place, values)),
        })?;
        let body = self.body.as_ref().map(|body| fill_json(body, values)).transpose()?;
        Ok(Request { method: self.method().to_owned(), url, body: body.as_ref().map(Body::json) })
    }
}

/// An endpoint that can be asked.
pub struct HttpEndpoint<A> {
    config: HttpConfig<A>,
    url: Template,
    client: Client,
}

impl<A: Clone> HttpEndpoint<A> {
    /// Prepares the client; nothing is sent yet. `folder` is the project folder.
    ///
    /// # Errors
    /// If a variable of the environment is missing, or the settings are not valid.
    pub fn new(
        config: &HttpConfig<A>,
        folder: &Path,
        timeout: Duration,
    ) -> Result<HttpEndpoint<A>, String> {
        let options = http::Options {
            timeout,
            redirects: config.redirects,
            headers: config.headers.clone(),
            ..http::Options::default()
        };
        let url = config.template(folder, &environment)?;
        config.check_url(&url)?;
        let variables = Variables::new(&environment, folder);
        let mut client = Client::with_variables(&options, &variables)?;
        let redactor = client.redactor_mut();
        let plain = variables.interpolate(&config.url).map_err(|error| error.to_string())?;
        plain.used.iter().for_each(|used| redactor.add_used(used));
        secrets::in_urls(&plain.text).into_iter().for_each(|part| redactor.add(&plain.text[part]));
        Ok(HttpEndpoint { url, client, config: config.clone() })
    }

    /// Sends one question and returns the body of the answer.
    ///
    /// # Errors
    /// If there is no answer, or the endpoint refuses.
    pub async fn ask(&self, values: &Values) -> Result<Vec<u8>, Failure> {
        let request = self.config.request(&self.url, values).map_err(Failure::lost)?;
        Ok(self.client.send(&request).await?.body)
    }

    /// Removes the secrets of the request from texts.
    pub fn redactor(&self) -> &Redactor {
        self.client.redactor()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(value: Value) -> HttpConfig<()> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn places_are_filled_and_encoded() {
        let config = config(json!({
            "url": "http://127.0.0.1:1/s?q={query}&n={limit}",
            "body": {"text": "{query}", "top": "{limit}"}, "answer": null
        }));
        let values = json!({"query": "a&b \"c\"", "limit": 7}).as_object().unwrap().clone();
        let url = Template::parse(&config.url).unwrap();
        let request = config.request(&url, &values).unwrap();
        assert_eq!(request.url, "http://127.0.0.1:1/s?q=a%26b%20%22c%22&n=7");
        assert_eq!(request.method, "POST");
        let body: Value = serde_json::from_slice(&request.body.unwrap().bytes).unwrap();
        assert_eq!(body, json!({"text": "a&b \"c\"", "top": 7}));
    }

    #[test]
    fn secrets_of_the_address_are_not_shown() {
        let written = "http://me:passw0rd1@h/s?q={query}&api_key=k3y-of-mine-1&token=${TOKEN}";
        let config = config(json!({"url": written, "answer": null}));
        let shown = config.describe();
        assert!(!shown.contains("passw0rd1") && !shown.contains("k3y-of-mine-1"), "{shown}");
        assert!(shown.contains("q={query}") && shown.contains("token=${TOKEN}"), "{shown}");
        let written = json!({"url": "http://h/?api_key=k3y-of-mine-1", "answer": null});
        let config = serde_json::from_value::<HttpConfig<()>>(written).unwrap();
        let endpoint = HttpEndpoint::new(&config, Path::new("/"), Duration::from_secs(1)).unwrap();
        assert_eq!(endpoint.redactor().hide("no key k3y-of-mine-1"), "no key [redacted]");
    }

    #[test]
    fn the_workspace_is_the_folder_of_the_project() {
        let written = json!({"url": "http://h${workspaceFolder}/s", "answer": null});
        let endpoint =
            HttpEndpoint::new(&config(written), Path::new("/project"), Duration::from_secs(1));
        let url = endpoint.unwrap().url.fill(|_| Err(())).unwrap();
        assert_eq!(url, "http://h/project/s");
    }

    #[test]
    fn mistakes_are_found_before_anything_is_asked() {
        let values = json!({"query": "q"}).as_object().unwrap().clone();
        for (url, text) in [
            ("127.0.0.1/{query}", "url"),
            ("http://127.0.0.1/{quary}", "{quary}"),
            ("file:///{query}", "http"),
        ] {
            let error = config(json!({"url": url, "answer": null})).preview(&values).unwrap_err();
            assert!(error.contains(text), "{url}: {error}");
        }
        let error = config(json!({"url": "http://h/", "method": "G T", "answer": null}));
        let error = error.preview(&values).unwrap_err();
        assert_eq!(error, "method: \"G T\" is not an HTTP method");
        for url in
            ["http://h/${NO_SUCH_1}/{query}", "${NO_SUCH_1}/{query}", "http://h:${NO_SUCH_1}/"]
        {
            config(json!({"url": url, "answer": null})).preview(&values).unwrap();
        }
        // Its default is known.
        let error = config(json!({"url": "${NO_SUCH_1:-h}/{query}", "answer": null}));
        assert!(error.preview(&values).unwrap_err().contains("not a URL"));
    }

    #[test]
    fn the_address_is_checked_with_the_values_of_its_variables() {
        let new = |url: &str| {
            let config = config(json!({"url": url, "answer": null}));
            HttpEndpoint::new(&config, Path::new("/"), Duration::from_secs(1)).map(drop)
        };
        new("${NO_SUCH_1:-http://127.0.0.1}:${NO_SUCH_2:-80}/{query}").unwrap();
        // The values of variables are not shown.
        let error = new("${PATH}/{query}").unwrap_err();
        let shown = "url \"${PATH}/{query}\": not a URL: relative URL without a base";
        assert_eq!(error, shown);
        let error = new("${NO_SUCH_1}/{query}").unwrap_err();
        assert!(error.starts_with("url: the environment variable NO_SUCH_1 is not set"), "{error}");
    }
}
