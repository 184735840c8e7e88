//! A session against our own server, over every transport and revision.

use crate::support;

use std::collections::BTreeMap;
use std::time::Duration;

use karat_io::FailureClass;
use karat_mcp::serve::HttpServer;
use karat_mcp::{CallError, CallOptions, Options, Policies, Revision, Roots, ServerSpec, Session};
use serde_json::{Map, json};
use support::{Chatty, arguments, in_process, offer, on_http, plain_offer, scripted};

/// Checks that hold on every transport.
async fn holds(session: &Session, revision: Revision) {
    assert_eq!(session.server().revision, revision);
    assert_eq!(session.server().name, "toolbox");
    assert_eq!(session.server().version, "1.2.3");
    assert_eq!(session.server().instructions.as_deref(), Some("Be kind."));

    let tools = session.tools().await.unwrap();
    let raw: Vec<_> = tools.iter().map(|tool| tool.raw().clone()).collect();
    assert_eq!(raw, offer().tools);
    assert_eq!(
        serde_json::to_string(&raw).unwrap(),
        serde_json::to_string(&offer().tools).unwrap()
    );

    let given = arguments(json!({"z": 1, "a": {"deep": ["ä", 1.25, null]}}));
    let reply = session.call("echo", &given).await.unwrap();
    assert!(!reply.is_error);
    assert_eq!(reply.structured(), Some(&json!(given)));
    assert_eq!(reply.texts(), [json!(given).to_string()]);
    assert_eq!(reply.raw["unknownField"], json!([1, 2.5, null]));
    assert_eq!(reply.raw["content"][1]["type"], "odd");
    assert!(reply.latency > Duration::ZERO);

    let failed = session.call("fail", &Map::new()).await.unwrap();
    assert!(failed.is_error);

    let refused = session.call("refuse", &Map::new()).await.unwrap_err();
    assert_eq!(
        refused,
        CallError::Protocol {
            code: -32000,
            message: "refused".to_owned(),
            data: Some(json!({"why": "because"})),
        }
    );
    let unknown = session.call("nö such tool", &Map::new()).await.unwrap_err();
    assert!(matches!(unknown, CallError::Protocol { code: -32602, .. }), "{unknown}");
    assert_eq!(unknown.class(), FailureClass::Refused);
    let method = session.request("no/such/method", &Map::new()).await.unwrap_err();
    assert!(matches!(method, CallError::Protocol { code: -32601, .. }), "{method}");

    let options = CallOptions {
        timeout: Some(Duration::from_millis(50)),
        progress: true,
        ..CallOptions::default()
    };
    let late = session.call_with("wait", &Map::new(), options).await.unwrap_err();
    assert!(matches!(late, CallError::Timeout { .. }), "{late}");
    assert!(!late.is_lost());
    // The session continues.
    assert!(session.call("echo", &Map::new()).await.is_ok());
    let log = session.protocol_log();
    assert_eq!(log.warnings(), [""; 0]);
}

#[tokio::test]
async fn every_revision_works_over_streams() {
    for revision in Revision::ALL {
        let session = in_process(Some(revision), &Options::default()).await;
        holds(&session, revision).await;
    }
}

#[tokio::test]
async fn every_revision_works_over_http() {
    let url = on_http().await;
    for revision in Revision::ALL {
        let spec = ServerSpec {
            protocol: Some(revision),
            ..ServerSpec::from_url(format!("{url}/toolbox/mcp"))
        };
        let session = Session::start(&spec, &Options::default()).await.unwrap();
        holds(&session, revision).await;
        session.close().await;
    }
}

#[tokio::test]
async fn the_newest_revision_with_a_handshake_is_the_default() {
    let session = in_process(None, &Options::default()).await;
    assert_eq!(session.server().revision, Revision::V2025_11_25);
}

#[tokio::test]
async fn several_offers_share_one_listener() {
    let url = on_http().await;
    let spec = ServerSpec::from_url(format!("{url}/empty"));
    let session = Session::start(&spec, &Options::default()).await.unwrap();
    assert_eq!(session.server().name, "empty");
    assert_eq!(session.tools().await.unwrap(), []);
    let nowhere = ServerSpec::from_url(format!("{url}/nowhere"));
    let error = Session::start(&nowhere, &Options::default()).await.unwrap_err();
    assert!(error.to_string().contains("404"), "{error}");
}

#[tokio::test]
async fn a_child_process_ends_with_the_session() {
    let session =
        Session::start(&scripted("tools: [{name: echo}]"), &Options::default()).await.unwrap();
    let reply = session.call("echo", &arguments(json!({"x": 1}))).await.unwrap();
    assert_eq!(reply.texts(), [r#"{"x":1}"#]);
    let ending = session.close().await;
    assert!(ending.how.contains("exit status: 0"), "{}", ending.how);
}

#[tokio::test]
async fn concurrent_calls_get_their_answers() {
    let session = in_process(None, &Options::default()).await;
    let session = std::sync::Arc::new(session);
    let calls: Vec<_> = (0..200)
        .map(|number| {
            let session = std::sync::Arc::clone(&session);
            tokio::spawn(async move {
                let reply = session.call("echo", &arguments(json!({"n": number}))).await.unwrap();
                assert_eq!(reply.structured(), Some(&json!({"n": number})));
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
}

#[tokio::test]
async fn a_cancelled_call_is_dropped_by_the_server_and_never_answered() {
    let session = in_process(None, &Options::default()).await;
    let options =
        CallOptions { timeout: Some(Duration::from_millis(20)), ..CallOptions::default() };
    let given = arguments(json!({"milliseconds": 150}));
    let late = session.call_with("wait", &given, options).await.unwrap_err();
    assert!(matches!(late, CallError::Timeout { .. }), "{late}");
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(session.call("echo", &Map::new()).await.is_ok());
    assert_eq!(session.protocol_log().late_answers, 0);
}

async fn chats(session: &Session, revision: Revision) {
    let wanted = CallOptions { progress: true, ..CallOptions::default() };
    let said = session.call_with("say", &Map::new(), wanted.clone()).await.unwrap();
    assert_eq!(said.progress.len(), 2);
    let reply = session.call_with("refuse", &Map::new(), wanted).await.unwrap();
    assert_eq!(reply.progress.len(), 2);
    assert_eq!(reply.progress[1]["total"], 2.0);
    let log = session.protocol_log();
    assert_eq!(log.log_messages, 1);
    if revision.has_handshake() {
        assert_eq!(reply.texts(), ["file:///data"]);
        assert_eq!(log.requests_answered, 1);
    } else {
        assert!(reply.texts()[0].contains("-32601"), "{:?}", reply.texts());
    }
    assert_eq!(session.list("prompts/list", "prompts").await.unwrap(), [json!({"name": "p"})]);
    assert!(session.server().capabilities.get("prompts").is_some());
}

#[tokio::test]
async fn a_tool_sends_notifications_and_requests_to_its_client() {
    let address = "127.0.0.1:0".parse().unwrap();
    let at = BTreeMap::from([("/mcp".to_owned(), plain_offer())]);
    let server = HttpServer::bind(address, at, Chatty).await.unwrap();
    let url = format!("http://{}/mcp", server.address());
    tokio::spawn(server.run_until(std::future::pending::<()>()));
    let policies =
        Policies { roots: Roots::List(vec!["file:///data".into()]), ..Policies::default() };
    let options = Options { policies, ..Options::default() };
    for revision in Revision::ALL {
        let spec = ServerSpec { protocol: Some(revision), ..ServerSpec::from_url(&url) };
        chats(&Session::start(&spec, &options).await.unwrap(), revision).await;
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        tokio::spawn(karat_mcp::serve::over(plain_offer(), Chatty, read, write));
        let (read, write) = tokio::io::split(ours);
        let session = Session::over(read, write, Some(revision), &options).await.unwrap();
        chats(&session, revision).await;
    }
}
