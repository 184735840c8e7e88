//! A server over stdio that shakes hands properly and then breaks the protocol in the way that its
//! first argument names. For tests.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, clippy::zombie_processes)]

use std::io::{BufRead, Write};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

fn main() {
    let how = std::env::args().nth(1).unwrap();
    match how.as_str() {
        "exit-at-start" => {
            eprintln!("cannot read the configuration");
            std::process::exit(7);
        }
        "silent" => hang(),
        "log-and-hang" => {
            say(b"{\"level\":30}\n");
            hang();
        }
        "garbage" => say(b"Listening on stdio, press any key!\n"),
        "garbage-flood" => loop {
            say(b"this is not a message\n");
        },
        "secret" => eprintln!("starting with {}", std::env::var("API_TOKEN").unwrap_or_default()),
        _ => {}
    }
    let mut held: Vec<Value> = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line.unwrap()) else { continue };
        match message["method"].as_str() {
            Some("initialize") => answer(
                &message["id"],
                &json!({
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {"listChanged": true}},
                    "serverInfo": {"name": how, "version": std::process::id().to_string()},
                }),
            ),
            Some("tools/list") => list(&how, &message),
            Some("tools/call") => call(&how, &message, &mut held),
            _ => {}
        }
    }
    if how == "outlive" {
        hang();
    }
}

fn hang() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1_000));
    }
}

fn say(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

fn answer(id: &Value, result: &Value) {
    say(format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "result": result})).as_bytes());
}

fn text(words: &str) -> Value {
    json!({"content": [{"type": "text", "text": words}]})
}

fn list(how: &str, message: &Value) {
    let tools = json!([{"name": "t", "inputSchema": {"type": "object"}}]);
    let page: u64 =
        message["params"]["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let result = match how {
        "endless-pages" => json!({"tools": tools, "nextCursor": (page + 1).to_string()}),
        "slow-pages" => {
            std::thread::sleep(std::time::Duration::from_millis(200));
            json!({"tools": tools, "nextCursor": (page + 1).to_string()})
        }
        "same-page" => json!({"tools": tools, "nextCursor": "again"}),
        "no-tool-list" => json!({"tools": "none"}),
        "nameless-tool" => json!({"tools": [{"description": "who am I?"}]}),
        _ => json!({"tools": tools}),
    };
    answer(&message["id"], &result);
}

fn call(how: &str, message: &Value, held: &mut Vec<Value>) {
    let id = &message["id"];
    match how {
        "garbage" => {
            say(b"calling...\n\n   \n");
            answer(id, &text("done"));
        }
        "without-id" => {
            let error = json!({"code": -32601, "message": "no such method"});
            say(format!("{}\n", json!({"jsonrpc": "2.0", "id": null, "error": error})).as_bytes());
            say(b"{\"level\":30,\"msg\":\"handling\"}\n42\n");
            answer(id, &text("done"));
        }
        "half-line" => {
            say(b"{\"jsonrpc\":\"2.0\",\"id\":");
            std::process::exit(0);
        }
        "half-line-and-hang" => {
            say(b"{\"jsonrpc\":\"2.0\",\"id\":");
            hang();
        }
        "exit-mid-call" => {
            eprintln!("out of memory");
            std::process::exit(3);
        }
        "hang" => hang(),
        "out-of-order" => {
            held.push(message.clone());
            if held.len() == 3 {
                for message in held.drain(..).rev() {
                    answer(&message["id"], &text(&message["params"]["arguments"].to_string()));
                }
            }
        }
        "wrong-id" => {
            answer(&json!(999_999), &text("for nobody"));
            answer(&json!(id.to_string()), &text("for a text"));
            answer(&Value::Null, &text("for null"));
        }
        "duplicate" => {
            answer(id, &text("first"));
            answer(id, &text("second"));
        }
        "huge" => {
            let megabytes = message["params"]["arguments"]["megabytes"].as_u64().unwrap();
            say(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":\"").as_bytes());
            let block = vec![b'x'; 1 << 20];
            for _ in 0..megabytes {
                say(&block);
            }
            say(b"\"}\n");
        }
        "endless-line" => loop {
            say(&[b'x'; 1 << 16]);
        },
        "not-utf8" => {
            let mut line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":\"")
                .into_bytes();
            line.extend(b"\xff\xfe\"}}\n");
            say(&line);
        }
        "deep" => {
            let (open, close) = ("[".repeat(50_000), "]".repeat(50_000));
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{open}{close}}}\n");
            say(line.as_bytes());
        }
        "not-json-rpc" => say(format!("{{\"id\":{id},\"result\":{{}}}}\n").as_bytes()),
        "result-is-a-list" => answer(id, &json!([1, 2])),
        "notification-flood" => loop {
            let params = json!({"level": "info", "data": "blah"});
            let told =
                json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params});
            say(format!("{told}\n").repeat(50).as_bytes());
        },
        "request-flood" => {
            for number in 0..5_000 {
                let asked =
                    json!({"jsonrpc": "2.0", "id": number, "method": "sampling/createMessage"});
                say(format!("{asked}\n").as_bytes());
            }
            answer(id, &text("done"));
        }
        "stderr-flood" => {
            let mut stderr = std::io::stderr().lock();
            for _ in 0..2_000 {
                stderr.write_all(&[b'e'; 4_096]).unwrap();
            }
            answer(id, &text("done"));
        }
        "grandchild" | "grandchild-and-exit" => {
            // It holds our output open.
            let child = Command::new("sleep").arg("1000").spawn().unwrap();
            if how == "grandchild-and-exit" {
                eprintln!("grandchild {}", child.id());
                std::process::exit(4);
            }
            answer(id, &text(&child.id().to_string()));
        }
        "list-changed" => {
            let told = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            say(format!("{told}\n").as_bytes());
            answer(id, &text("done"));
        }
        "secret" => {
            let token = std::env::var("API_TOKEN").unwrap();
            let error = json!({"code": -32000, "message": format!("{token} is not accepted")});
            say(format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "error": error})).as_bytes());
        }
        _ => answer(id, &text("done")),
    }
}
