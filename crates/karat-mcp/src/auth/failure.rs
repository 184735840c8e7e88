//! The one error of logins.

/// A login that cannot be carried out, as one message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct AuthError(pub(super) String);

impl AuthError {
    pub(crate) fn new(why: impl Into<String>) -> AuthError {
        AuthError(why.into())
    }
}
