//! Limits on the output of a server.

/// Limits on the output of a server. A call beyond them fails; memory does not grow.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::{Value, json};
/// # use karat_mcp::serve::{self, Context, Offer, ProtocolError, Respond};
/// # struct Echo;
/// # impl Respond for Echo {
/// #     async fn call(&self, _: &Context, _: &str, arguments: &Value) -> Result<Value, ProtocolError> {
/// #         Ok(json!({"content": [{"type": "text", "text": arguments["text"]}]}))
/// #     }
/// # }
/// # let tools = ["echo", "other"].map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
/// # let offer = Offer { name: "echo".to_owned(), tools: tools.to_vec(), ..Offer::default() };
/// # let (client, server) = tokio::io::duplex(1 << 16);
/// # let (from_client, to_client) = tokio::io::split(server);
/// # tokio::spawn(serve::over(offer, Echo, from_client, to_client));
/// # let (read, write) = tokio::io::split(client);
/// use karat_mcp::{CallError, Limits, Options, Session};
///
/// // A server with two tools.
/// let limits = Limits { entries: 1, ..Limits::default() };
/// let session = Session::over(read, write, None, &Options { limits, ..Options::default() }).await?;
/// assert!(matches!(session.tools().await, Err(CallError::TooLarge { limit: 1, .. })));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message on any transport.
    pub message_bytes: usize,
    /// Bytes of a line that is larger than a message. Such a line is skipped and the session continues
    /// after it; a longer one ends the session.
    pub line_bytes: usize,
    /// Nested lists and objects in one message; at most 120 whatever is set.
    pub depth: usize,
    /// Pages of one list.
    pub pages: usize,
    /// Entries of one list over all its pages.
    pub entries: usize,
    /// Bytes of the entries of one list over all its pages, as compact JSON.
    pub list_bytes: usize,
    /// Bytes outside of messages between two answers. More end the session.
    pub noise_bytes: usize,
}

impl Limits {
    /// The depth limit of the JSON reader, with some room.
    const MAX_DEPTH: usize = 120;

    pub(crate) fn depth(&self) -> usize {
        self.depth.min(Self::MAX_DEPTH)
    }
}

impl Default for Limits {
    /// 16 MiB and 64 levels for a message, 2 GiB for a line, 1,000 pages, 100,000 entries and 64 MiB for a
    /// list, 16 MiB of noise.
    fn default() -> Self {
        Limits {
            message_bytes: 16 << 20,
            line_bytes: 2 << 30,
            depth: 64,
            pages: 1_000,
            entries: 100_000,
            list_bytes: 64 << 20,
            noise_bytes: 16 << 20,
        }
    }
}
