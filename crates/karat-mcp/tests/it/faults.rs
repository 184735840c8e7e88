//! Servers that break the protocol: each fault has its class, the session ends by itself or goes on,
//! and no process is left.

use crate::support;

use std::time::Duration;

use karat_io::FailureClass;
use karat_mcp::{CallError, Limits, Oddity, Options, Reply, ServerSpec, Session, StartError};
use serde_json::{Map, json};
use support::{MISBEHAVE, arguments, spec};

fn misbehaving(how: &str) -> ServerSpec {
    spec(&[MISBEHAVE, how])
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

/// Starts the server, makes a call, hands both to `check`, and sees that no process is left.
async fn calling(how: &str, check: impl AsyncFnOnce(&Session, Result<Reply, CallError>)) {
    let session = Session::start(&misbehaving(how), &options()).await.unwrap();
    let pid = pid(&session);
    let reply = session.call("t", &Map::new()).await;
    check(&session, reply).await;
    drop(session);
    gone(pid).await;
}

#[tokio::test]
async fn garbage_on_stdout_is_noted_and_the_session_goes_on() {
    calling("garbage", async |session, reply| {
        assert_eq!(reply.unwrap().texts(), ["done"]);
        let conduct = session.conduct();
        assert_eq!(conduct.count(Oddity::Noise), 2);
        assert_eq!(conduct.first(Oddity::Noise), Some("Listening on stdio, press any key!"));
    })
    .await;
}

#[tokio::test]
async fn garbage_without_end_is_a_lost_server() {
    let error = Session::start(&misbehaving("garbage-flood"), &options()).await.unwrap_err();
    assert!(
        matches!(&error, StartError::NotStarted { why } if why.contains("no messages")),
        "{error}"
    );
}

#[tokio::test]
async fn half_a_line_and_the_end_is_a_lost_server() {
    calling("half-line", async |session, reply| {
        let error = reply.unwrap_err();
        assert!(error.is_lost() && error.to_string().contains("middle of a line"), "{error}");
        assert_eq!(error.class(), FailureClass::Transport);
        assert!(session.call("t", &Map::new()).await.unwrap_err().is_lost());
    })
    .await;
}

#[tokio::test]
async fn half_a_line_and_silence_is_a_time_out() {
    calling("half-line-and-hang", async |_, reply| {
        assert_eq!(reply, Err(CallError::Timeout { said: String::new() }));
    })
    .await;
}

#[tokio::test]
async fn an_exit_at_the_start_tells_the_status_and_the_last_words() {
    let error = Session::start(&misbehaving("exit-at-start"), &options()).await.unwrap_err();
    let told = error.to_string();
    assert!(matches!(error, StartError::NotStarted { .. }), "{told}");
    assert!(
        told.contains("exit status: 7") && told.contains("cannot read the configuration"),
        "{told}"
    );
}

#[tokio::test]
async fn a_program_that_says_nothing_is_not_a_server() {
    let error = Session::start(&spec(&["/bin/false"]), &options()).await.unwrap_err();
    assert!(error.to_string().contains("exit status: 1"), "{error}");
    let error = Session::start(&spec(&["/no/such/program"]), &options()).await.unwrap_err();
    assert!(matches!(error, StartError::NotStarted { .. }), "{error}");
    let quick = Options { start_timeout: Duration::from_millis(300), ..options() };
    let error = Session::start(&misbehaving("silent"), &quick).await.unwrap_err();
    assert!(matches!(error, StartError::Timeout { .. }), "{error}");
}

#[tokio::test]
async fn an_exit_in_the_middle_of_a_call_tells_the_status_and_the_last_words() {
    calling("exit-mid-call", async |_, reply| {
        let error = reply.unwrap_err();
        let told = error.to_string();
        assert!(error.is_lost(), "{told}");
        assert!(told.contains("exit status: 3") && told.contains("out of memory"), "{told}");
    })
    .await;
}

#[tokio::test]
async fn an_exit_is_seen_although_a_grandchild_holds_the_output_open() {
    let started = std::time::Instant::now();
    let patient = Options { call_timeout: Duration::from_secs(60), ..options() };
    let session = Session::start(&misbehaving("grandchild-and-exit"), &patient).await.unwrap();
    let error = session.call("t", &Map::new()).await.unwrap_err();
    let told = error.to_string();
    assert!(error.is_lost() && told.contains("exit status: 4"), "{told}");
    let grandchild = told.rsplit("grandchild ").next().unwrap().trim().parse().unwrap();
    gone(grandchild).await;
    assert!(started.elapsed() < Duration::from_secs(30));
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
async fn answers_out_of_order_find_their_calls() {
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
async fn answers_with_wrong_ids_are_noted_and_the_call_times_out() {
    calling("wrong-id", async |session, reply| {
        let told = reply.unwrap_err().to_string();
        let wanted =
            "no answer in time; it sent an answer to a request that was never sent (id 999999)";
        assert_eq!(told, wanted);
        assert_eq!(session.conduct().count(Oddity::UnknownId), 3);
    })
    .await;
}

#[tokio::test]
async fn the_second_of_two_answers_is_noted() {
    calling("duplicate", async |session, reply| {
        assert_eq!(reply.unwrap().texts(), ["first"]);
        assert_eq!(session.call("t", &Map::new()).await.unwrap().texts(), ["first"]);
        assert!(session.conduct().count(Oddity::Repeated) >= 1);
    })
    .await;
}

#[tokio::test]
async fn a_huge_answer_is_passed_over_and_the_session_goes_on() {
    let patient = Options { call_timeout: Duration::from_secs(120), ..options() };
    let session = Session::start(&misbehaving("huge"), &patient).await.unwrap();
    for megabytes in [2, 1_024] {
        let given = arguments(json!({"megabytes": megabytes}));
        let error = session.call("t", &given).await.unwrap_err();
        assert_eq!(error, CallError::TooLarge { limit: 1 << 20, what: "bytes" });
        assert_eq!((error.class(), error.is_lost()), (FailureClass::InvalidAnswer, false));
    }
    let small = session.tools().await.unwrap();
    assert_eq!(small.len(), 1);
    assert_eq!(session.conduct().count(Oddity::Oversized), 2);
}

#[tokio::test]
async fn a_line_without_end_is_a_lost_server() {
    let patient = Options { call_timeout: Duration::from_secs(120), ..options() };
    let limits = Limits { message_bytes: 1 << 14, line_bytes: 1 << 22, ..Limits::default() };
    let options = Options { limits, ..patient };
    let session = Session::start(&misbehaving("endless-line"), &options).await.unwrap();
    let error = session.call("t", &Map::new()).await.unwrap_err();
    assert!(error.is_lost() && error.to_string().contains("without end"), "{error}");
}

#[tokio::test]
async fn pages_without_end_are_an_error() {
    let session = Session::start(&misbehaving("endless-pages"), &options()).await.unwrap();
    let error = session.tools().await.unwrap_err();
    assert_eq!(error, CallError::TooLarge { limit: 50, what: "pages" });
    let session = Session::start(&misbehaving("same-page"), &options()).await.unwrap();
    let error = session.tools().await.unwrap_err();
    assert!(error.to_string().contains("repeats the cursor"), "{error}");
    let hurried =
        Options { start_timeout: Duration::from_secs(1), limits: Limits::default(), ..options() };
    let session = Session::start(&misbehaving("slow-pages"), &hurried).await.unwrap();
    let error = session.tools().await.unwrap_err();
    assert_eq!(error.class(), FailureClass::Timeout);
    assert!(error.to_string().contains("pages of tools/list took more than 1.5 s"), "{error}");
}

#[tokio::test]
async fn what_has_no_id_is_charged_to_no_call() {
    calling("without-id", async |session, reply| {
        assert_eq!(reply.unwrap().texts(), ["done"]);
        let conduct = session.conduct();
        assert_eq!((conduct.count(Oddity::WithoutId), conduct.count(Oddity::Malformed)), (1, 2));
        assert_eq!(conduct.first(Oddity::WithoutId), Some("protocol error -32601: no such method"));
    })
    .await;
}

#[tokio::test]
async fn a_start_without_an_answer_tells_what_came_instead() {
    let quick = Options { start_timeout: Duration::from_millis(500), ..options() };
    let error = Session::start(&misbehaving("log-and-hang"), &quick).await.unwrap_err();
    let told = error.to_string();
    assert!(told.contains("it sent JSON that is no message ({\"level\":30})"), "{told}");
}

#[tokio::test]
async fn listings_that_are_none_are_invalid() {
    for how in ["no-tool-list", "nameless-tool"] {
        let session = Session::start(&misbehaving(how), &options()).await.unwrap();
        let error = session.tools().await.unwrap_err();
        assert_eq!(error.class(), FailureClass::InvalidAnswer, "{how}: {error}");
    }
}

#[tokio::test]
async fn answers_that_break_the_form_reach_their_call() {
    for how in ["not-utf8", "deep", "not-json-rpc", "result-is-a-list"] {
        calling(how, async |session, reply| {
            let error = reply.unwrap_err();
            assert_eq!(error.class(), FailureClass::InvalidAnswer, "{how}: {error}");
            assert!(!error.is_lost());
            // The session goes on.
            assert_eq!(session.tools().await.unwrap().len(), 1);
        })
        .await;
    }
}

#[tokio::test]
async fn a_flood_of_notifications_is_counted_and_the_call_times_out() {
    calling("notification-flood", async |session, reply| {
        assert_eq!(reply, Err(CallError::Timeout { said: String::new() }));
        assert!(session.conduct().log_messages > 100);
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_requests_is_refused_one_by_one() {
    calling("request-flood", async |session, reply| {
        assert_eq!(reply.unwrap().texts(), ["done"]);
        assert_eq!(session.conduct().count(Oddity::Refused), 5_000);
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
async fn a_changed_list_is_noted() {
    calling("list-changed", async |session, reply| {
        reply.unwrap();
        assert_eq!(session.conduct().list_changed, 1);
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
async fn a_server_that_outlives_its_input_is_asked_to_end() {
    let session = Session::start(&misbehaving("outlive"), &options()).await.unwrap();
    let server = pid(&session);
    let ending = session.close().await;
    assert!(ending.how.contains("asked to") && ending.how.contains("signal: 15"), "{}", ending.how);
    gone(server).await;
}

#[tokio::test]
async fn secrets_stand_in_no_message() {
    let mut spec = misbehaving("secret");
    spec.env.insert("API_TOKEN".into(), "verysecretvalue".into());
    let session = Session::start(&spec, &options()).await.unwrap();
    let error = session.call("t", &Map::new()).await.unwrap_err();
    let ending = session.close().await;
    for told in
        [error.to_string(), format!("{error:?}"), format!("{spec:?}"), format!("{ending:?}")]
    {
        assert!(!told.contains("verysecretvalue"), "{told}");
    }
    assert!(error.to_string().contains("[redacted] is not accepted"), "{error}");
    assert!(ending.stderr.contains("starting with [redacted]"), "{}", ending.stderr);

    // Bait is let through.
    let options = Options { canaries: vec!["verysecretvalue".into()], ..options() };
    let session = Session::start(&spec, &options).await.unwrap();
    let error = session.call("t", &Map::new()).await.unwrap_err();
    assert!(error.to_string().contains("verysecretvalue"), "{error}");
}
