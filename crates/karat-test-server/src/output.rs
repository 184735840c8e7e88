//! The place that messages of a request go to.

use serde_json::Value;

/// The client side of one request. A failed write means that the client is gone, and is ignored.
pub(crate) trait Output: Send + Sync {
    /// Sends the answer to the request.
    fn answer(&self, message: &Value);
    /// Sends another message before the answer.
    fn message(&self, message: &Value);
    /// Writes bytes that need not be a message.
    fn raw(&self, bytes: &[u8]);
    /// Answers with an HTTP status. Without effect over stdio.
    fn status(&self, status: &str);
    /// Closes the connection. Without effect over stdio.
    fn close(&self);
}
