//! Tools with vulnerabilities, each with a twin that does the same without one.
//!
//! `karat server fuzz` and `karat server attack` are tested on them: every vulnerability must be found,
//! and no safe tool may be reported. They really read files, start a shell and open connections, so they
//! exist only in a process that was started with `--vulnerable`, are served on loopback alone, connect to
//! 127.0.0.1 alone, and show only environment variables whose names begin with `KARAT_`.

use std::future::pending;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use karat_io::text::hex;
use karat_mcp::serve::{Context, Offer, ProtocolError, Respond};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;

use super::{Demo, failed, said, text_argument, tool};

/// The size of the largest answer of `count_unsafe`: more than a session accepts.
const MAX_BYTES: usize = 24 << 20;
/// The largest number that `count_safe` counts to.
const MAX_LINES: u64 = 1_000;
/// The number of calls of `crowd_unsafe` at once that ends the server.
const CROWD: usize = 50;
/// The duration of a call of `crowd_unsafe`.
const CROWD_DURATION: Duration = Duration::from_millis(50);
/// The size of a page, and the number of redirects that are followed.
const MAX_PAGE: u64 = 64 << 10;
const MAX_REDIRECTS: usize = 3;

/// The tools of the demo server, then the vulnerable ones and their twins.
#[must_use]
pub fn offer() -> Offer {
    let mut offer = super::offer();
    offer.tools.extend(tools());
    offer
}

fn one(name: &str, description: &str, parameter: &str, schema: Value) -> Value {
    let mut properties = serde_json::Map::new();
    properties.insert(parameter.to_owned(), schema);
    tool(name, description, &Value::Object(properties), &[parameter])
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn tools() -> Vec<Value> {
    let path = || text("The path of the file below the root");
    let host = || text("The name of the host");
    let list = || text("The name of the list below the root");
    let user = || text("The name of the user to look up by a query");
    let url = || json!({"type": "string", "format": "uri", "description": "The page to get"});
    let lines = |most: Option<u64>| {
        let mut schema = json!({"type": "integer", "description": "How many lines", "minimum": 0});
        if let Some(most) = most {
            schema["maximum"] = json!(most);
        }
        schema
    };
    vec![
        one("read_file_unsafe", "Reads a file wherever its path leads.", "path", path()),
        one("read_file_safe", "Reads a file below its root and nowhere else.", "path", path()),
        one("reach_host_unsafe", "Puts the host into the line of a shell.", "host", host()),
        one("reach_host_safe", "Gives the host to a program, without a shell.", "host", host()),
        one("sort_list_unsafe", "Sorts a list; a name may be an option.", "list", list()),
        one("sort_list_safe", "Sorts a list; a name is only a name.", "list", list()),
        one("find_user_unsafe", "Puts the name into a query.", "user", user()),
        one("find_user_safe", "Compares the name as it is.", "user", user()),
        one("fetch_unsafe", "Gets a page from this machine and follows redirects.", "url", url()),
        one("fetch_safe", "Refuses pages of this machine and of private networks.", "url", url()),
        tool("settings_unsafe", "Shows its settings with their values.", &json!({}), &[]),
        tool("settings_hidden_unsafe", "Shows its settings as hexadecimal.", &json!({}), &[]),
        tool("settings_safe", "Shows the names of its settings.", &json!({}), &[]),
        one("count_unsafe", "Counts as far as it is told.", "count", lines(None)),
        one("count_safe", "Counts to a limit.", "count", lines(Some(MAX_LINES))),
        tool("crowd_unsafe", "Handles a few calls at once and fails with many.", &json!({}), &[]),
        one("emoji_unsafe", "Ends the server when the text has an emoji.", "text", text("A text")),
        one("trace_unsafe", "Shows its insides when it fails.", "item", text("The item")),
        one(
            "negative_unsafe",
            "Never answers for a negative number.",
            "number",
            json!({"type": "integer", "description": "A number"}),
        ),
        one(
            "lenient_unsafe",
            "Takes whatever it is given.",
            "amount",
            json!({"type": "integer", "description": "From 1 to 10", "minimum": 1, "maximum": 10}),
        ),
    ]
}

/// The demo server with its vulnerable tools.
pub struct Vulnerable {
    demo: Demo,
    root: TempDir,
    crowd: AtomicUsize,
}

impl Vulnerable {
    /// Makes the root with its files.
    ///
    /// # Errors
    /// If no temporary folder can be made.
    pub fn new() -> std::io::Result<Vulnerable> {
        let root = tempfile::Builder::new().prefix("karat-demo-").tempdir()?;
        std::fs::write(root.path().join("welcome.txt"), "This file may be read.\n")?;
        std::fs::write(root.path().join("list.txt"), "pear\napple\n")?;
        Ok(Vulnerable { demo: Demo::default(), root, crowd: AtomicUsize::new(0) })
    }

    fn read_unsafe(&self, path: &str) -> Value {
        let path = self.root.path().join(path);
        match std::fs::read_to_string(path) {
            Ok(text) => said(&text),
            Err(error) => failed(&format!("cannot be read: {}", error.kind())),
        }
    }

    fn below_root(&self, path: &str) -> Option<PathBuf> {
        let root = self.root.path().canonicalize().ok()?;
        let found = root.join(path).canonicalize().ok()?;
        found.starts_with(&root).then_some(found)
    }

    fn read_safe(&self, path: &str) -> Value {
        match self.below_root(path).and_then(|path| std::fs::read_to_string(path).ok()) {
            Some(text) => said(&text),
            None => failed("there is no such file below the root"),
        }
    }

    async fn sort_unsafe(&self, list: &str) -> Value {
        let mut command = Command::new("sort");
        command.arg(list).current_dir(self.root.path());
        ran(command).await
    }

    async fn sort_safe(&self, list: &str) -> Value {
        let Some(path) = self.below_root(list) else {
            return failed("there is no such list below the root");
        };
        let mut command = Command::new("sort");
        command.arg("--").arg(path).current_dir(self.root.path());
        ran(command).await
    }

    /// Ends like a crash, but without leaving files behind.
    fn end(&self) -> ! {
        let _ = std::fs::remove_dir_all(self.root.path());
        std::process::exit(101)
    }

    async fn crowd(&self) -> Value {
        if self.crowd.fetch_add(1, Ordering::SeqCst) >= CROWD {
            self.end();
        }
        tokio::time::sleep(CROWD_DURATION).await;
        self.crowd.fetch_sub(1, Ordering::SeqCst);
        said("room for one more")
    }

    async fn answer(&self, tool: &str, arguments: &Value) -> Result<Value, ProtocolError> {
        let with = |name: &str| text_argument(arguments, name);
        let (parameter, text) = match tool {
            "read_file_unsafe" | "read_file_safe" => ("path", with("path")),
            "reach_host_unsafe" | "reach_host_safe" => ("host", with("host")),
            "sort_list_unsafe" | "sort_list_safe" => ("list", with("list")),
            "find_user_unsafe" | "find_user_safe" => ("user", with("user")),
            "fetch_unsafe" | "fetch_safe" => ("url", with("url")),
            "emoji_unsafe" => ("text", with("text")),
            "trace_unsafe" => ("item", with("item")),
            "settings_unsafe" | "settings_hidden_unsafe" | "settings_safe" | "crowd_unsafe" => {
                ("", Ok(String::new()))
            }
            "count_unsafe" | "count_safe" => ("count", Ok(String::new())),
            "negative_unsafe" => ("number", Ok(String::new())),
            "lenient_unsafe" => return Ok(said("taken")),
            _ => return self.demo.answer(tool, arguments).await,
        };
        let text = match text {
            Ok(text) => text,
            Err(why) => return Ok(failed(&why)),
        };
        let surplus = arguments
            .as_object()
            .into_iter()
            .flatten()
            .find(|(key, _)| parameter.is_empty() || *key != parameter);
        if let Some((name, _)) = surplus {
            return Ok(failed(&format!("there is no parameter {name:?}")));
        }
        Ok(match tool {
            "read_file_unsafe" => self.read_unsafe(&text),
            "read_file_safe" => self.read_safe(&text),
            "reach_host_unsafe" => {
                let mut command = Command::new("sh");
                command.arg("-c").arg(format!("echo reaching {text}"));
                ran(command).await
            }
            "reach_host_safe" => {
                let mut command = Command::new("echo");
                command.arg("reaching").arg(&text);
                ran(command).await
            }
            "sort_list_unsafe" => self.sort_unsafe(&text).await,
            "sort_list_safe" => self.sort_safe(&text).await,
            "find_user_unsafe" => queried(&text),
            "find_user_safe" => found(&text),
            "fetch_unsafe" => fetched(&text).await,
            "fetch_safe" => {
                failed("pages of this machine are not fetched, and there are no others")
            }
            "settings_unsafe" => said(&settings()),
            "settings_hidden_unsafe" => said(&hex(settings().as_bytes())),
            "settings_safe" => said("KARAT_CANARY_SECRET (hidden)"),
            "count_unsafe" => counted(arguments, None),
            "count_safe" => counted(arguments, Some(MAX_LINES)),
            "crowd_unsafe" => self.crowd().await,
            "emoji_unsafe" => {
                if text.chars().any(|c| ('\u{1F300}'..='\u{1FAFF}').contains(&c)) {
                    self.end();
                }
                said(&text)
            }
            "trace_unsafe" => traced(&text),
            "negative_unsafe" => match arguments.get("number").and_then(Value::as_i64) {
                Some(..0) => pending().await,
                Some(number) => said(&number.to_string()),
                None => failed("number must be a whole number"),
            },
            other => failed(&format!("{other} does nothing")),
        })
    }
}

impl Respond for Vulnerable {
    async fn call(
        &self,
        _: &Context,
        tool: &str,
        arguments: &Value,
    ) -> Result<Value, ProtocolError> {
        self.answer(tool, arguments).await
    }
}

/// Runs a program without input and returns its output.
async fn ran(mut command: Command) -> Value {
    command.stdin(Stdio::null()).kill_on_drop(true);
    match command.output().await {
        Ok(Output { status, stdout, .. }) if status.success() => {
            said(&String::from_utf8_lossy(&stdout))
        }
        Ok(Output { status, .. }) => failed(&format!("it ended with {status}")),
        Err(error) => failed(&format!("it cannot be started: {}", error.kind())),
    }
}

/// The rows of the table.
const USERS: [(&str, &str); 2] = [("ada", "likes engines"), ("grace", "likes compilers")];

fn found(name: &str) -> Value {
    match USERS.iter().find(|(user, _)| *user == name) {
        Some((_, note)) => said(note),
        None => failed("there is no such user"),
    }
}

/// Simulates a database that gets `SELECT note FROM users WHERE name = '…'` with the name inserted: a
/// quote ends the text, and the rest is executed. There is no real database.
fn queried(name: &str) -> Value {
    let Some((start, rest)) = name.split_once('\'') else { return found(name) };
    let rest = rest.to_ascii_uppercase();
    let mut rows: Vec<String> = USERS
        .iter()
        .filter(|(user, _)| *user == start || rest.contains("OR '1'='1"))
        .map(|(_, note)| (*note).to_owned())
        .collect();
    if let Some((_, selected)) = rest.split_once("UNION SELECT ") {
        let product = selected.split("--").next().unwrap_or_default().trim();
        let factors = product.split_once('*').map(|(a, b)| (a.parse::<u64>(), b.parse::<u64>()));
        match factors {
            Some((Ok(a), Ok(b))) => rows.push(a.saturating_mul(b).to_string()),
            _ => return failed("the query has the wrong number of columns"),
        }
    }
    if rows.is_empty() { failed("there is no such user") } else { said(&rows.join("\n")) }
}

/// Fetches a page from 127.0.0.1, and from nowhere else.
async fn fetched(url: &str) -> Value {
    let mut url = url.to_owned();
    for _ in 0..=MAX_REDIRECTS {
        let Some((port, path)) = on_loopback(&url) else {
            return failed("only pages of 127.0.0.1 are fetched here");
        };
        let page = tokio::time::timeout(Duration::from_secs(5), get(port, &path)).await;
        let Ok(Ok(page)) = page else { return failed("the page does not answer") };
        let moved = page
            .lines()
            .take_while(|line| !line.is_empty())
            .find_map(|line| line.strip_prefix("Location: "));
        match moved {
            Some(there) => url = there.trim().to_owned(),
            None => return said(page.split_once("\r\n\r\n").map_or("", |(_, body)| body)),
        }
    }
    failed("too many redirects")
}

/// The port and path of an address on this machine.
fn on_loopback(url: &str) -> Option<(u16, String)> {
    let rest = url.strip_prefix("http://")?;
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    let (host, port) = place.rsplit_once(':').unwrap_or((place, "80"));
    let number = host.parse::<u32>().ok().map(Ipv4Addr::from);
    let address = host.parse::<Ipv4Addr>().ok().or(number);
    if host != "localhost" && !address.is_some_and(|address| address.is_loopback()) {
        return None;
    }
    Some((port.parse().ok()?, format!("/{path}")))
}

async fn get(port: u16, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut page = Vec::new();
    stream.take(MAX_PAGE).read_to_end(&mut page).await?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn settings() -> String {
    let mut settings: Vec<String> = std::env::vars()
        .filter(|(name, _)| name.starts_with("KARAT_"))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    settings.sort();
    settings.join("\n")
}

fn counted(arguments: &Value, most: Option<u64>) -> Value {
    match arguments.get("count").and_then(Value::as_u64) {
        Some(count) if most.is_none_or(|most| count <= most) => {
            let mut lines = String::new();
            for line in 1..=count {
                if lines.len() > MAX_BYTES {
                    break;
                }
                lines.push_str(&line.to_string());
                lines.push('\n');
            }
            said(&lines)
        }
        _ => failed("count must be a whole number within its limits"),
    }
}

/// Fails like a careless server in Python.
fn traced(item: &str) -> Value {
    if item == "pear" {
        return said("there are pears");
    }
    failed(
        "Traceback (most recent call last):\n  File \"/srv/shop/stock.py\", line 31, in look_up\n    \
         return SHELVES[item]\nKeyError: 'item'",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn call(tool: &str, arguments: Value) -> (bool, String) {
        let result = Vulnerable::new().unwrap().answer(tool, &arguments).await.unwrap();
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        (result.get("isError").is_some(), text)
    }

    #[test]
    fn vulnerable_tools_are_offered_only_on_request() {
        let usual = super::super::offer();
        assert!(usual.tools.iter().all(|tool| !tool["name"].to_string().contains("unsafe")));
        assert!(offer().tools.len() > usual.tools.len());
    }

    #[tokio::test]
    async fn a_file_outside_the_root_is_read_by_one_tool_and_refused_by_its_twin() {
        let outside = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(outside.path(), "beyond").unwrap();
        let path = json!({"path": outside.path()});
        assert_eq!(call("read_file_unsafe", path.clone()).await, (false, "beyond".to_owned()));
        assert!(call("read_file_safe", path).await.0);
        let (failed, text) = call("read_file_safe", json!({"path": "welcome.txt"})).await;
        assert!(!failed && text.contains("may be read"));
    }

    #[tokio::test]
    async fn the_shell_runs_the_text_after_the_host() {
        let hostile = json!({"host": "x; echo $((6*7))"});
        assert!(call("reach_host_unsafe", hostile.clone()).await.1.contains("\n42"));
        assert!(!call("reach_host_safe", hostile).await.1.contains("\n42"));
    }

    #[tokio::test]
    async fn the_query_runs_the_text_after_the_quote() {
        let hostile = json!({"user": "x' UNION SELECT 6*7 --"});
        assert_eq!(call("find_user_unsafe", hostile.clone()).await, (false, "42".to_owned()));
        assert!(call("find_user_safe", hostile).await.0);
    }

    #[test]
    fn only_this_machine_is_connected_to() {
        for here in ["http://127.0.0.1:81/a", "http://localhost:81/a", "http://2130706433:81/a"] {
            assert_eq!(on_loopback(here), Some((81, "/a".to_owned())), "{here}");
        }
        for elsewhere in ["http://169.254.169.254/", "http://example.com/", "http://127.0.0.1.x/"] {
            assert_eq!(on_loopback(elsewhere), None, "{elsewhere}");
        }
    }
}
