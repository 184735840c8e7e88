//! Logins: every flow against a scripted authorisation server, and hostile ones that are refused.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use karat_mcp::auth::{AuthKind, AuthSpec, Prompt, install_prompt};
use karat_mcp::{CallError, Options, Recorder, ServerSpec, Session, StartError, TransportKind};
use serde_json::{Map, Value, json};

use crate::support::oauth::{Asked, Body, Rules, Said, Site, browse, redirect, said};

/// Plays the person: opens every address that is shown.
fn person(prompt: &Prompt) {
    if let Prompt::Browser { url } = prompt {
        let url = url.clone();
        std::thread::spawn(move || browse(&url));
    }
}

fn spec(site: &Site, auth: AuthSpec) -> ServerSpec {
    ServerSpec { auth: Some(auth), ..ServerSpec::from_url(site.mcp()) }
}

fn client_credentials() -> AuthSpec {
    AuthSpec {
        client_id: Some("me".to_owned()),
        client_secret: Some("secret-of-the-client".to_owned()),
        ..AuthSpec::new(AuthKind::ClientCredentials)
    }
}

fn browser() -> AuthSpec {
    install_prompt(person);
    AuthSpec::new(AuthKind::Browser)
}

async fn call(session: &Session) -> Result<String, CallError> {
    let mut reply = session.call("whoami", &Map::new()).await?;
    session.redactor().hide_in(&mut reply.raw);
    Ok(reply.texts().concat())
}

async fn start(spec: &ServerSpec) -> Result<Session, StartError> {
    Session::start(spec, &Options::default()).await
}

#[tokio::test]
async fn a_401_says_what_the_server_asks_for_and_how_to_give_it() {
    let site = Site::start(Rules::default());
    let error = start(&ServerSpec::from_url(site.mcp())).await.unwrap_err().to_string();
    for part in [
        "HTTP status 401",
        "Bearer token",
        &site.url,
        "scopes tools:read",
        "--header 'Authorization: Bearer ${TOKEN}'",
        "--auth client-credentials, browser, device or token",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let mut wrong = ServerSpec::from_url(site.mcp());
    wrong.headers.insert("Authorization".to_owned(), "Bearer not-a-good-token".to_owned());
    let error = start(&wrong).await.unwrap_err().to_string();
    assert!(error.contains("the token of the Authorization header is refused"), "{error}");
    assert!(!error.contains("not-a-good-token"), "{error}");
}

#[tokio::test]
async fn a_403_and_a_login_page_are_explained_too() {
    let rules = Rules {
        refuses: |_| Some((403, "error=\"insufficient_scope\", scope=\"admin\"")),
        ..Rules::default()
    };
    let site = Site::start(rules);
    let error = start(&ServerSpec::from_url(site.mcp())).await.unwrap_err().to_string();
    assert!(error.contains("HTTP status 403") && error.contains("scopes admin"), "{error}");
    let page: fn(&str, &Asked) -> Option<Said> = |_, asked| {
        let html = vec![("content-type".to_owned(), "text/html".to_owned())];
        (asked.path == "/mcp").then(|| Said {
            status: 200,
            headers: html,
            body: Body::Whole("<form>Sign in</form>".to_owned()),
        })
    };
    let site = Site::start(Rules { first: page, ..Rules::default() });
    let error = start(&ServerSpec::from_url(site.mcp())).await.unwrap_err().to_string();
    assert!(error.contains("a page where people log in") && error.contains("--auth"), "{error}");
    let moved: fn(&str, &Asked) -> Option<Said> = |base, asked| {
        (asked.path == "/mcp").then(|| redirect(302, &format!("{base}/login?next=/mcp")))
    };
    let site = Site::start(Rules { first: moved, ..Rules::default() });
    let error = start(&ServerSpec::from_url(site.mcp())).await.unwrap_err().to_string();
    assert!(error.contains("/login?next=/mcp") && error.contains("--auth"), "{error}");
}

#[tokio::test]
async fn client_credentials_get_a_token_for_the_resource_once_for_all_sessions() {
    let site = Site::start(Rules::default());
    let spec = spec(&site, client_credentials());
    let (one, other) = tokio::join!(start(&spec), start(&spec));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(call(&one).await.unwrap(), "you sent Bearer [redacted]");
    assert_eq!(call(&other).await.unwrap(), "you sent Bearer [redacted]");
    let asked = site.asked("/token");
    assert_eq!(asked.len(), 1, "{asked:?}");
    let form = asked[0].form();
    assert_eq!(form["grant_type"], "client_credentials");
    assert_eq!(form["resource"], site.mcp());
    assert_eq!(form["scope"], "tools:read");
    assert!(asked[0].headers["authorization"].starts_with("Basic "), "{asked:?}");
    assert!(!form.contains_key("client_secret"));
    one.close().await;
    other.close().await;
}

#[tokio::test]
async fn a_token_is_renewed_when_it_expires_and_on_one_401() {
    let rules = Rules { token: |_, body| body["expires_in"] = json!(1), ..Rules::default() };
    let site = Site::start(rules);
    let session = start(&spec(&site, client_credentials())).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    call(&session).await.unwrap();
    let asked = site.asked("/token");
    assert!(asked.len() >= 2, "{asked:?}");
    assert_eq!(asked[1].form()["grant_type"], "refresh_token");
    assert_eq!(asked[1].form()["resource"], site.mcp());

    let revoked = Rules {
        // The first token is accepted for everything but calls.
        refuses: |asked| match asked.token() {
            Some("access-token-number-1") if asked.body.contains("tools/call") => {
                Some((401, "error=\"invalid_token\""))
            }
            Some(_) => None,
            None => Some((401, "scope=\"tools:read\"")),
        },
        token: |_, body| drop(body.as_object_mut().unwrap().remove("expires_in")),
        ..Rules::default()
    };
    let site = Site::start(revoked);
    let session = start(&spec(&site, client_credentials())).await.unwrap();
    call(&session).await.unwrap();
    call(&session).await.unwrap();
    assert_eq!(site.asked("/token").len(), 2);
}

#[tokio::test]
async fn a_browser_login_proves_itself_with_pkce_and_a_registered_client() {
    let site = Site::start(Rules::default());
    let session = start(&spec(&site, browser())).await.unwrap();
    assert_eq!(call(&session).await.unwrap(), "you sent Bearer [redacted]");
    let shown = &site.asked("/authorize")[0].query;
    let sent = site.asked("/token")[0].form();
    let verifier = &sent["code_verifier"];
    let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
    assert_eq!(shown["code_challenge"], URL_SAFE_NO_PAD.encode(digest));
    assert_eq!(shown["code_challenge_method"], "S256");
    assert_eq!((&shown["resource"], &sent["resource"]), (&site.mcp(), &site.mcp()));
    assert_eq!(shown["redirect_uri"], sent["redirect_uri"]);
    assert!(shown["redirect_uri"].starts_with("http://127.0.0.1:"));
    assert_eq!(shown["client_id"], "registered-client");
    let registered: Value = serde_json::from_str(&site.asked("/register")[0].body).unwrap();
    assert_eq!(registered["redirect_uris"], json!([shown["redirect_uri"]]));
    assert_eq!(registered["application_type"], "native");
    assert!(!session.redactor().hide(verifier).contains(verifier.as_str()));
}

#[tokio::test]
async fn a_device_login_polls_until_the_code_was_entered() {
    install_prompt(person);
    let site = Site::start(Rules::default());
    let session = start(&spec(&site, AuthSpec::new(AuthKind::Device))).await.unwrap();
    call(&session).await.unwrap();
    let polls = site.asked("/token");
    assert_eq!(polls.len(), 2);
    assert!(polls.iter().all(|poll| poll.form()["device_code"] == "device-code-secret"));
    assert_eq!(session.redactor().hide("device-code-secret"), "[redacted]");
}

#[tokio::test]
async fn a_pasted_token_is_sent_at_once_and_refreshed_on_a_401() {
    let site = Site::start(Rules::default());
    let auth = AuthSpec {
        access_token: Some("access-of-mine".to_owned()),
        ..AuthSpec::new(AuthKind::Token)
    };
    let session = start(&spec(&site, auth)).await.unwrap();
    assert_eq!(call(&session).await.unwrap(), "you sent Bearer [redacted]");
    assert!(site.asked("/token").is_empty() && site.asked("/.well-known").is_empty());
    assert!(site.asked("/mcp").iter().all(|asked| asked.token() == Some("access-of-mine")));

    let expired = AuthSpec {
        access_token: Some("an-old-one".to_owned()),
        refresh_token: Some("refresh-of-mine".to_owned()),
        client_id: Some("me".to_owned()),
        ..AuthSpec::new(AuthKind::Token)
    };
    let session = start(&spec(&site, expired)).await.unwrap();
    call(&session).await.unwrap();
    assert_eq!(site.asked("/token")[0].form()["refresh_token"], "refresh-of-mine");

    let hopeless =
        AuthSpec { access_token: Some("an-old-one".to_owned()), ..AuthSpec::new(AuthKind::Token) };
    let error = start(&spec(&site, hopeless)).await.unwrap_err().to_string();
    assert!(error.contains("cannot be refreshed") && !error.contains("an-old-one"), "{error}");
}

#[tokio::test]
async fn a_step_up_asks_for_the_scopes_before_and_the_new_ones() {
    let rules = Rules {
        refuses: |asked| match asked.token() {
            None => Some((401, "scope=\"tools:read\"")),
            Some("access-token-number-1") if asked.body.contains("tools/call") => {
                Some((403, "error=\"insufficient_scope\", scope=\"tools:write\""))
            }
            Some(_) => None,
        },
        ..Rules::default()
    };
    let site = Site::start(rules);
    let session = start(&spec(&site, client_credentials())).await.unwrap();
    call(&session).await.unwrap();
    let scopes: Vec<String> =
        site.asked("/token").iter().map(|asked| asked.form()["scope"].clone()).collect();
    assert_eq!(scopes, ["tools:read", "tools:read tools:write"]);
}

#[tokio::test]
async fn scopes_that_were_granted_are_not_asked_for_again_and_again() {
    let never = Rules {
        refuses: |asked| match asked.token() {
            None => Some((401, "scope=\"tools:read\"")),
            Some(_) => Some((403, "error=\"insufficient_scope\", scope=\"tools:read\"")),
        },
        ..Rules::default()
    };
    let site = Site::start(never);
    let error = start(&spec(&site, client_credentials())).await.unwrap_err().to_string();
    assert!(error.contains("refuses a token requested with"), "{error}");
    assert_eq!(site.asked("/token").len(), 1);

    let endless = Rules {
        refuses: |asked| match asked.token() {
            None => Some((401, "")),
            Some("access-token-number-1") => {
                Some((403, "error=\"insufficient_scope\", scope=\"a\""))
            }
            Some("access-token-number-2") => {
                Some((403, "error=\"insufficient_scope\", scope=\"b\""))
            }
            Some("access-token-number-3") => {
                Some((403, "error=\"insufficient_scope\", scope=\"c\""))
            }
            Some(_) => Some((403, "error=\"insufficient_scope\", scope=\"d\"")),
        },
        ..Rules::default()
    };
    let site = Site::start(endless);
    let error = start(&spec(&site, client_credentials())).await.unwrap_err().to_string();
    assert!(error.contains("4 times in a row"), "{error}");
    assert_eq!(site.asked("/token").len(), 4);
}

#[tokio::test]
async fn a_token_that_is_refused_at_once_is_not_requested_again() {
    let rules = Rules { refuses: |_| Some((401, "")), ..Rules::default() };
    let site = Site::start(rules);
    let spec = spec(&site, client_credentials());
    for _ in 0..2 {
        let error = start(&spec).await.unwrap_err().to_string();
        assert!(error.contains("has just issued for it"), "{error}");
    }
    assert_eq!(site.asked("/token").len(), 1);
}

#[tokio::test]
async fn the_old_transport_logs_in_too() {
    let site = Site::start(Rules::default());
    let mut spec = spec(&site, client_credentials());
    spec.transport = Some(TransportKind::Sse);
    let error = start(&spec).await.unwrap_err().to_string();
    // The server has no event stream; it was asked for one with a token.
    assert!(error.contains("405"), "{error}");
    assert!(site.asked("/mcp").last().unwrap().token().is_some());
}

#[tokio::test]
async fn no_secret_of_a_login_is_in_a_recording() {
    let site = Site::start(Rules::default());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.jsonl");
    let recorder = Recorder::create(&file).unwrap();
    let options = Options { recorder: Some(recorder.clone()), ..Options::default() };
    let session = Session::start(&spec(&site, browser()), &options).await.unwrap();
    let reply = session.call("whoami", &Map::new()).await.unwrap();
    assert!(reply.texts().concat().contains("access-token-number-1"), "the server says the token");
    session.close().await;
    recorder.finish().unwrap();
    let recorded = std::fs::read_to_string(&file).unwrap();
    assert!(recorded.contains("you sent Bearer [redacted]"), "{recorded}");
    for secret in ["access-token-number", "refresh-token-number", "code-of-the-login"] {
        assert!(!recorded.contains(secret), "{secret}: {recorded}");
    }
    let verifier = &site.asked("/token")[0].form()["code_verifier"];
    assert!(!recorded.contains(verifier.as_str()));
}

/// Starts a session with each hostile site. It must be refused with this message, in bounded time.
async fn refused(rules: Rules, auth: AuthSpec, message: &str) -> Site {
    let site = Site::start(rules);
    let spec = spec(&site, auth);
    let limit = Duration::from_secs(60);
    let started = tokio::time::timeout(limit, start(&spec)).await.expect("it hangs");
    let error = started.expect_err("it must be refused").to_string();
    assert!(error.contains(message), "{message}: {error}");
    assert!(error.len() < 1_000 && !error.contains('\u{1b}'), "{error}");
    for secret in ["secret-of-the-client", "access-token-number", "code-of-the-login"] {
        assert!(!error.contains(secret), "{error}");
    }
    site
}

#[tokio::test]
async fn metadata_of_another_issuer_is_refused() {
    for metadata in [
        |_: &str, body: &mut Value| body["issuer"] = json!("https://evil.example"),
        |base: &str, body: &mut Value| body["issuer"] = json!(format!("{base}/")),
        |_: &str, body: &mut Value| drop(body.as_object_mut().unwrap().remove("issuer")),
    ] {
        let rules = Rules { metadata, ..Rules::default() };
        let site = refused(rules, client_credentials(), "another issuer").await;
        assert!(site.asked("/token").is_empty());
    }
}

#[tokio::test]
async fn redirects_of_an_authorisation_server_are_not_followed() {
    static ELSEWHERE: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let elsewhere = Site::start(Rules::default());
    ELSEWHERE.set(elsewhere.url.clone()).unwrap();
    for first in [
        |_: &str, asked: &Asked| {
            asked
                .path
                .starts_with("/.well-known/oauth-protected-resource")
                .then(|| redirect(302, &format!("{}{}", ELSEWHERE.get().unwrap(), asked.path)))
        },
        |_: &str, asked: &Asked| {
            asked
                .path
                .starts_with("/.well-known/oauth-authorization-server")
                .then(|| redirect(301, &format!("{}{}", ELSEWHERE.get().unwrap(), asked.path)))
        },
        |_: &str, asked: &Asked| {
            (asked.path == "/token")
                .then(|| redirect(307, &format!("{}/token", ELSEWHERE.get().unwrap())))
        },
    ] {
        let rules = Rules { first, ..Rules::default() };
        refused(rules, client_credentials(), "which is not followed").await;
    }
    let rules = Rules {
        first: |_, asked| {
            (asked.path == "/register")
                .then(|| redirect(308, &format!("{}/register", ELSEWHERE.get().unwrap())))
        },
        ..Rules::default()
    };
    refused(rules, browser(), "which is not followed").await;
    assert!(elsewhere.asked("/").is_empty(), "{:?}", elsewhere.asked("/"));
}

#[tokio::test]
async fn plain_http_is_for_this_machine_alone() {
    let rules = Rules {
        resource: |_, body| body["authorization_servers"] = json!(["http://login.example"]),
        ..Rules::default()
    };
    refused(rules, client_credentials(), "is plain http").await;
    for endpoint in [
        |_: &str, body: &mut Value| body["token_endpoint"] = json!("http://login.example/token"),
        |_: &str, body: &mut Value| body["registration_endpoint"] = json!("http://login.example/r"),
        |_: &str, body: &mut Value| {
            body["authorization_endpoint"] = json!("http://login.example/a");
        },
        |_: &str, body: &mut Value| {
            body["device_authorization_endpoint"] = json!("http://login.example/d");
        },
    ] {
        refused(Rules { metadata: endpoint, ..Rules::default() }, browser(), "is plain http").await;
    }
    let rules = Rules {
        metadata: |_, body| body["authorization_endpoint"] = json!("javascript:alert(1)"),
        ..Rules::default()
    };
    refused(rules, browser(), "has no host").await;
}

/// The metadata of the authorisation server, with this body.
fn metadata(asked: &Asked, body: Body) -> Option<Said> {
    let is_metadata = asked.path.contains("oauth-authorization-server");
    is_metadata.then(|| Said { status: 200, headers: Vec::new(), body })
}

#[tokio::test]
async fn huge_endless_and_deep_metadata_is_refused() {
    let rules =
        Rules { metadata: |_, body| body["x"] = json!("x".repeat(10 << 20)), ..Rules::default() };
    refused(rules, client_credentials(), "more than 262144 bytes").await;
    let rules =
        Rules { resource: |_, body| body["x"] = json!("x".repeat(10 << 20)), ..Rules::default() };
    refused(rules, client_credentials(), "more than 262144 bytes").await;
    let rules = Rules { first: |_, asked| metadata(asked, Body::Endless), ..Rules::default() };
    refused(rules, client_credentials(), "more than 262144 bytes").await;
    let rules = Rules { first: |_, asked| metadata(asked, Body::Stalled), ..Rules::default() };
    refused(rules, client_credentials(), "no complete answer within 10 s").await;
    let rules = Rules {
        first: |_, asked| metadata(asked, Body::Whole(format!("{{\"a\":{}", "[".repeat(100_000)))),
        ..Rules::default()
    };
    refused(rules, client_credentials(), "not a JSON object").await;
    let rules = Rules {
        first: |_, asked| {
            (asked.path == "/token")
                .then(|| said(200, &json!({"access_token": "x".repeat(1 << 20)})))
        },
        ..Rules::default()
    };
    refused(rules, client_credentials(), "more than 262144 bytes").await;
}

#[tokio::test]
async fn metadata_of_another_resource_is_refused() {
    for resource in [
        |_: &str, body: &mut Value| body["resource"] = json!("https://evil.example/mcp"),
        |base: &str, body: &mut Value| body["resource"] = json!(format!("{base}/mcp/other")),
        |_: &str, body: &mut Value| drop(body.as_object_mut().unwrap().remove("resource")),
    ] {
        let site = refused(
            Rules { resource, ..Rules::default() },
            client_credentials(),
            "metadata is for",
        )
        .await;
        assert!(site.asked("/token").is_empty());
    }
    let rules =
        Rules { resource: |_, body| body["authorization_servers"] = json!([]), ..Rules::default() };
    refused(rules, client_credentials(), "names no authorisation server").await;
    let rules = Rules {
        first: |_, asked| {
            let mut refused = said(401, &json!({}));
            let elsewhere = "Bearer resource_metadata=\"https://evil.example/x\"";
            refused.headers.push(("www-authenticate".to_owned(), elsewhere.to_owned()));
            (asked.path == "/mcp").then_some(refused)
        },
        ..Rules::default()
    };
    refused(rules, client_credentials(), "not on the server itself").await;
}

#[tokio::test]
async fn only_the_named_issuer_is_accepted() {
    let auth =
        AuthSpec { issuer: Some("https://login.example".to_owned()), ..client_credentials() };
    let site = refused(Rules::default(), auth, "not from the issuer https://login.example").await;
    assert!(site.asked("/token").is_empty());
}

#[tokio::test]
async fn a_server_without_pkce_is_refused() {
    for metadata in [
        |_: &str, body: &mut Value| {
            drop(body.as_object_mut().unwrap().remove("code_challenge_methods_supported"));
        },
        |_: &str, body: &mut Value| body["code_challenge_methods_supported"] = json!(["plain"]),
    ] {
        let site = refused(Rules { metadata, ..Rules::default() }, browser(), "PKCE").await;
        assert!(site.asked("/authorize").is_empty());
    }
}

#[tokio::test]
async fn callbacks_with_a_wrong_state_are_ignored_and_floods_end_the_login() {
    let one_wrong = Rules {
        browser: |_, right| {
            let (redirect, _) = right.split_once('?').unwrap();
            let pages = [format!("{redirect}?code=evil-code&state=wrong"), right.to_owned()];
            Said { status: 200, headers: Vec::new(), body: Body::Whole(pages.join("\n")) }
        },
        ..Rules::default()
    };
    let site = Site::start(one_wrong);
    start(&spec(&site, browser())).await.unwrap();
    assert_eq!(site.asked("/token")[0].form()["code"], "code-of-the-login");

    let flood = Rules {
        browser: |_, right| {
            let (redirect, _) = right.split_once('?').unwrap();
            let page = |at: usize| match at % 2 {
                0 => format!("{redirect}?code=evil-code&state=wrong{at}"),
                _ => format!("{redirect}?code=evil-code"),
            };
            let pages: Vec<String> = (0..40).map(page).collect();
            Said { status: 200, headers: Vec::new(), body: Body::Whole(pages.join("\n")) }
        },
        ..Rules::default()
    };
    let site = refused(flood, browser(), "callbacks had a wrong state").await;
    assert!(site.asked("/token").is_empty());
}

#[tokio::test]
async fn answers_of_another_issuer_are_refused() {
    let wrong = Rules {
        browser: |_, right| redirect(302, &format!("{right}&iss=https%3A%2F%2Fevil.example")),
        ..Rules::default()
    };
    let site = refused(wrong, browser(), "comes from an issuer other than").await;
    assert!(site.asked("/token").is_empty());
    let missing = Rules {
        metadata: |_, body| body["authorization_response_iss_parameter_supported"] = json!(true),
        ..Rules::default()
    };
    let site = refused(missing, browser(), "does not name its issuer").await;
    assert!(site.asked("/token").is_empty());
    let right = Rules {
        metadata: |_, body| body["authorization_response_iss_parameter_supported"] = json!(true),
        browser: |base, right| {
            let iss = base.replace(':', "%3A").replace('/', "%2F");
            redirect(302, &format!("{right}&iss={iss}"))
        },
        ..Rules::default()
    };
    start(&spec(&Site::start(right), browser())).await.unwrap();
}

#[tokio::test]
async fn a_login_that_is_denied_says_so() {
    let rules = Rules {
        browser: |_, right| {
            let (redirect_uri, query) = right.split_once('?').unwrap();
            let state = query.split_once("state=").unwrap().1;
            let to = format!(
                "{redirect_uri}?error=access_denied&error_description=no%1B%5B2J&state={state}"
            );
            redirect(302, &to)
        },
        ..Rules::default()
    };
    refused(rules, browser(), "refuses the login: access_denied").await;
}

#[tokio::test]
async fn tokens_that_are_not_bearer_tokens_or_never_valid_are_refused() {
    for (token, message) in [
        ((|_, body| body["token_type"] = json!("mac")) as fn(&Asked, &mut Value), "not Bearer"),
        (|_, body| drop(body.as_object_mut().unwrap().remove("token_type")), "not Bearer"),
        (|_, body| body["expires_in"] = json!(-1), "expires_in"),
        (|_, body| body["expires_in"] = json!(0), "expires_in"),
        (|_, body| body["access_token"] = json!("a\r\nX-Evil: 1"), "cannot be sent in a header"),
        (|_, body| body["access_token"] = json!(""), "cannot be sent in a header"),
        (
            |_, body| {
                *body = json!({"error": "invalid_client", "error_description": "secret-of-the-client?"});
            },
            "invalid_client",
        ),
    ] {
        let message =
            message.replace("cannot be sent in a header", "no token that can be sent in a header");
        refused(Rules { token, ..Rules::default() }, client_credentials(), &message).await;
    }
}

#[tokio::test]
async fn a_server_that_changes_its_authorisation_server_gets_no_credentials_of_the_first() {
    static OTHER: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let other = Site::start(Rules::default());
    OTHER.set(other.url.clone()).unwrap();
    let rules = Rules {
        first: |base, asked| {
            // After the first token was issued, the metadata names the other one.
            static ISSUED: std::sync::atomic::AtomicBool =
                std::sync::atomic::AtomicBool::new(false);
            use std::sync::atomic::Ordering::SeqCst;
            if asked.path == "/token" {
                ISSUED.store(true, SeqCst);
            }
            (asked.path.contains("protected-resource") && ISSUED.load(SeqCst)).then(|| {
                said(200, &json!({"resource": format!("{base}/mcp"), "authorization_servers": [OTHER.get().unwrap()]}))
            })
        },
        refuses: |asked| match asked.token() {
            None => Some((401, "")),
            Some(_) if asked.body.contains("tools/call") => Some((401, "")),
            Some(_) => None,
        },
        ..Rules::default()
    };
    let site = Site::start(rules);
    let session = start(&spec(&site, client_credentials())).await.unwrap();
    let error = call(&session).await.unwrap_err().to_string();
    assert!(error.contains("the client is registered at"), "{error}");
    assert!(other.asked("/token").is_empty());
}

#[test]
fn a_login_is_checked_before_anything_is_sent() {
    let check = |text: &str| {
        let spec: Result<ServerSpec, _> = serde_json::from_str(text);
        match spec {
            Ok(spec) => spec.transport().map(drop).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    };
    let with =
        |auth: &str| check(&format!(r#"{{"url": "http://127.0.0.1:1/mcp", "auth": {auth}}}"#));
    with(r#"{"kind": "browser", "scopes": ["a"], "redirect_port": 3000}"#).unwrap();
    with(r#"{"kind": "client-credentials", "client_id": "x", "client_secret": "${S}"}"#).unwrap();
    for (auth, message) in [
        (r#"{"kind": "token"}"#, "access_token"),
        (r#"{"kind": "client-credentials", "client_id": "x"}"#, "client_secret or private_key"),
        (r#"{"kind": "browser", "client_secret": "x"}"#, "need client_id"),
        (r#"{"kind": "device", "redirect_port": 1}"#, "for kind browser"),
        (r#"{"kind": "browser", "access_token": "x"}"#, "for kind token"),
        (r#"{"kind": "browser", "scopes": ["a b"]}"#, "one word"),
        (r#"{"kind": "telepathy"}"#, "unknown variant"),
        (r#"{"kind": "browser", "clientid": "x"}"#, "unknown field"),
    ] {
        let error = with(auth).unwrap_err();
        assert!(error.contains(message), "{auth}: {error}");
    }
    let error = check(r#"{"command": ["x"], "auth": {"kind": "browser"}}"#).unwrap_err();
    assert!(error.contains("a server at a url"), "{error}");
}
