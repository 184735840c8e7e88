//! Tasks that run at the same time as others.

use std::pin::Pin;

use tokio::task::JoinHandle;

/// Starts a task on the runtime that this is called on.
///
/// The future is boxed: tokio's code for a task, 1,500 lines of it, is then compiled once for each kind
/// of result instead of once for each future.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tokio::task::JoinError> {
/// let task = karat_io::task::spawn(async { 6 * 7 });
/// assert_eq!(task.await?, 42);
/// # Ok(()) }
/// ```
pub fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(boxed(future))
}

/// A future as a pointer, for sets of tasks: as for [`spawn`].
pub(crate) fn boxed<'a, T>(
    future: impl Future<Output = T> + Send + 'a,
) -> Pin<Box<dyn Future<Output = T> + Send + 'a>> {
    Box::pin(future)
}
