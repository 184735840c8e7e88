//! The pages over HTTP, for this machine only.
//!
//! Listens on 127.0.0.1, answers GET and HEAD, and only requests whose host is this address: a page of
//! a stranger whose name resolves to this machine (DNS rebinding) is refused. Nothing is written, and
//! the pages may load nothing from elsewhere. With a token, only those who know it are answered: it comes
//! in the address that is opened first, then in a cookie.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use karat_io::http_server::{self, ServerLimits};
use tokio::net::TcpListener;

use crate::pages::{PageError, Pages, SCRIPT, style};
use crate::store::Store;

/// The policy of a page: its own style and script, and nothing else.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";
/// The report has a stricter policy in itself; this adds the parts that only a header can have.
const REPORT_POLICY: &str = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const FAILED: &str = "cannot render the page\n";

const HTML: &str = "text/html; charset=utf-8";

/// A dashboard that listens on a port.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    site: Arc<Site>,
}

/// The pages and what they are made of.
struct Site {
    store: Mutex<Store>,
    pages: Pages,
    /// The latest report by the id of its run, which is never reused: readers go back and forth
    /// between a report and the other pages.
    report: Mutex<Option<(i64, Bytes)>>,
    style: String,
    port: u16,
    token: Option<String>,
}

impl Server {
    /// Listens on a port of 127.0.0.1; 0 chooses a free one. With a token, others are refused.
    ///
    /// # Errors
    /// If the port is not available.
    pub async fn bind(store: Store, port: u16, token: Option<String>) -> std::io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let pages = Pages::new().map_err(std::io::Error::other)?;
        let site = Site {
            store: Mutex::new(store),
            pages,
            report: Mutex::new(None),
            style: style(),
            port: address.port(),
            token,
        };
        Ok(Server { listener, address, site: Arc::new(site) })
    }

    /// The address of the first page, with the token.
    pub fn url(&self) -> String {
        match &self.site.token {
            Some(token) => format!("http://{}/?token={token}", self.address),
            None => format!("http://{}/", self.address),
        }
    }

    /// Serves until `shutdown` is ready.
    pub async fn run_until(self, shutdown: impl Future + Send) {
        let router = Router::new().fallback(answer).with_state(self.site);
        // Pages are read-only and small: requests under way can be dropped at the end.
        http_server::serve(self.listener, router, ServerLimits::default(), shutdown).await;
    }
}

async fn answer(State(site): State<Arc<Site>>, request: Request) -> Response {
    let method = request.method().clone();
    if !is_for_this_host(&request, site.port) {
        let message = "unknown host; open the address that karat printed\n";
        return finish(StatusCode::FORBIDDEN, Content::plain(message), &method);
    }
    if method != Method::GET && method != Method::HEAD {
        let message = "the history is read-only\n";
        let mut response = finish(StatusCode::METHOD_NOT_ALLOWED, Content::plain(message), &method);
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match site.token.as_deref().map_or(Access::Given, |token| access(&request, token, site.port)) {
        Access::Given => {}
        Access::Refused => {
            let message = "this dashboard needs its token; open the address that karat printed\n";
            return finish(StatusCode::UNAUTHORIZED, Content::plain(message), &method);
        }
        // A page without the token in its address, which would stay in the list of visited pages.
        Access::Cookie(cookie) => {
            let mut response = finish(StatusCode::SEE_OTHER, Content::plain("see /\n"), &method);
            response.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/"));
            response.headers_mut().insert(header::SET_COOKIE, cookie);
            return response;
        }
    }
    let uri = request.uri().clone();
    let made = tokio::task::spawn_blocking(move || {
        let made = site.content(uri.path(), uri.query());
        made.unwrap_or_else(|error| site.failure(&error))
    });
    let (status, content) =
        made.await.unwrap_or_else(|_| (StatusCode::INTERNAL_SERVER_ERROR, Content::plain(FAILED)));
    finish(status, content, &method)
}

enum Access {
    Given,
    Refused,
    /// The token is in the address of the first page.
    Cookie(HeaderValue),
}

/// Looks for the token: in a header for programs, in a cookie or the address for browsers.
fn access(request: &Request, token: &str, port: u16) -> Access {
    let texts = |name: HeaderName| {
        request.headers().get_all(name).iter().filter_map(|value| value.to_str().ok())
    };
    // Browsers send the cookies of all ports of a machine.
    let cookie = format!("karat-{port}");
    let in_cookie = texts(header::COOKIE)
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|one| one.trim().split_once('='))
        .any(|(name, value)| name == cookie && is_same(value, token));
    let in_header = texts(header::AUTHORIZATION)
        .filter_map(|value| value.strip_prefix("Bearer "))
        .any(|value| is_same(value, token));
    if in_cookie || in_header {
        return Access::Given;
    }
    let query = request.uri().query().unwrap_or_default();
    let in_address = request.uri().path() == "/"
        && query.strip_prefix("token=").is_some_and(|value| is_same(value, token));
    let cookie = format!("{cookie}={token}; HttpOnly; SameSite=Strict; Path=/");
    match HeaderValue::try_from(cookie) {
        Ok(cookie) if in_address => Access::Cookie(cookie),
        _ => Access::Refused,
    }
}

/// Compares in a time that does not depend on where two texts differ.
fn is_same(given: &str, token: &str) -> bool {
    let differs = given.bytes().zip(token.bytes()).fold(0, |all, (one, other)| all | (one ^ other));
    given.len() == token.len() && differs == 0
}

/// Returns whether a request is for a name that only this machine has.
fn is_for_this_host(request: &Request, port: u16) -> bool {
    let is_ours = |name: &str| {
        name.rsplit_once(':').is_some_and(|(host, named)| {
            (host == "127.0.0.1" || host.eq_ignore_ascii_case("localhost"))
                && named == port.to_string()
        })
    };
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    let authority = request.uri().authority().map(|authority| authority.as_str());
    hosts.next().is_none() && host.is_some_and(is_ours) && authority.is_none_or(is_ours)
}

struct Content {
    kind: &'static str,
    policy: &'static str,
    body: Bytes,
}

impl Content {
    fn new(kind: &'static str, body: impl Into<Bytes>) -> Content {
        Content { kind, policy: POLICY, body: body.into() }
    }

    fn plain(text: &'static str) -> Content {
        Content::new("text/plain; charset=utf-8", text)
    }
}

impl Site {
    fn content(&self, path: &str, query: Option<&str>) -> Result<(StatusCode, Content), PageError> {
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let store = || self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = &self.pages;
        let html = |page: String| Content::new(HTML, page);
        let content = match parts.as_slice() {
            [""] => html(pages.overview(&store())?),
            ["style.css"] => Content::new("text/css; charset=utf-8", self.style.clone()),
            ["script.js"] => Content::new("text/javascript; charset=utf-8", SCRIPT),
            ["evaluations", subject] => html(pages.subject(&store(), id(subject)?)?),
            ["evaluations", subject, "metrics", metric] => {
                html(pages.metric(&store(), id(subject)?, id(metric)?)?)
            }
            ["runs"] => html(pages.runs(&store())?),
            ["runs", run] => html(pages.run(&store(), id(run)?)?),
            ["runs", run, "report"] => {
                Content { policy: REPORT_POLICY, ..Content::new(HTML, self.report(id(run)?)?) }
            }
            ["runs", run, "report.json"] => {
                Content::new("application/json", store().document(id(run)?)?)
            }
            ["compare"] => html(pages.compare(&store(), chosen(query)?)?),
            _ => return Err(PageError::NotFound),
        };
        Ok((StatusCode::OK, content))
    }

    /// The report of a run. The history is not locked while the page is rendered.
    fn report(&self, id: i64) -> Result<Bytes, PageError> {
        let store = || self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = || self.report.lock().unwrap_or_else(PoisonError::into_inner);
        // The run may have been removed.
        store().run(id)?;
        if let Some((_, page)) = kept().as_ref().filter(|(run, _)| *run == id) {
            return Ok(page.clone());
        }
        let document = store().document(id)?;
        let page = Bytes::from(self.pages.report(id, &document)?);
        *kept() = Some((id, page.clone()));
        Ok(page)
    }

    fn failure(&self, error: &PageError) -> (StatusCode, Content) {
        let (status, title) = match error {
            PageError::NotFound => (StatusCode::NOT_FOUND, "Not found"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "Error"),
        };
        let content = match self.pages.message(title, &error.to_string()) {
            Ok(page) => Content::new(HTML, page),
            Err(_) => Content::plain(FAILED),
        };
        (status, content)
    }
}

/// An id in an address: digits only.
fn id(text: &str) -> Result<i64, PageError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or(PageError::NotFound)
}

/// The two runs of the form.
fn chosen(query: Option<&str>) -> Result<Option<(i64, i64)>, PageError> {
    let Some(query) = query.filter(|query| !query.is_empty()) else { return Ok(None) };
    let field = |name: &str| {
        let mut fields = query.split('&').filter_map(|field| field.split_once('='));
        fields.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    match (field("before"), field("after")) {
        (Some(before), Some(after)) => Ok(Some((id(before)?, id(after)?))),
        _ => Err(PageError::NotFound),
    }
}

fn finish(status: StatusCode, content: Content, method: &Method) -> Response {
    let length = content.body.len();
    let body = if method == Method::HEAD { Body::empty() } else { Body::from(content.body) };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let fixed: [(HeaderName, &'static str); 7] = [
        (header::CONTENT_TYPE, content.kind),
        (header::CONTENT_SECURITY_POLICY, content.policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is a failed test")]

    use super::*;

    fn is_answered(hosts: &[&str]) -> bool {
        let mut request = Request::builder().uri("/");
        for host in hosts {
            request = request.header(header::HOST, *host);
        }
        is_for_this_host(&request.body(Body::empty()).unwrap(), 4321)
    }

    #[test]
    fn only_requests_for_this_host_are_answered() {
        assert!(is_answered(&["127.0.0.1:4321"]) && is_answered(&["LocalHost:4321"]));
        for wrong in ["127.0.0.1", "127.0.0.1:80", "evil.example:4321", "localhost.evil:4321", ""] {
            assert!(!is_answered(&[wrong]), "{wrong}");
        }
        assert!(!is_answered(&[]) && !is_answered(&["127.0.0.1:4321", "evil.example:4321"]));
    }

    #[test]
    fn the_token_comes_in_a_header_a_cookie_or_the_first_address() {
        let with = |uri: &str, name: HeaderName, value: &str| {
            let request = Request::builder().uri(uri).header(name, value);
            access(&request.body(Body::empty()).unwrap(), "secret", 4321)
        };
        let given = [
            (header::AUTHORIZATION, "Bearer secret"),
            (header::COOKIE, "karat-4321=secret"),
            (header::COOKIE, "a=b; karat-99=other; karat-4321=secret"),
        ];
        for (name, value) in given {
            assert!(matches!(with("/runs", name, value), Access::Given), "{value}");
        }
        let refused = [
            ("/", header::AUTHORIZATION, "Bearer secre"),
            ("/", header::AUTHORIZATION, "secret"),
            ("/", header::COOKIE, "karat-99=secret"),
            ("/", header::COOKIE, "karat-4321="),
            ("/?token=", header::ACCEPT, "*/*"),
            ("/?token=secret2", header::ACCEPT, "*/*"),
            ("/runs?token=secret", header::ACCEPT, "*/*"),
        ];
        for (uri, name, value) in refused {
            assert!(matches!(with(uri, name, value), Access::Refused), "{uri} {value}");
        }
        let Access::Cookie(cookie) = with("/?token=secret", header::ACCEPT, "*/*") else {
            panic!("the first page is refused")
        };
        assert_eq!(cookie, "karat-4321=secret; HttpOnly; SameSite=Strict; Path=/");
    }

    #[test]
    fn addresses_have_plain_numbers() {
        assert!(id("12").is_ok());
        for wrong in ["", "+1", "-1", "1 ", "0x1", "99999999999999999999", "a"] {
            assert!(id(wrong).is_err(), "{wrong}");
        }
        assert!(chosen(None).unwrap().is_none());
        assert_eq!(chosen(Some("before=1&after=2")).unwrap(), Some((1, 2)));
        assert!(chosen(Some("before=1")).is_err() && chosen(Some("before=x&after=2")).is_err());
    }
}
