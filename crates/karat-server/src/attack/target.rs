//! The targets of attacks.

use std::time::Duration;

use karat_mcp::Awaited;
use serde_json::{Map, Value};

use super::attempts::Attempt;
use crate::observation::Outcome;
use crate::probe::live::{CallResult, Flooded, LiveServer, Rebound};
use crate::probe::reaction;

/// The attack target: a live server or a simulated one.
pub(super) trait AttackTarget {
    /// Makes one call.
    fn call(
        &self,
        tool: &str,
        attempt: &Attempt,
    ) -> impl Future<Output = Result<CallResult, String>> + Send;

    /// Makes many calls at once; returns the state of the server afterwards, and what was seen.
    fn flood(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        count: usize,
        limit: Duration,
    ) -> impl Future<Output = Result<(Flooded, String), String>> + Send;

    /// Opens a session as a page of another site would whose name leads to the server.
    fn rebind(&self) -> impl Future<Output = Rebound> + Send;
}

impl AttackTarget for LiveServer {
    /// A connection that failed does not mean that the server went down with it, so that is checked.
    async fn call(&self, tool: &str, attempt: &Attempt) -> Result<CallResult, String> {
        // Boxed, because the chain of nested futures is longer than the compiler follows by default.
        let call: Awaited<'_, Result<CallResult, String>> =
            Box::pin(LiveServer::call(self, tool, &attempt.arguments));
        let mut called = call.await?;
        if let Outcome::Transport { why } = &called.outcome
            && reaction::http_status(why).is_none()
            && !self.is_alive().await
        {
            called.outcome = Outcome::Crash { why: why.clone() };
            self.renew().await;
        }
        Ok(called)
    }

    async fn flood(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        count: usize,
        limit: Duration,
    ) -> Result<(Flooded, String), String> {
        // The flood is not to blame for what an earlier call did to the server.
        if !self.is_alive().await {
            self.renew().await;
        }
        let flooded = LiveServer::flood(self, tool, arguments, count, limit).await?;
        let seconds = self.call_timeout().as_secs_f64();
        // The number of answers may differ between runs; whether the server survives may not.
        let saw = match &flooded {
            Flooded::Answered => "the server answered afterwards".to_owned(),
            Flooded::Ended { how, has_cancelled: false } => {
                format!("the server ended under the calls: {how}")
            }
            Flooded::Ended { how, has_cancelled: true } => format!(
                "the server ended after calls without an answer within {seconds} s were cancelled: {how}"
            ),
            Flooded::Silent => format!(
                "the server did not answer a ping for {} s afterwards",
                limit.max(self.call_timeout()).as_secs_f64()
            ),
        };
        Ok((flooded, saw))
    }

    async fn rebind(&self) -> Rebound {
        LiveServer::rebind(self).await
    }
}
