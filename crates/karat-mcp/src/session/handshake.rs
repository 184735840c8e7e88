//! The first messages of a session: the handshake of older revisions, and `server/discover` of newer ones.

use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, ErrorCode, Implementation, InitializeRequestParams, RequestMetaObject,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::requests::{Outgoing, TASKS_EXTENSION};
use super::{Link, Session};
use crate::error::{CallError, StartError, quoted};
use crate::reply::ServerInfo;
use crate::revision::Revision;

/// The key of the client's capabilities in the metadata of a request.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

impl Session {
    /// Without a fixed revision, tries a handshake, which most servers have, and then without one.
    pub(super) async fn negotiate(&mut self, protocol: Option<Revision>) -> Result<(), StartError> {
        match protocol {
            Some(revision) if revision.has_handshake() => self.initialize(revision, true).await,
            Some(revision) => self.discover(revision).await,
            None => match self.initialize(Revision::NEWEST_WITH_HANDSHAKE, false).await {
                Err(refused @ StartError::Handshake { .. }) if self.calls.ended().is_none() => {
                    // If both fail, the first refusal says more.
                    self.discover(Revision::V2026_07_28).await.map_err(|_| refused)
                }
                other => other,
            },
        }
    }

    async fn initialize(&mut self, asked: Revision, forced: bool) -> Result<(), StartError> {
        let params = InitializeRequestParams::new(self.capabilities(), client_info())
            .with_protocol_version(asked.sdk());
        let answer = self.bootstrap("initialize", &params).await?;
        let answered = answer.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        let revision = match Revision::of(answered) {
            Some(revision) if revision.has_handshake() && (!forced || revision == asked) => {
                revision
            }
            _ => {
                return Err(StartError::Revision {
                    asked: asked.to_string(),
                    answered: match answered {
                        "" => "without naming a revision".to_owned(),
                        named => quoted(named),
                    },
                });
            }
        };
        let info = answer.get("serverInfo").cloned().unwrap_or_default();
        self.set_server(&answer, &info, revision);
        if let Link::Http(link) = &self.link {
            link.set_revision(revision);
        }
        self.notify("notifications/initialized", None).await.map_err(handshake)
    }

    async fn discover(&mut self, revision: Revision) -> Result<(), StartError> {
        let meta = RequestMetaObject::with_client_context(
            revision.sdk(),
            client_info(),
            self.capabilities(),
        );
        let Ok(Value::Object(meta)) = serde_json::to_value(&meta) else {
            return Err(StartError::Handshake {
                why: "the request metadata cannot be written as JSON".to_owned(),
            });
        };
        self.tasks_meta = Some(with_tasks(meta.clone()));
        self.meta = Some(meta);
        if let Link::Http(link) = &self.link {
            link.set_revision(revision);
        }
        let mut answer = self.opening("server/discover", &json!({})).await?;
        if answer.as_ref().is_err_and(|error| supports(error, revision)) {
            answer = self.opening("server/discover", &json!({})).await?;
        }
        let answer = object("server/discover", answer)?;
        let supported: Vec<&str> = answer
            .get("supportedVersions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if !supported.contains(&revision.name()) {
            return Err(StartError::Revision {
                asked: revision.to_string(),
                answered: quoted(&supported.join(", ")),
            });
        }
        let info = answer.pointer("/_meta/io.modelcontextprotocol~1serverInfo").cloned();
        self.set_server(&answer, &info.unwrap_or_default(), revision);
        Ok(())
    }

    async fn bootstrap<P: Serialize>(&self, method: &str, params: &P) -> Result<Value, StartError> {
        object(method, self.opening(method, params).await?)
    }

    /// The first request, before there is a session.
    async fn opening<P: Serialize>(
        &self,
        method: &str,
        params: &P,
    ) -> Result<Result<Value, CallError>, StartError> {
        let outgoing = Outgoing {
            method,
            name: None,
            headers: &[],
            params,
            // `start_timeout` covers all of it.
            timeout: Duration::from_secs(u64::from(u32::MAX)),
            progress: false,
            head: None,
            tasks: false,
        };
        Ok(self.exchange(outgoing).await?.outcome)
    }

    fn set_server(&mut self, answer: &Value, info: &Value, revision: Revision) {
        // A server that knows a secret may say it here as well as in an answer.
        let redactor = &self.calls.redactor;
        let text = |value: &Value, field: &str| {
            let text = value.get(field).and_then(Value::as_str)?;
            Some(redactor.hide(text).into_owned())
        };
        let mut capabilities = answer.get("capabilities").cloned().unwrap_or_default();
        redactor.hide_in(&mut capabilities);
        let server = ServerInfo {
            name: text(info, "name").unwrap_or_default(),
            title: text(info, "title"),
            version: text(info, "version").unwrap_or_default(),
            instructions: text(answer, "instructions"),
            revision,
            capabilities,
        };
        self.calls.set_revision(revision);
        self.server = server;
    }

    fn capabilities(&self) -> ClientCapabilities {
        serde_json::from_value(self.options.policies.capabilities()).unwrap_or_default()
    }
}

/// The metadata of a request that declares the tasks extension.
fn with_tasks(mut meta: Map<String, Value>) -> Map<String, Value> {
    let declared = meta.entry(CAPABILITIES).or_insert_with(|| json!({}));
    if let Some(declared) = declared.as_object_mut() {
        let extensions = declared.entry("extensions").or_insert_with(|| json!({}));
        if let Some(extensions) = extensions.as_object_mut() {
            extensions.insert(TASKS_EXTENSION.to_owned(), json!({}));
        }
    }
    meta
}

fn object(method: &str, answer: Result<Value, CallError>) -> Result<Value, StartError> {
    match answer {
        Ok(result) if result.is_object() => Ok(result),
        Ok(_) => {
            Err(StartError::Handshake { why: format!("the answer to {method} is not an object") })
        }
        Err(error) => Err(handshake(error)),
    }
}

/// True if a server refuses the revision of a request and yet names it as supported: one address may lead
/// to servers of several versions, and the protocol says to try again.
fn supports(error: &CallError, revision: Revision) -> bool {
    let CallError::Protocol { code, data: Some(data), .. } = error else { return false };
    let supported = data.get("supported").and_then(Value::as_array);
    *code == i64::from(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0)
        && supported.is_some_and(|all| all.iter().any(|name| name == revision.name()))
}

/// The name and version of this client.
fn client_info() -> Implementation {
    Implementation::new("karat", env!("CARGO_PKG_VERSION"))
}

fn handshake(error: CallError) -> StartError {
    match error {
        CallError::Transport { why } => StartError::NotStarted { why },
        CallError::Closed { why } => StartError::NotStarted { why },
        other => StartError::Handshake { why: other.to_string() },
    }
}

impl From<CallError> for StartError {
    fn from(error: CallError) -> Self {
        handshake(error)
    }
}
