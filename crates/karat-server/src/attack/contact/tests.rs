//! Attacks on addresses and overloads of scripted servers.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use karat_core::observed::AttackStatus;
use serde_json::{Map, Value, json};

use super::super::attacks::ATTACKS;
use super::super::attempts::Access;
use super::super::canary_site::CanarySite;
use super::super::config::Config;
use super::super::memory::Memory;
use super::super::pages::landing;
use super::*;
use crate::observation::Outcome;
use crate::probe::known_inputs::Successes;
use crate::probe::live::{CallResult, Flooded, Rebound};
use crate::probe::stop::Deadline;
use crate::suggest::inputs::KnownValues;

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

/// A server that answers as a function says that gets the sent address, and the number of the call from 0.
struct Scripted<F> {
    count: AtomicUsize,
    answer: F,
}

impl<F: Fn(&str, usize) -> Outcome + Sync> Target for Scripted<F> {
    fn answer(&self, attempt: &Attempt) -> Outcome {
        let url = attempt.arguments.get("url").and_then(Value::as_str).unwrap_or_default();
        (self.answer)(url, self.count.fetch_add(1, Ordering::Relaxed))
    }
}

fn scripted<F: Fn(&str, usize) -> Outcome + Sync>(answer: F) -> Scripted<F> {
    Scripted { count: AtomicUsize::new(0), answer }
}

fn said(text: &str) -> Outcome {
    Outcome::Result { result: json!({"content": [{"type": "text", "text": text}]}) }
}

fn status(status: &str) -> Outcome {
    Outcome::Transport { why: format!("HTTP status {status}") }
}

/// The path of an address of the listener.
fn path_of<'a>(url: &'a str, site: &CanarySite) -> Option<&'a str> {
    Some(url.split_once(&format!(":{}", site.listener.port()))?.1)
}

/// The results of the last of these attacks on a tool with the parameter `url`.
async fn attack(target: &impl Target, site: &CanarySite, ids: &[&str]) -> Vec<AttackResult> {
    let schema =
        json!({"type": "object", "required": ["url"], "properties": {"url": {"type": "string"}}});
    let tool = Definition::new(json!({"name": "get", "inputSchema": schema})).unwrap();
    let mut runner = AttackRunner {
        target,
        site,
        config: &Config::default(),
        known: Some((&Successes::default(), &KnownValues::default())),
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
        assert!(why.contains("asked no address of this machine"), "{why}");
    }
}

#[tokio::test]
async fn addresses_that_showed_nothing_are_not_tried_again_for_metadata() {
    let count = async |ids: &[&str]| {
        let site = CanarySite::prepare(&[], false).await.unwrap();
        let asked = AtomicUsize::new(0);
        let target = scripted(|url, _| {
            asked.fetch_add(usize::from(url.contains("/loopback/")), Ordering::Relaxed);
            said("done")
        });
        let [result] = &attack(&target, &site, ids).await[..] else { panic!() };
        (result.status, asked.into_inner())
    };
    let (_, loopback) = count(&["ssrf-loopback"]).await;
    let expected = (AttackStatus::NotExecuted, loopback);
    assert!(loopback > 5);
    assert_eq!(count(&["ssrf-metadata"]).await, expected);
    assert_eq!(count(&["ssrf-loopback", "ssrf-metadata"]).await, expected);
}

/// The path that a tool asks for instead of the path in the address.
type Derives = fn(&str) -> String;

/// The statuses of the three attacks on addresses, on a tool that asks for a page that it derives from the address.
async fn on_deriving(derives: Derives) -> Vec<AttackStatus> {
    let mut found = Vec::new();
    for id in ["ssrf-loopback", "ssrf-metadata", "ssrf-redirect"] {
        let site = CanarySite::prepare(&[], false).await.unwrap();
        let target = scripted(|url, _| {
            if let Some(path) = path_of(url, &site) {
                let asked = derives(path);
                site.listener.record(&asked);
                landing(&asked).iter().for_each(|path| site.listener.record(path));
            }
            said("loaded")
        });
        found.extend(attack(&target, &site, &[id]).await.into_iter().map(|result| result.status));
    }
    found
}

#[tokio::test]
async fn a_page_that_a_tool_derives_from_an_address_is_as_bad_as_the_address() {
    let derivations: [(&str, Derives); 5] = [
        ("the folder", |path| path.rsplit_once('/').map_or("/", |(folder, _)| folder).to_owned()),
        ("another page", |path| format!("{}/openapi.json", &path[..path.rfind('/').unwrap_or(0)])),
        ("a page below", |path| format!("{path}/.well-known/openid-configuration")),
        ("an extension", |path| format!("{path}.git/info/refs?service=git-upload-pack")),
        ("capitals", |path| path.to_uppercase()),
    ];
    for (about, derives) in derivations {
        assert_eq!(on_deriving(derives).await, [AttackStatus::Broken; 3], "{about}");
    }
    // Two levels up, the number is gone and the place is left.
    let above: Derives = |path| {
        let parts: Vec<&str> = path.split('/').collect();
        format!("{}/openapi.json", parts[..parts.len() - 2].join("/"))
    };
    assert_eq!(on_deriving(above).await, [AttackStatus::Broken; 3]);
    let top: Derives = |_| "/openapi.json".to_owned();
    let (broken, held, unknown) =
        (AttackStatus::Broken, AttackStatus::Held, AttackStatus::NotExecuted);
    assert_eq!(on_deriving(top).await, [broken, held, unknown]);
}

#[tokio::test]
async fn a_page_in_the_answer_says_that_the_contact_was_of_the_tool() {
    let site = CanarySite::prepare(&[], false).await.unwrap();
    let asked = AtomicUsize::new(0);
    // It keeps its pages, so that it asks only once.
    let target = scripted(|url, _| match path_of(url, &site) {
        Some(_) => {
            if asked.fetch_add(1, Ordering::Relaxed) == 0 {
                site.listener.record("/");
            }
            said(site.listener.page_token())
        }
        None => said("a page"),
    });
    let [result] = &attack(&target, &site, &["ssrf-loopback"]).await[..] else { panic!() };
    assert_eq!((result.status, result.attempts), (AttackStatus::Broken, 1), "{result:?}");

    let target = scripted(|_, _| said(site.listener.page_token()));
    let [result] = &attack(&target, &site, &["ssrf-loopback"]).await[..] else { panic!() };
    assert_eq!(result.status, AttackStatus::NotExecuted, "{result:?}");
    assert!(result.why.as_ref().unwrap().contains("at another time"), "{result:?}");
}

/// A request to the listener.
#[derive(Clone, Copy)]
enum Comes {
    Silence,
    Tls,
    Page,
}

/// The result of `ssrf-loopback` on a server at whose calls something comes to the listener, if `is_made` says so of
/// whether the call is an attempt and of the number of the call.
async fn on_contacts(comes: Comes, is_made: fn(bool, usize) -> bool) -> AttackResult {
    let site = CanarySite::prepare(&[], false).await.unwrap();
    let target = scripted(|url, number| {
        if is_made(path_of(url, &site).is_some(), number) {
            match comes {
                Comes::Silence => site.listener.record_silence(),
                Comes::Tls => site.listener.record("*"),
                Comes::Page => site.listener.record("/status"),
            }
        }
        said("done")
    });
    attack(&target, &site, &["ssrf-loopback"]).await.remove(0)
}

#[tokio::test]
async fn a_contact_without_a_number_counts_if_it_comes_again_and_only_with_the_attack() {
    let with_attack: fn(bool, usize) -> bool = |is_attempt, _| is_attempt;
    for (comes, status, said) in [
        (Comes::Silence, AttackStatus::NotExecuted, "sends no request"),
        (Comes::Tls, AttackStatus::Broken, "another protocol"),
        (Comes::Page, AttackStatus::Broken, "was called"),
    ] {
        let result = on_contacts(comes, with_attack).await;
        assert_eq!(result.status, status, "{result:?}");
        let evidence = result.evidence.unwrap().canary;
        assert!(result.why.unwrap_or(evidence).contains(said), "{said}");
    }
    for comes in [Comes::Silence, Comes::Tls, Comes::Page] {
        // Another program finds the port while the third call is made.
        let once = on_contacts(comes, |_, number| number == 2).await;
        assert_eq!(once.status, AttackStatus::NotExecuted, "{once:?}");
        assert!(once.why.unwrap().contains("not when it was made again"));
        // It asks all the time.
        let always = on_contacts(comes, |_, _| true).await;
        assert_eq!(always.status, AttackStatus::NotExecuted, "{always:?}");
        assert!(always.why.unwrap().contains("without the attack too"));
        let never = on_contacts(comes, |_, _| false).await;
        assert_eq!(never.status, AttackStatus::Held, "{never:?}");
    }
}

#[tokio::test]
async fn a_late_call_of_one_attempt_is_not_credited_to_another_attack() {
    let site = CanarySite::prepare(&[], false).await.unwrap();
    // Each address is called during the next call.
    let last = Mutex::new(None::<String>);
    let target = scripted(|url, _| {
        let path = path_of(url, &site).map(str::to_owned);
        let late = std::mem::replace(&mut *last.lock().unwrap(), path);
        late.iter().for_each(|path| site.listener.record(path));
        said("queued")
    });
    let ids = ["ssrf-loopback", "ssrf-redirect"];
    let [redirect] = &attack(&target, &site, &ids).await[..] else { panic!() };
    assert_eq!(redirect.status, AttackStatus::Held, "{redirect:?}");
}

/// The statuses of three overloads on a server with these answers.
async fn overloaded(answer: impl Fn(&str, usize) -> Outcome + Sync) -> Vec<AttackStatus> {
    let site = CanarySite::prepare(&[], false).await.unwrap();
    let target = scripted(answer);
    let mut found = Vec::new();
    for id in ["huge-input", "deep-input", "request-flood"] {
        target.count.store(0, Ordering::Relaxed);
        found.extend(attack(&target, &site, &[id]).await.into_iter().map(|result| result.status));
    }
    found
}

#[tokio::test]
async fn a_server_without_any_answer_neither_breaks_nor_holds_under_an_overload() {
    let unreadable =
        || Outcome::Invalid { why: "the answer has the content type text/html".into() };
    let dropped = || Outcome::Transport { why: "the connection was closed".to_owned() };
    for code in ["500: down", "502 Bad Gateway", "503", "302 Found: /login", "404", "429"] {
        let found = overloaded(|_, _| status(code)).await;
        assert_eq!(found, [AttackStatus::NotExecuted; 3], "{code}");
    }
    // Balancers differ from one request to the next.
    let found = overloaded(|_, number| status(["502", "503"][number % 2])).await;
    assert_eq!(found, [AttackStatus::NotExecuted; 3]);
    assert_eq!(overloaded(|_, _| unreadable()).await, [AttackStatus::NotExecuted; 3]);
    assert_eq!(overloaded(|_, _| dropped()).await, [AttackStatus::NotExecuted; 3]);
}

#[tokio::test]
async fn an_overload_is_judged_by_a_server_that_answers_otherwise() {
    let is_huge = |url: &str| url.len() > 1_000_000;
    let (broken, held) = (AttackStatus::Broken, AttackStatus::Held);
    let of_huge = |outcome: Outcome| {
        move |url: &str, _: usize| if is_huge(url) { outcome.clone() } else { said("fine") }
    };
    assert_eq!(overloaded(of_huge(status("500"))).await, [broken, held, held]);
    for code in ["413 Content Too Large", "400", "302 Found"] {
        assert_eq!(overloaded(of_huge(status(code))).await, [held; 3], "{code}");
    }
    let unreadable = Outcome::Invalid { why: "the answer has more than 64 levels".to_owned() };
    assert_eq!(overloaded(of_huge(unreadable)).await, [held; 3]);
    // The plain call, then the attempt that ends it for good.
    let ended = |_: &str, number: usize| if number == 0 { said("fine") } else { status("502") };
    assert_eq!(overloaded(ended).await[0], broken);
}

#[tokio::test]
async fn a_server_that_stops_answering_before_an_overload_has_stopped_working() {
    let site = CanarySite::prepare(&[], false).await.unwrap();
    // A quota: the plain call and the attempts on files are answered in part.
    let target = scripted(|_, number| if number < 4 { said("fine") } else { status("503") });
    let ids = ["absolute-path", "huge-input"];
    let [huge] = &attack(&target, &site, &ids).await[..] else { panic!() };
    assert_eq!((huge.status, huge.has_stopped), (AttackStatus::NotExecuted, true), "{huge:?}");
}
