//! Servers that break the protocol: each fault has its class, the session ends by itself or continues, and
//! no process is left.

use crate::support;

use std::time::Duration;

use karat_io::FailureClass;
use karat_mcp::{CallError, Limits, Options, Reply, ServerSpec, Session, StartError, Violation};
use serde_json::{Map, json};
use support::{arguments, scripted, spec};

/// A server with one tool `t` that breaks the protocol in a certain way. Its version is its process id.
fn misbehaving(how: &str) -> ServerSpec {
    let stderr_flood = format!(
        "do: [{{repeat: {{times: 2000, do: [{{stderr: {}}}]}}}}, {{text: done}}]",
        "e".repeat(4_096)
    );
    let (server, tool) = match how {
        "exit-at-start" => ("start: [{stderr: cannot read the configuration}, {exit: 7}]", ""),
        "silent" => ("start: [hang]", ""),
        "log-and-hang" => (r#"start: [{line: '{"level":30}'}, hang]"#, ""),
        "garbage" => (
            "start: [{line: 'Listening on stdio, press any key!'}]",
            r#"do: [{raw: "calling...\n\n   \n"}, {text: done}]"#,
        ),
        "garbage-flood" => ("start: [{forever: [{line: this is not a message}]}]", ""),
        "secret" => (
            r#"start: [{stderr: "starting with ${env.API_TOKEN}"}]"#,
            "do: [{error: {code: -32000, message: '${env.API_TOKEN} is not accepted'}}]",
        ),
        "endless-pages" => (
            "methods: {tools/list: [{result: {tools: [{name: t}], nextCursor: 'page ${count}'}}]}",
            "",
        ),
        "slow-pages" => (
            "methods: {tools/list: [{wait_ms: 200}, \
             {result: {tools: [{name: t}], nextCursor: 'page ${count}'}}]}",
            "",
        ),
        "same-page" => {
            ("methods: {tools/list: [{result: {tools: [{name: t}], nextCursor: again}}]}", "")
        }
        "no-tool-list" => ("methods: {tools/list: [{result: {tools: none}}]}", ""),
        "nameless-tool" => {
            ("methods: {tools/list: [{result: {tools: [{description: who am I?}]}}]}", "")
        }
        "without-id" => (
            "",
            r#"do: [{message: {jsonrpc: "2.0", id: null, error: {code: -32601, message: no such method}}},
                    {line: '{"level":30,"msg":"handling"}'}, {line: "42"}, {text: done}]"#,
        ),
        "half-line" => ("", r#"do: [{raw: '{"jsonrpc":"2.0","id":'}, {exit: 0}]"#),
        "half-line-and-hang" => ("", r#"do: [{raw: '{"jsonrpc":"2.0","id":'}, hang]"#),
        "exit-mid-call" => ("", "do: [{stderr: out of memory}, {exit: 3}]"),
        "hang" => ("", "do: [hang]"),
        "out-of-order" => ("", "do: [{hold: 3}, echo]"),
        "wrong-id" => (
            "",
            "do: [{answer_as: 999999}, {text: a}, {answer_as: text}, {text: b}, {answer_as: null}, {text: c}]",
        ),
        "duplicate" => ("", "do: [{text: first}, {text: second}]"),
        "huge" => (
            "",
            r#"do: [{raw: '{"jsonrpc":"2.0","id":${id},"result":"'},
                    {fill: {with: x, bytes: '${arguments.bytes}'}}, {raw: "\"}\n"}]"#,
        ),
        "endless-line" => ("", "do: [{forever: [{fill: {with: x, bytes: 65536}}]}]"),
        "not-utf8" => (
            "",
            r#"do: [{raw: '{"jsonrpc":"2.0","id":${id},"result":{"content":"'}, {hex: fffe}, {raw: "\"}}\n"}]"#,
        ),
        "deep" => (
            "",
            r#"do: [{raw: '{"jsonrpc":"2.0","id":${id},"result":'}, {fill: {with: '[', bytes: 50000}},
                    {fill: {with: ']', bytes: 50000}}, {raw: "}\n"}]"#,
        ),
        "not-json-rpc" => ("", r#"do: [{line: '{"id":${id},"result":{}}'}]"#),
        "result-is-a-list" => ("", "do: [{result: [1, 2]}]"),
        "notification-flood" => (
            "",
            "do: [{forever: [{notify: {method: notifications/message, params: {level: info, data: x}}}]}]",
        ),
        "request-flood" => (
            "",
            r#"do: [{repeat: {times: 5000, do: [
                    {message: {jsonrpc: "2.0", id: r, method: sampling/createMessage}}]}}, {text: done}]"#,
        ),
        "stderr-flood" => ("", stderr_flood.as_str()),
        "grandchild" => ("", "do: [{spawn: [sleep, '1000']}, {text: '${child}'}]"),
        "grandchild-and-exit" => {
            ("", "do: [{spawn: [sleep, '1000']}, {stderr: 'grandchild ${child}'}, {exit: 4}]")
        }
        "list-changed" => {
            ("", "do: [{notify: {method: notifications/tools/list_changed}}, {text: done}]")
        }
        "outlive" => ("end: [hang]", ""),
        other => panic!("unknown fault {other}"),
    };
    scripted(&format!("version: '${{pid}}'\n{server}\ntools:\n  - {{name: t, {tool}}}\n"))
}

fn options() -> Options {
    Options {
        call_timeout: Duration::from_millis(1_500),
        limits: Limits {
            message_bytes: 1 << 20,
            noise_bytes: 1 << 16,
            pages: 50,
            ..Limits::default()
        },
        ..Options::default()
    }
}

fn pid(session: &Session) -> u32 {
    session.server().version.parse().unwrap()
}

async fn gone(pid: u32) {
    let gone = async {
        // A killed process stays visible as a zombie until its parent reaps it.
        while std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z"))
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap();
}

/// Starts the server, calls its tool, runs `check`, and waits until no process is left.
async fn calling(how: &str, check: impl AsyncFnOnce(&Session, Result<Reply, CallError>)) {
    calling_with(&options(), how, check).await;
}

async fn calling_with(
    options: &Options,
    how: &str,
    check: impl AsyncFnOnce(&Session, Result<Reply, CallError>),
) {
    let session = Session::start(&misbehaving(how), options).await.unwrap();
    let pid = pid(&session);
    let reply = session.call("t", &Map::new()).await;
    check(&session, reply).await;
    drop(session);
    gone(pid).await;
}

#[tokio::test]
async fn garbage_on_stdout_is_counted_and_the_session_continues() {
    calling("garbage", async |session, reply| {
        assert_eq!(reply.unwrap().texts(), ["done"]);
        let log = session.protocol_log();
        assert_eq!(log.count(Violation::Noise), 2);
        assert_eq!(log.first(Violation::Noise), Some("Listening on stdio, press any key!"));
    })
    .await;
}

#[tokio::test]
async fn endless_garbage_loses_the_server() {
    let error = Session::start(&misbehaving("garbage-flood"), &options()).await.unwrap_err();
    assert!(
        matches!(&error, StartError::NotStarted { why } if why.contains("not messages")),
        "{error}"
    );
}

#[tokio::test]
async fn an_exit_in_the_middle_of_a_line_loses_the_server() {
    calling("half-line", async |session, reply| {
        let error = reply.unwrap_err();
        assert!(error.is_lost() && error.to_string().contains("middle of a line"), "{error}");
        assert_eq!(error.class(), FailureClass::Transport);
        assert!(session.call("t", &Map::new()).await.unwrap_err().is_lost());
    })
    .await;
}

#[tokio::test]
async fn a_hang_in_the_middle_of_a_line_is_a_time_out() {
    calling("half-line-and-hang", async |_, reply| {
        assert_eq!(reply, Err(CallError::Timeout { said: String::new() }));
    })
    .await;
}

#[tokio::test]
async fn an_exit_at_the_start_is_reported_with_status_and_stderr() {
    let error = Session::start(&misbehaving("exit-at-start"), &options()).await.unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, StartError::NotStarted { .. }), "{message}");
    assert!(
        message.contains("exit status: 7") && message.contains("cannot read the configuration"),
        "{message}"
    );
}

#[tokio::test]
async fn a_program_that_is_not_a_server_is_not_started() {
    let error = Session::start(&spec(&["/bin/false"]), &options()).await.unwrap_err();
    assert!(error.to_string().contains("exit status: 1"), "{error}");
    let error = Session::start(&spec(&["/no/such/program"]), &options()).await.unwrap_err();
    assert!(matches!(error, StartError::NotStarted { .. }), "{error}");
    let quick = Options { start_timeout: Duration::from_millis(300), ..options() };
    let error = Session::start(&misbehaving("silent"), &quick).await.unwrap_err();
    assert!(matches!(error, StartError::Timeout { .. }), "{error}");
}

#[tokio::test]
async fn an_exit_in_the_middle_of_a_call_is_reported_with_status_and_stderr() {
    calling("exit-mid-call", async |_, reply| {
        let error = reply.unwrap_err();
        let message = error.to_string();
        assert!(error.is_lost(), "{message}");
        assert!(
            message.contains("exit status: 3") && message.contains("out of memory"),
            "{message}"
        );
    })
    .await;
}

#[tokio::test]
async fn an_exit_is_noticed_although_a_grandchild_holds_the_output_open() {
    let patient = Options { call_timeout: Duration::from_secs(60), ..options() };
    let session = Session::start(&misbehaving("grandchild-and-exit"), &patient).await.unwrap();
    let error = session.call("t", &Map::new()).await.unwrap_err();
    let message = error.to_string();
    assert!(error.is_lost() && message.contains("exit status: 4"), "{message}");
    let grandchild: u32 = message.rsplit("grandchild ").next().unwrap().trim().parse().unwrap();
    if cfg!(karat_portable) {
        // A process whose parent has ended cannot be found there.
        let killed = std::process::Command::new("kill").arg(grandchild.to_string()).status();
        assert!(killed.unwrap().success());
    }
    gone(grandchild).await;
}

#[tokio::test]
async fn a_hang_is_a_time_out() {
    calling("hang", async |_, reply| {
        let error = reply.unwrap_err();
        assert_eq!(error, CallError::Timeout { said: String::new() });
        assert_eq!(error.class(), FailureClass::Timeout);
    })
    .await;
}

#[tokio::test]
async fn answers_out_of_order_reach_their_calls() {
    let session = Session::start(&misbehaving("out-of-order"), &options()).await.unwrap();
    let (one, two, three) =
        (arguments(json!({"n": 1})), arguments(json!({"n": 2})), arguments(json!({"n": 3})));
    let replies =
        tokio::join!(session.call("t", &one), session.call("t", &two), session.call("t", &three));
    assert_eq!(replies.0.unwrap().texts(), [r#"{"n":1}"#]);
    assert_eq!(replies.1.unwrap().texts(), [r#"{"n":2}"#]);
    assert_eq!(replies.2.unwrap().texts(), [r#"{"n":3}"#]);
}

#[tokio::test]
async fn answers_with_wrong_ids_are_counted_and_the_call_times_out() {
    calling("wrong-id", async |session, reply| {
        let message = reply.unwrap_err().to_string();
        let wanted = "no answer in time; it answered a request that was never sent (id 999999)";
        assert_eq!(message, wanted);
        assert_eq!(session.protocol_log().count(Violation::UnknownId), 3);
    })
    .await;
}

#[tokio::test]
async fn a_second_answer_is_counted() {
    calling("duplicate", async |session, reply| {
        assert_eq!(reply.unwrap().texts(), ["first"]);
        assert_eq!(session.call("t", &Map::new()).await.unwrap().texts(), ["first"]);
        assert!(session.protocol_log().count(Violation::Repeated) >= 1);
    })
    .await;
}

#[tokio::test]
async fn a_huge_answer_is_skipped_and_the_session_continues() {
    let patient = Options { call_timeout: Duration::from_secs(120), ..options() };
    let session = Session::start(&misbehaving("huge"), &patient).await.unwrap();
    for megabytes in [2_u64, 1_024] {
        let given = arguments(json!({"bytes": megabytes << 20}));
        let error = session.call("t", &given).await.unwrap_err();
        assert_eq!(error, CallError::TooLarge { limit: 1 << 20, what: "bytes" });
        assert_eq!((error.class(), error.is_lost()), (FailureClass::InvalidAnswer, false));
    }
    let small = session.tools().await.unwrap();
    assert_eq!(small.len(), 1);
    assert_eq!(session.protocol_log().count(Violation::Oversized), 2);
}

#[tokio::test]
async fn an_endless_line_loses_the_server() {
    let patient = Options { call_timeout: Duration::from_secs(120), ..options() };
    let limits = Limits { message_bytes: 1 << 14, line_bytes: 1 << 22, ..Limits::default() };
    let options = Options { limits, ..patient };
    let session = Session::start(&misbehaving("endless-line"), &options).await.unwrap();
    let error = session.call("t", &Map::new()).await.unwrap_err();
    assert!(error.is_lost() && error.to_string().contains("an endless line"), "{error}");
}

#[tokio::test]
async fn endless_pages_are_an_error() {
    let session = Session::start(&misbehaving("endless-pages"), &options()).await.unwrap();
    let error = session.tools().await.unwrap_err();
    assert_eq!(error, CallError::TooLarge { limit: 50, what: "pages" });
    let session = Session::start(&misbehaving("same-page"), &options()).await.unwrap();
    let error = session.tools().await.unwrap_err();
    assert!(error.to_string().contains("repeats its cursor"), "{error}");
    let hurried =
        Options { start_timeout: Duration::from_secs(1), limits: Limits::default(), ..options() };
    let session = Session::start(&misbehaving("slow-pages"), &hurried).await.unwrap();
    let error = session.tools().await.unwrap_err();
    assert_eq!(error.class(), FailureClass::Timeout);
    assert!(error.to_string().contains("pages of tools/list took more than 1.5 s"), "{error}");
}

#[tokio::test]
async fn a_list_is_bounded_over_all_its_pages() {
    for (limits, what) in [
        (Limits { list_bytes: 200, ..Limits::default() }, "bytes in a list"),
        (Limits { entries: 20, ..Limits::default() }, "entries"),
    ] {
        let bounded = Options { limits, ..options() };
        let session = Session::start(&misbehaving("endless-pages"), &bounded).await.unwrap();
        let error = session.tools().await.unwrap_err();
        assert!(matches!(&error, CallError::TooLarge { what: of, .. } if *of == what), "{error:?}");
    }
}

#[tokio::test]
async fn a_message_without_an_id_fails_no_call() {
    calling("without-id", async |session, reply| {
        assert_eq!(reply.unwrap().texts(), ["done"]);
        let log = session.protocol_log();
        assert_eq!((log.count(Violation::WithoutId), log.count(Violation::Malformed)), (1, 2));
        assert_eq!(log.first(Violation::WithoutId), Some("protocol error -32601: no such method"));
    })
    .await;
}

#[tokio::test]
async fn a_start_without_an_answer_reports_violations() {
    let quick = Options { start_timeout: Duration::from_millis(500), ..options() };
    let error = Session::start(&misbehaving("log-and-hang"), &quick).await.unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("it sent JSON that is not a JSON-RPC message ({\"level\":30})"),
        "{message}"
    );
}

#[tokio::test]
async fn malformed_lists_are_invalid() {
    for how in ["no-tool-list", "nameless-tool"] {
        let session = Session::start(&misbehaving(how), &options()).await.unwrap();
        let error = session.tools().await.unwrap_err();
        assert_eq!(error.class(), FailureClass::InvalidAnswer, "{how}: {error}");
    }
}

#[tokio::test]
async fn malformed_answers_fail_their_call() {
    for how in ["not-utf8", "deep", "not-json-rpc", "result-is-a-list"] {
        calling(how, async |session, reply| {
            let error = reply.unwrap_err();
            assert_eq!(error.class(), FailureClass::InvalidAnswer, "{how}: {error}");
            assert!(!error.is_lost());
            // The session continues.
            assert_eq!(session.tools().await.unwrap().len(), 1);
        })
        .await;
    }
}

#[tokio::test]
async fn a_flood_of_notifications_is_counted_and_the_call_times_out() {
    calling("notification-flood", async |session, reply| {
        assert_eq!(reply, Err(CallError::Timeout { said: String::new() }));
        assert!(session.protocol_log().log_messages > 100);
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_requests_is_refused_one_by_one() {
    // Five thousand answers take longer than the usual limit on a busy machine.
    let patient = Options { call_timeout: Duration::from_secs(60), ..options() };
    calling_with(&patient, "request-flood", async |session, reply| {
        assert_eq!(reply.unwrap().texts(), ["done"]);
        assert_eq!(session.protocol_log().count(Violation::Refused), 5_000);
    })
    .await;
}

#[tokio::test]
async fn a_flood_on_stderr_does_not_block_and_only_its_end_is_kept() {
    calling("stderr-flood", async |session, reply| {
        assert_eq!(reply.unwrap().texts(), ["done"]);
        assert!(session.stderr().len() <= 4 << 10);
    })
    .await;
}

#[tokio::test]
async fn a_changed_list_is_counted() {
    calling("list-changed", async |session, reply| {
        reply.unwrap();
        assert_eq!(session.protocol_log().list_changed, 1);
    })
    .await;
}

#[tokio::test]
async fn grandchildren_end_with_the_session() {
    let session = Session::start(&misbehaving("grandchild"), &options()).await.unwrap();
    let reply = session.call("t", &Map::new()).await.unwrap();
    let grandchild: u32 = reply.texts()[0].parse().unwrap();
    let server = pid(&session);
    drop(session);
    gone(grandchild).await;
    gone(server).await;
}

#[tokio::test]
async fn a_server_that_outlives_its_input_gets_sigterm() {
    let session = Session::start(&misbehaving("outlive"), &options()).await.unwrap();
    let server = pid(&session);
    let ending = session.close().await;
    assert!(
        ending.how.contains("after SIGTERM") && ending.how.contains("signal: 15"),
        "{}",
        ending.how
    );
    gone(server).await;
}

#[tokio::test]
async fn secrets_are_in_no_message() {
    let mut spec = misbehaving("secret");
    spec.env.insert("API_TOKEN".into(), "verysecretvalue".into());
    let session = Session::start(&spec, &options()).await.unwrap();
    let error = session.call("t", &Map::new()).await.unwrap_err();
    let ending = session.close().await;
    for text in
        [error.to_string(), format!("{error:?}"), format!("{spec:?}"), format!("{ending:?}")]
    {
        assert!(!text.contains("verysecretvalue"), "{text}");
    }
    assert!(error.to_string().contains("[redacted] is not accepted"), "{error}");
    assert!(ending.stderr.contains("starting with [redacted]"), "{}", ending.stderr);

    // Canaries are not hidden.
    let options = Options { canaries: vec!["verysecretvalue".into()], ..options() };
    let session = Session::start(&spec, &options).await.unwrap();
    let error = session.call("t", &Map::new()).await.unwrap_err();
    assert!(error.to_string().contains("verysecretvalue"), "{error}");
}
