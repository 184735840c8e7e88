//! A login that is kept for later runs.

use super::authorizer::authorizer;
use super::challenge::Challenge;
use super::store::Login;
use crate::error::StartError;
use crate::session::{Options, Session};
use crate::spec::{ServerSpec, Target};

/// Logs in at a server and stores the token for later runs of this user.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use karat_mcp::auth::{self, AuthKind, AuthSpec};
/// use karat_mcp::{Options, ServerSpec, Session};
///
/// auth::install_prompt(|prompt| eprintln!("{prompt}"));
/// let auth = Some(AuthSpec::new(AuthKind::Browser));
/// let spec = ServerSpec { auth, ..ServerSpec::from_url("https://example.com/mcp") };
/// let kept = auth::login(&spec, &Options::default()).await?;
/// println!("logged in at {}", kept.issuer);
///
/// // Later, without a person.
/// let session = Session::start(&spec, &Options::default()).await?;
/// session.close().await;
/// for login in auth::logins(Some("https://example.com/mcp"))? {
///     auth::logout(&login)?;
/// }
/// # Ok(()) }
/// ```
///
/// # Errors
/// If the spec has no `auth`, the server asks for no login, or the login fails.
pub async fn login(spec: &ServerSpec, options: &Options) -> Result<Login, StartError> {
    let resolved = spec.resolve(options.folder.as_deref())?;
    let (Target::Http(address) | Target::Sse(address), Some(_)) = (resolved.target, &spec.auth)
    else {
        let why = "a login needs a server at a url, and auth (--auth browser, device …)";
        return Err(StartError::Spec { why: why.to_owned() });
    };
    let authorizer = authorizer(&address)?;
    authorizer.renew();
    let session = Session::start(spec, options).await;
    if !authorizer.has_token() {
        // A server may let the first messages pass.
        let asked = Challenge { status: 401, ..Challenge::default() };
        let answered = authorizer.answer(&asked, None, 0).await;
        answered.map_err(|why| StartError::Handshake { why })?;
    }
    if let Ok(session) = session {
        session.close().await;
    }
    authorizer.store().await.map_err(|error| StartError::Handshake { why: error.to_string() })
}
