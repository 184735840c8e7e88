//! The token of one server: obtained when the server asks for it, refreshed, and shared by all sessions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use karat_io::redact::LateSecrets;
use reqwest::Url;
use reqwest::header::HeaderValue;

use super::browser::Callback;
use super::challenge::Challenge;
use super::client::{Client, Method};
use super::device;
use super::discovery::{self, Issuer, Resource};
use super::failure::AuthError;
use super::fetch::Fetcher;
use super::spec::{AuthKind, AuthSpec};
use super::store::{self, Login, StoreError, Stored};
use super::tokens::{self, Tokens, is_token};

use crate::error::{StartError, quoted};
use crate::spec::Address;

/// Challenges to one request that are answered: a token, a new one, and two steps up.
const MAX_ANSWERS: usize = 4;
/// The time for which a failed login is not tried again.
const FAILED_FOR: Duration = Duration::from_secs(60);
/// A token is refreshed this long before it expires, or after nine tenths of a short life.
const MARGIN: Duration = Duration::from_secs(30);
/// The scope that asks for a refresh token.
const OFFLINE: &str = "offline_access";

/// The authorizers of this process. All sessions with a server share one, so that a person logs in once.
static AUTHORIZERS: LazyLock<Mutex<BTreeMap<String, Arc<Authorizer>>>> =
    LazyLock::new(Mutex::default);

/// The authorizer of a server.
pub(crate) fn authorizer(address: &Address) -> Result<Arc<Authorizer>, StartError> {
    let wrong = |why: String| StartError::Spec { why };
    let server = crate::http_client::parse_url(&address.url)?;
    let own_header = address.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
    if let Some(auth) = &address.auth {
        auth.check()?;
        if own_header {
            return Err(wrong(
                "auth (--auth) and an Authorization header cannot be combined".to_owned(),
            ));
        }
        let token = auth.access_token.as_deref();
        if token.is_some_and(|token| !is_token(token)) {
            return Err(wrong("auth: the access token cannot be sent in a header".to_owned()));
        }
    }
    let key = serde_json::to_string(&(&address.url, &address.auth, &address.ca_file, own_header));
    let key = key.map_err(|error| wrong(error.to_string()))?;
    let mut all = AUTHORIZERS.lock().unwrap_or_else(PoisonError::into_inner);
    let made = all.entry(key).or_insert_with(|| {
        let fetcher = Fetcher::new(&server, address.ca_file.clone());
        Arc::new(Authorizer::new(server, address.auth.clone(), own_header, fetcher))
    });
    Ok(Arc::clone(made))
}

/// The token of one server.
pub(crate) struct Authorizer {
    server: Url,
    spec: Option<AuthSpec>,
    /// True if the user sends a header of their own.
    own_header: bool,
    fetcher: Fetcher,
    late: LateSecrets,
    current: RwLock<Option<Current>>,
    /// False while a token that was just issued has not been accepted by the server.
    proven: AtomicBool,
    state: tokio::sync::Mutex<State>,
    pause: Pause,
}

#[derive(Clone)]
struct Current {
    header: HeaderValue,
    renew_at: Option<Instant>,
}

/// Everything about the login. Locked while one is under way.
#[derive(Default)]
struct State {
    issuer: Option<Issuer>,
    resource: Option<Resource>,
    client: Option<Client>,
    tokens: Option<Tokens>,
    /// The scopes that the token was requested with.
    scopes: Vec<String>,
    /// The issuer that the client of the spec belongs to.
    bound_to: Option<String>,
    looked_in_store: bool,
    /// The issuer of the stored login that is used.
    stored_for: Option<String>,
    failed: Option<(Instant, String)>,
}

impl State {
    /// True if the client and the tokens are of this issuer.
    fn is_of(&self, issuer: &Issuer) -> bool {
        let known = self.issuer.as_ref().map(|known| &known.issuer);
        known.or(self.stored_for.as_ref()) == Some(&issuer.issuer)
    }
}

/// The time that logins took, which time limits and latencies leave out.
#[derive(Default)]
struct Pause(Mutex<(Duration, Option<Instant>)>);

struct Paused<'a>(&'a Pause);

impl Pause {
    fn begin(&self) -> Paused<'_> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1 = Some(Instant::now());
        Paused(self)
    }

    fn total(&self) -> (Duration, bool) {
        let (total, since) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (total + since.map_or(Duration::ZERO, |since| since.elapsed()), since.is_some())
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        let mut pause = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = pause.1.take() {
            pause.0 += since.elapsed();
        }
    }
}

impl Authorizer {
    fn new(server: Url, spec: Option<AuthSpec>, own_header: bool, fetcher: Fetcher) -> Authorizer {
        let authorizer = Authorizer {
            server,
            spec,
            own_header,
            fetcher,
            late: LateSecrets::default(),
            current: RwLock::default(),
            proven: AtomicBool::new(true),
            state: tokio::sync::Mutex::default(),
            pause: Pause::default(),
        };
        let spec = authorizer.spec.as_ref();
        let secrets =
            spec.map(|spec| [&spec.access_token, &spec.refresh_token, &spec.client_secret]);
        for secret in secrets.into_iter().flatten().flatten() {
            authorizer.late.add(secret);
        }
        if let Some(access) = spec.and_then(|spec| spec.access_token.as_deref()) {
            authorizer.set_current(access, None);
        }
        authorizer
    }

    /// The secrets of the login.
    pub(crate) fn late(&self) -> &LateSecrets {
        &self.late
    }

    /// The `Authorization` header, refreshed if its token is about to expire.
    pub(crate) async fn header(&self) -> Option<HeaderValue> {
        let current = self.current()?;
        if current.renew_at.is_some_and(|at| Instant::now() >= at) {
            Box::pin(self.renew_early(&current.header)).await;
        }
        self.header_as_it_is()
    }

    /// The `Authorization` header.
    pub(crate) fn header_as_it_is(&self) -> Option<HeaderValue> {
        self.current().map(|current| current.header)
    }

    /// Notes that the server has accepted a request with the token.
    pub(crate) fn accepted(&self) {
        if !self.proven.load(Ordering::Relaxed) {
            self.proven.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn has_token(&self) -> bool {
        self.current().is_some()
    }

    /// Forgets the token, and does not look for a stored one.
    pub(super) fn renew(&self) {
        if let Ok(mut state) = self.state.try_lock() {
            let looked_in_store = true;
            *state = State { looked_in_store, ..State::default() };
        }
        if self.spec.as_ref().is_none_or(|spec| spec.kind != AuthKind::Token) {
            *self.current.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// Runs a future for at most `limit`, not counting the time of logins. `None` if it takes longer.
    pub(crate) async fn within<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        let mut future = std::pin::pin!(future);
        let (began, before) = (Instant::now(), self.pause.total().0);
        loop {
            let (total, pausing) = self.pause.total();
            let left = (limit + total.saturating_sub(before)).saturating_sub(began.elapsed());
            // While a login is under way, `left` does not shrink.
            let left = if pausing { left.max(Duration::from_millis(100)) } else { left };
            match tokio::time::timeout(left, &mut future).await {
                Ok(output) => return Some(output),
                Err(_) if pausing || self.pause.total().0 > total => {}
                Err(_) => return None,
            }
        }
    }

    /// The time that logins have taken so far.
    pub(crate) fn paused(&self) -> Duration {
        self.pause.total().0
    }

    fn current(&self) -> Option<Current> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_current(&self, access: &str, life: Option<Duration>) {
        self.late.add(access);
        let Ok(mut header) = HeaderValue::from_str(&format!("Bearer {access}")) else { return };
        header.set_sensitive(true);
        let renew_at = life.and_then(|life| {
            let margin = MARGIN.min(life / 10);
            Instant::now().checked_add(life.saturating_sub(margin))
        });
        *self.current.write().unwrap_or_else(PoisonError::into_inner) =
            Some(Current { header, renew_at });
    }

    /// Answers a challenge to a request that was sent with `used`, `answered` challenges before. Returns when
    /// the request can be sent again.
    pub(crate) async fn answer(
        &self,
        challenge: &Challenge,
        used: Option<&HeaderValue>,
        answered: usize,
    ) -> Result<(), String> {
        let mut state = self.state.lock().await;
        let _paused = self.pause.begin();
        if answered < MAX_ANSWERS && self.header_as_it_is().as_ref() != used {
            // Another request has logged in meanwhile.
            return Ok(());
        }
        if let Some((when, why)) = &state.failed
            && when.elapsed() < FAILED_FOR
        {
            return Err(why.clone());
        }
        let result = match answered < MAX_ANSWERS {
            // In a box: every message of a session holds this future.
            true => Box::pin(self.log_in(&mut state, challenge, used.is_some())).await,
            false => Err(AuthError::new(format!(
                "the server refuses tokens that were issued for it, {MAX_ANSWERS} times in a row"
            ))),
        };
        result.map_err(|AuthError(why)| {
            let mut redactor = karat_io::redact::Redactor::default();
            redactor.follow(&self.late);
            let why = redactor.hidden(why);
            state.failed = Some((Instant::now(), why.clone()));
            why
        })
    }

    async fn log_in(
        &self,
        state: &mut State,
        challenge: &Challenge,
        was_sent: bool,
    ) -> Result<(), AuthError> {
        let kind = self.spec.as_ref().map(|spec| spec.kind);
        if self.own_header {
            let what = match challenge.status {
                403 => "lacks scopes that the server requires",
                _ => "is refused by the server",
            };
            let why = format!(
                "the token of the Authorization header {what}; {}",
                self.wanted(challenge).await
            );
            return Err(AuthError::new(why));
        }
        let found = discovery::resource(&self.fetcher, &self.server, challenge).await;
        let resource = match found {
            Ok(resource) => resource,
            Err(_) if kind.is_none() => return Err(AuthError::new(challenge.describe(None, &[]))),
            Err(error) => return Err(error),
        };
        if challenge.status == 401 && self.adopt_stored(state, kind, &resource)? {
            return Ok(());
        }
        let only = self.spec.as_ref().and_then(|spec| spec.issuer.as_deref());
        let stored_for =
            state.stored_for.as_ref().filter(|issuer| resource.issuers.contains(issuer));
        let only = only.or(stored_for.map(String::as_str));
        let issuer = match discovery::issuer(&self.fetcher, &resource, only).await {
            Ok(issuer) => issuer,
            Err(_) if kind.is_none() => {
                return Err(AuthError::new(challenge.describe(None, &resource.scopes)));
            }
            Err(error) => return Err(error),
        };
        if !state.is_of(&issuer) {
            // Neither clients nor tokens are of use at another authorisation server.
            state.client = None;
            state.scopes.clear();
            state.stored_for = None;
            state.tokens = self.given_tokens();
        } else if challenge.status == 401 && was_sent && !self.proven.load(Ordering::Relaxed) {
            let issuer = quoted(&issuer.issuer);
            let why = format!("the server refuses the token that {issuer} has just issued for it");
            return Err(AuthError::new(why));
        }
        let can_refresh = challenge.status == 401 && (was_sent || state.stored_for.is_some());
        state.issuer = Some(issuer.clone());
        state.resource = Some(resource.clone());
        if can_refresh && Box::pin(self.refresh(state, &issuer, &resource)).await? {
            return Ok(());
        }
        match (&self.spec, kind) {
            (
                Some(spec),
                Some(AuthKind::ClientCredentials | AuthKind::Browser | AuthKind::Device),
            ) => Box::pin(self.issue(state, spec, challenge, &issuer, &resource)).await,
            (Some(_), _) => Err(AuthError::new(match challenge.status {
                403 => challenge.describe(Some(&issuer.issuer), &resource.scopes),
                _ => format!(
                    "the server refuses the access token, and it cannot be refreshed; get a new one from {}",
                    quoted(&issuer.issuer)
                ),
            })),
            (None, _) => {
                let hint = match state.stored_for.is_some() {
                    true => {
                        "the stored login is no longer valid; log in again with `karat server login`; "
                    }
                    false => "",
                };
                let demand = challenge.describe(Some(&issuer.issuer), &resource.scopes);
                Err(AuthError::new(format!("{hint}{demand}")))
            }
        }
    }

    /// The demand of the server, with as much as can be found out.
    async fn wanted(&self, challenge: &Challenge) -> String {
        let resource = discovery::resource(&self.fetcher, &self.server, challenge).await.ok();
        let scopes = resource.as_ref().map(|found| found.scopes.clone()).unwrap_or_default();
        let issuer = resource.and_then(|found| found.issuers.into_iter().next());
        challenge.describe(issuer.as_deref(), &scopes)
    }

    fn given_tokens(&self) -> Option<Tokens> {
        let spec = self.spec.as_ref()?;
        let access = spec.access_token.clone()?;
        Some(Tokens { access, refresh: spec.refresh_token.clone(), life: None })
    }

    /// Takes a stored login, once. Returns whether its token can be tried.
    fn adopt_stored(
        &self,
        state: &mut State,
        kind: Option<AuthKind>,
        resource: &Resource,
    ) -> Result<bool, AuthError> {
        let may = matches!(kind, None | Some(AuthKind::Browser | AuthKind::Device));
        if !may || std::mem::replace(&mut state.looked_in_store, true) {
            return Ok(false);
        }
        let only = self.spec.as_ref().and_then(|spec| spec.issuer.as_deref());
        for issuer in
            resource.issuers.iter().filter(|issuer| only.is_none_or(|only| only == *issuer))
        {
            let stored = store::find(&store::key_of(&self.server), issuer, &self.late);
            let Some(stored) = stored.map_err(|error| AuthError::new(error.to_string()))? else {
                continue;
            };
            let tokens = stored.tokens();
            state.client = Some(stored.client()).filter(|client| !client.id.is_empty());
            state.scopes.clone_from(&stored.scopes);
            state.stored_for = Some(issuer.clone());
            let expired = tokens.life.is_some_and(|life| life.is_zero());
            if !expired {
                self.set_current(&tokens.access, tokens.life);
            }
            state.tokens = Some(tokens);
            return Ok(!expired);
        }
        Ok(false)
    }

    /// Refreshes the token. Returns whether there is a new one.
    async fn refresh(
        &self,
        state: &mut State,
        issuer: &Issuer,
        resource: &Resource,
    ) -> Result<bool, AuthError> {
        let Some(refresh) = state.tokens.as_ref().and_then(|tokens| tokens.refresh.clone()) else {
            return Ok(false);
        };
        let given = match &self.spec {
            Some(spec) => Client::given(spec, issuer)?,
            None => None,
        };
        let Some(client) = given.or_else(|| state.client.clone()) else {
            return Err(AuthError::new(
                "a refresh token needs the client that it was issued to: --client-id",
            ));
        };
        let fields = vec![
            ("grant_type", "refresh_token".to_owned()),
            ("refresh_token", refresh.clone()),
            ("resource", resource.identifier.clone()),
        ];
        match tokens::request(&self.fetcher, issuer, &client, fields, &self.late).await? {
            Ok(mut fresh) => {
                fresh.refresh.get_or_insert(refresh);
                state.client = Some(client);
                self.take(state, fresh);
                // What was rotated is worth nothing any more, so the stored one must be the new one.
                if let (Some(_), Some(stored)) = (&state.stored_for, self.stored(state)) {
                    let _ = stored.write();
                }
                Ok(true)
            }
            Err(refusal) => {
                if let Some(tokens) = &mut state.tokens {
                    tokens.refresh = None;
                }
                match self.spec.as_ref().map(|spec| spec.kind) {
                    Some(AuthKind::Token) => Err(refusal.into_error(issuer)),
                    _ => Ok(false),
                }
            }
        }
    }

    /// Gets a token by the flow of the spec.
    async fn issue(
        &self,
        state: &mut State,
        spec: &AuthSpec,
        challenge: &Challenge,
        issuer: &Issuer,
        resource: &Resource,
    ) -> Result<(), AuthError> {
        let scopes = wanted_scopes(state, spec, challenge, resource)?;
        let mut asked = scopes.clone();
        let for_a_person = spec.kind != AuthKind::ClientCredentials;
        if for_a_person && !asked.is_empty() && issuer.scopes.iter().any(|scope| scope == OFFLINE) {
            add(&mut asked, &[OFFLINE.to_owned()]);
        }
        let given = Client::given(spec, issuer)?;
        if spec.client_id.is_some() {
            let bound = state.bound_to.get_or_insert_with(|| issuer.issuer.clone());
            if *bound != issuer.issuer {
                return Err(AuthError::new(format!(
                    "the server now requires tokens from {}, but the client is registered at {}; use a \
                     client of the new issuer, with --issuer",
                    quoted(&issuer.issuer),
                    quoted(bound)
                )));
            }
        }
        let (fetcher, late, target) = (&self.fetcher, &self.late, &resource.identifier);
        let issued = match spec.kind {
            AuthKind::Browser => {
                let registered =
                    state.client.as_ref().and_then(|client| client.redirect.as_deref());
                let callback = Callback::bind(spec.redirect_port, registered).await?;
                let redirect = callback.redirect.clone();
                let known = state
                    .client
                    .take()
                    .filter(|client| client.redirect.as_ref() == Some(&redirect));
                let client = match given.or(known) {
                    Some(client) => client,
                    None => {
                        Client::register(fetcher, issuer, spec.kind, Some(&redirect), late).await?
                    }
                };
                state.client = Some(client.clone());
                let granted = callback.authorize(issuer, &client.id, &asked, target, late).await?;
                let fields = vec![
                    ("grant_type", "authorization_code".to_owned()),
                    ("code", granted.code),
                    ("code_verifier", granted.verifier),
                    ("redirect_uri", redirect),
                    ("resource", target.clone()),
                ];
                tokens::request(fetcher, issuer, &client, fields, late).await?
            }
            AuthKind::Device => {
                let client = match given.or_else(|| state.client.take()) {
                    Some(client) => client,
                    None => Client::register(fetcher, issuer, spec.kind, None, late).await?,
                };
                state.client = Some(client.clone());
                Ok(device::log_in(fetcher, issuer, &client, &asked, target, late).await?)
            }
            AuthKind::ClientCredentials | AuthKind::Token => {
                let client = given.ok_or_else(|| AuthError::new("auth: missing client_id"))?;
                let mut fields = vec![
                    ("grant_type", "client_credentials".to_owned()),
                    ("resource", target.clone()),
                ];
                if !asked.is_empty() {
                    fields.push(("scope", asked.join(" ")));
                }
                state.client = Some(client.clone());
                tokens::request(fetcher, issuer, &client, fields, late).await?
            }
        };
        let tokens = issued.map_err(|refusal| refusal.into_error(issuer))?;
        state.scopes = scopes;
        state.stored_for = None;
        self.take(state, tokens);
        Ok(())
    }

    fn take(&self, state: &mut State, tokens: Tokens) {
        self.proven.store(false, Ordering::Relaxed);
        self.set_current(&tokens.access, tokens.life);
        state.tokens = Some(tokens);
        state.failed = None;
    }

    /// Replaces a token that is about to expire, if that takes no person. A failure is not reported: the
    /// server will, if the token is no longer of use.
    async fn renew_early(&self, used: &HeaderValue) {
        let mut state = self.state.lock().await;
        let _paused = self.pause.begin();
        if self.header_as_it_is().as_ref() != Some(used) {
            return;
        }
        if let Some(current) = &mut *self.current.write().unwrap_or_else(PoisonError::into_inner) {
            current.renew_at = None;
        }
        let (Some(issuer), Some(resource)) = (state.issuer.clone(), state.resource.clone()) else {
            return;
        };
        let refreshed = self.refresh(&mut state, &issuer, &resource).await;
        if let (Ok(false), Some(spec)) = (refreshed, &self.spec)
            && spec.kind == AuthKind::ClientCredentials
        {
            let again = Challenge { status: 401, ..Challenge::default() };
            let _ = self.issue(&mut state, spec, &again, &issuer, &resource).await;
        }
    }

    fn stored(&self, state: &State) -> Option<Stored> {
        let issuer = match (&state.issuer, &state.resource) {
            (Some(issuer), _) => issuer.issuer.clone(),
            (None, Some(resource)) => resource.issuers.first()?.clone(),
            (None, None) => return None,
        };
        let none = Client::stored(String::new(), None, Method::None);
        let client = state.client.as_ref().unwrap_or(&none);
        Some(Stored::new(
            &store::key_of(&self.server),
            &issuer,
            client,
            state.tokens.as_ref()?,
            &state.scopes,
        ))
    }

    /// Stores the login for later runs.
    pub(super) async fn store(&self) -> Result<Login, StoreError> {
        let refused = |why: &str| StoreError::from(std::io::Error::other(why.to_owned()));
        if self.spec.as_ref().is_none_or(|spec| spec.kind == AuthKind::ClientCredentials) {
            return Err(refused("client credentials cannot be stored: pass --auth in each run"));
        }
        let mut state = self.state.lock().await;
        if state.tokens.is_none() {
            state.tokens = self.given_tokens();
        }
        if state.resource.is_none() {
            let none = Challenge::default();
            let found = discovery::resource(&self.fetcher, &self.server, &none).await;
            state.resource = Some(found.map_err(|error| refused(&error.to_string()))?);
        }
        if state.client.is_none()
            && let Some(id) = self.spec.as_ref().and_then(|spec| spec.client_id.clone())
        {
            state.client = Some(Client::stored(id, None, Method::None));
        }
        let stored = self.stored(&state).ok_or_else(|| refused("no token"))?;
        stored.write()
    }
}

/// The scopes to ask for: those of the spec, of the challenge, or of the resource, in this order, with those
/// of the token before.
fn wanted_scopes(
    state: &State,
    spec: &AuthSpec,
    challenge: &Challenge,
    resource: &Resource,
) -> Result<Vec<String>, AuthError> {
    let mut scopes = state.scopes.clone();
    if challenge.status == 403 {
        if !add(&mut scopes, &challenge.scopes) {
            return Err(AuthError::new(format!(
                "the server requires the scopes {}, but refuses a token requested with them",
                quoted(&challenge.scopes.join(" "))
            )));
        }
        return Ok(scopes);
    }
    let named = [&spec.scopes, &challenge.scopes, &resource.scopes];
    if let Some(named) = named.into_iter().find(|scopes| !scopes.is_empty()) {
        add(&mut scopes, named);
    }
    Ok(scopes)
}

/// Adds scopes that are not there yet. Returns whether there were any.
fn add(scopes: &mut Vec<String>, more: &[String]) -> bool {
    let before = scopes.len();
    for scope in more {
        if !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
    scopes.len() > before
}
