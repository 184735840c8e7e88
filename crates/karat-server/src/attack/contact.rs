//! Finds out whether a tool calls this machine at all through a parameter.
//!
//! The stand-in for a cloud's metadata is an address of this machine with the path of metadata. That nothing asked for
//! it says something of metadata only if the tool asks for other pages here; otherwise it may refuse this machine, or
//! fetch nothing.

use karat_mcp::Definition;

use super::attacks::Technique;
use super::attempts::{Plan, Planner};
use super::result::AttackResult;
use super::runner::AttackRunner;
use super::target::AttackTarget;

impl<T: AttackTarget> AttackRunner<'_, T> {
    /// Returns whether the tool calls this machine through the parameter of a result now, with one of the attempts of
    /// `ssrf-loopback`, which are not judged here.
    pub(super) async fn calls_this_machine(
        &mut self,
        tool: &Definition,
        result: &AttackResult,
    ) -> bool {
        let known = self.plain_call(tool).await.known;
        let planner = Planner { tool, site: self.site, known: &known, access: self.access };
        let Plan::Through(ways) = planner.plan(Technique::Loopback) else { return false };
        let of_result = ways.into_iter().filter(|way| {
            way.parameter.as_ref().map(|parameter| &parameter.name) == result.parameter.as_ref()
        });
        for attempt in of_result.flat_map(|way| way.attempts) {
            if self.is_out_of_time() {
                return false;
            }
            let since = self.site.listener.count();
            if self.target.call(tool.name(), &attempt).await.is_err() {
                return false;
            }
            if self.site.listener.was_asked(since, "/") {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use karat_core::observed::AttackStatus;
    use serde_json::{Map, Value, json};

    use super::super::attacks::ATTACKS;
    use super::super::attempts::{Access, Attempt};
    use super::super::canary_site::CanarySite;
    use super::super::config::Config;
    use super::super::runner::Memory;
    use super::*;
    use crate::observation::Outcome;
    use crate::probe::known_inputs::Successes;
    use crate::probe::live::{CallResult, Flooded, Rebound};
    use crate::probe::stop::Deadline;
    use crate::suggest::inputs::Surroundings;

    /// A server whose tool gets the pages of addresses that contain `ours`, except metadata.
    struct Fetcher<'a> {
        site: &'a CanarySite,
        ours: &'static str,
        /// True if it fails always in the same words.
        is_terse: bool,
    }

    impl Target for Fetcher<'_> {
        fn answer(&self, attempt: &Attempt) -> Outcome {
            let url = attempt.arguments.get("url").and_then(Value::as_str).unwrap_or_default();
            let path = url.splitn(4, '/').nth(3).map(|path| format!("/{path}"));
            let is_metadata = url.contains("/latest/") || url.contains("/computeMetadata/");
            let is_fetched = url.contains(self.ours) && !is_metadata;
            if let Some(path) = path.filter(|_| is_fetched) {
                self.site.listener.record(&path);
            }
            // The plain call fails too, at an address that is not here.
            let is_here = url.contains(&format!(":{}/", self.site.listener.port()));
            let said = match is_fetched {
                true => "a page",
                false if is_here || self.is_terse => "the address is refused",
                false => "unknown host",
            };
            let content = json!([{"type": "text", "text": said}]);
            Outcome::Result { result: json!({"content": content, "isError": !is_fetched}) }
        }
    }

    /// A server that answers HTTP requests with a status and nothing else.
    struct Closed(&'static str);

    impl Target for Closed {
        fn answer(&self, _: &Attempt) -> Outcome {
            Outcome::Transport { why: format!("HTTP status {}", self.0) }
        }
    }

    /// The part of a target that differs.
    trait Target: Sync {
        fn answer(&self, attempt: &Attempt) -> Outcome;
    }

    impl<T: Target> AttackTarget for T {
        async fn call(&self, _: &str, attempt: &Attempt) -> Result<CallResult, String> {
            let (latency, shown) = (Duration::ZERO, String::new());
            Ok(CallResult { outcome: self.answer(attempt), latency, shown, is_alive: true })
        }

        async fn flood(
            &self,
            _: &str,
            _: &Map<String, Value>,
            _: usize,
            _: Duration,
        ) -> Result<(Flooded, String), String> {
            Ok((Flooded::Answered, String::new()))
        }

        async fn rebind(&self) -> Rebound {
            Rebound::NotApplicable("it has no address")
        }
    }

    /// The results of the last of these attacks on a tool with the parameter `url`.
    async fn attack(target: &impl Target, site: &CanarySite, ids: &[&str]) -> Vec<AttackResult> {
        let schema = json!({"type": "object", "required": ["url"], "properties": {"url": {"type": "string"}}});
        let tool = Definition::new(json!({"name": "get", "inputSchema": schema})).unwrap();
        let mut runner = AttackRunner {
            target,
            site,
            config: &Config::default(),
            known: Some((&Successes::default(), &Surroundings::default())),
            access: Access { is_local: true, has_loopback: true, has_secret: true },
            shown: None,
            deadline: Deadline::after(None),
            memory: &mut Memory::default(),
        };
        let mut last = Vec::new();
        for id in ids {
            let attack = ATTACKS.iter().find(|attack| attack.id() == *id).unwrap();
            last = runner.attack(&tool, attack).await;
        }
        last
    }

    /// The results of `ssrf-metadata`, first without and then after `ssrf-loopback`.
    async fn results(ours: &'static str, is_terse: bool) -> Vec<AttackResult> {
        let site = CanarySite::prepare(&[], false).await.unwrap();
        let target = Fetcher { site: &site, ours, is_terse };
        let mut found = attack(&target, &site, &["ssrf-metadata"]).await;
        found.extend(attack(&target, &site, &["ssrf-loopback", "ssrf-metadata"]).await);
        assert_eq!(found.len(), 2);
        found
    }

    #[tokio::test]
    async fn a_server_that_refuses_every_request_holds_nothing() {
        let site = CanarySite::prepare(&[], false).await.unwrap();
        for status in ["400 Bad Request", "403 Forbidden", "422 Unprocessable Content"] {
            for id in ["ssrf-metadata", "command-injection", "absolute-path"] {
                for result in attack(&Closed(status), &site, &[id]).await {
                    let of = (status, &result.why);
                    assert_eq!(result.status, AttackStatus::NotExecuted, "{id}: {of:?}");
                }
            }
        }
    }

    #[tokio::test]
    async fn metadata_is_held_by_a_tool_that_fetches_other_pages_of_this_machine() {
        for ours in ["://127.0.0.1", "://[::ffff:"] {
            for is_terse in [false, true] {
                for result in results(ours, is_terse).await {
                    assert_eq!(result.status, AttackStatus::Held, "{ours} {is_terse}: {result:?}");
                }
            }
        }
    }

    #[tokio::test]
    async fn metadata_is_not_executed_on_a_tool_that_calls_nothing_here() {
        for result in results("://elsewhere", false).await {
            assert_eq!(result.status, AttackStatus::NotExecuted, "{result:?}");
            let why = result.why.unwrap_or_default();
            assert!(why.contains("called no address of this machine"), "{why}");
        }
    }
}
