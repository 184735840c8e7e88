//! A server behind a login and its authorisation server, in one place, with rules that a test can break.
//!
//! Threads and blocking sockets alone, so that the tests of other crates can use it too. The MCP server in it is
//! the least that a session needs: what is tested comes before, in the login.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn form(&self) -> BTreeMap<String, String> {
        pairs(&self.body)
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.headers.get("authorization")?.strip_prefix("Bearer ")
    }
}

/// A response.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Body,
}

#[derive(Clone, Debug)]
pub(crate) enum Body {
    Whole(String),
    /// The same byte without end.
    Endless,
    /// A length that never comes.
    Stalled,
}

pub(crate) fn said(status: u16, body: &Value) -> Said {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    Said { status, headers, body: Body::Whole(body.to_string()) }
}

pub(crate) fn redirect(status: u16, to: &str) -> Said {
    let headers = vec![("location".to_owned(), to.to_owned())];
    Said { status, headers, body: Body::Whole(String::new()) }
}

/// The behaviour of the servers. Each rule gets the address of the site.
pub(crate) struct Rules {
    /// Takes precedence over everything else.
    pub(crate) first: fn(&str, &Asked) -> Option<Said>,
    pub(crate) resource: fn(&str, &mut Value),
    pub(crate) metadata: fn(&str, &mut Value),
    /// Changes a token response.
    pub(crate) token: fn(&Asked, &mut Value),
    /// Returns the challenge for a request to the MCP server with this token, if it is refused.
    pub(crate) refuses: fn(&Asked) -> Option<(u16, &'static str)>,
    /// The answer to a browser, with the redirect as it should be.
    pub(crate) browser: fn(&str, &str) -> Said,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules {
            first: |_, _| None,
            resource: |_, _| {},
            metadata: |_, _| {},
            token: |_, _| {},
            refuses: |asked| match asked.token() {
                Some(token) if token.starts_with("access-") => None,
                _ => Some((401, "scope=\"tools:read\"")),
            },
            browser: |_, right| redirect(302, right),
        }
    }
}

/// A running site.
pub(crate) struct Site {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Site {
    pub(crate) fn start(rules: Rules) -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let (base, log) = (url.clone(), Arc::clone(&asked));
        let rules = Arc::new(rules);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (base, log, rules) = (base.clone(), Arc::clone(&log), Arc::clone(&rules));
                std::thread::spawn(move || serve(stream, &base, &rules, &log));
            }
        });
        Site { url, asked }
    }

    pub(crate) fn mcp(&self) -> String {
        format!("{}/mcp", self.url)
    }

    /// The requests so far whose path begins so.
    pub(crate) fn asked(&self, path: &str) -> Vec<Asked> {
        let all = self.asked.lock().unwrap();
        all.iter().filter(|asked| asked.path.starts_with(path)).cloned().collect()
    }
}

fn serve(mut stream: TcpStream, base: &str, rules: &Rules, log: &Mutex<Vec<Asked>>) {
    let Some(asked) = read(&mut stream) else { return };
    let earlier = {
        let mut log = log.lock().unwrap();
        log.push(asked.clone());
        log.clone()
    };
    let said = match (rules.first)(base, &asked) {
        Some(said) => said,
        None => answer(base, &asked, rules, &earlier),
    };
    let mut head = format!("HTTP/1.1 {} X\r\nconnection: close\r\n", said.status);
    for (name, value) in &said.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let _ = match said.body {
        Body::Whole(body) => stream
            .write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes()),
        Body::Endless => {
            let _ = stream.write_all(format!("{head}\r\n{{\"x\":\"").as_bytes());
            while stream.write_all(&[b'x'; 65_536]).is_ok() {}
            Ok(())
        }
        Body::Stalled => {
            let _ = stream.write_all(format!("{head}content-length: 100\r\n\r\n{{").as_bytes());
            std::thread::sleep(Duration::from_secs(60));
            Ok(())
        }
    };
}

fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let mut block = [0; 4096];
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        match stream.read(&mut block).ok()? {
            0 => return None,
            count => bytes.extend_from_slice(&block[..count]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    while bytes.len() < end + 4 + length {
        match stream.read(&mut block).ok()? {
            0 => return None,
            count => bytes.extend_from_slice(&block[..count]),
        }
    }
    let body = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    Some(Asked { method, path: path.to_owned(), query: pairs(query), headers, body })
}

fn answer(base: &str, asked: &Asked, rules: &Rules, earlier: &[Asked]) -> Said {
    match (asked.method.as_str(), asked.path.as_str()) {
        (_, "/mcp") => mcp(base, asked, rules),
        ("GET", "/.well-known/oauth-protected-resource/mcp") => {
            let mut document = json!({
                "resource": format!("{base}/mcp"),
                "authorization_servers": [base],
                "scopes_supported": ["tools:read", "tools:write"],
            });
            (rules.resource)(base, &mut document);
            said(200, &document)
        }
        ("GET", "/.well-known/oauth-authorization-server") => {
            let mut document = json!({
                "issuer": base,
                "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "device_authorization_endpoint": format!("{base}/device"),
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            });
            (rules.metadata)(base, &mut document);
            said(200, &document)
        }
        ("POST", "/register") => said(
            201,
            &json!({"client_id": "registered-client", "token_endpoint_auth_method": "none"}),
        ),
        ("GET", "/authorize") => {
            let field = |name: &str| asked.query.get(name).cloned().unwrap_or_default();
            let right = format!(
                "{}?code=code-of-the-login&state={}",
                field("redirect_uri"),
                field("state")
            );
            (rules.browser)(base, &right)
        }
        ("POST", "/device") => said(
            200,
            &json!({"device_code": "device-code-secret", "user_code": "WDJB-MJHT", "interval": 1,
                "verification_uri": format!("{base}/enter"), "expires_in": 60}),
        ),
        ("POST", "/token") => token(asked, rules, earlier),
        _ => said(404, &json!({"error": "not_found"})),
    }
}

fn mcp(base: &str, asked: &Asked, rules: &Rules) -> Said {
    if let Some((status, parameters)) = (rules.refuses)(asked) {
        let mut refused = said(status, &json!({"error": "unauthorized"}));
        let metadata = format!("{base}/.well-known/oauth-protected-resource/mcp");
        let challenge = format!("Bearer resource_metadata=\"{metadata}\", {parameters}");
        refused.headers.push(("www-authenticate".to_owned(), challenge));
        return refused;
    }
    if asked.method != "POST" {
        return said(405, &json!({}));
    }
    let message: Value = serde_json::from_str(&asked.body).unwrap_or_default();
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "guarded", "version": "1"}}),
        "tools/list" => {
            json!({"tools": [{"name": "whoami", "description": "Shows what it was sent.",
            "inputSchema": {"type": "object"}}]})
        }
        // It says every secret that it knows.
        "tools/call" => json!({"content": [{"type": "text",
            "text": format!("you sent {}", asked.headers.get("authorization").cloned().unwrap_or_default())}]}),
        _ => return Said { status: 202, headers: Vec::new(), body: Body::Whole(String::new()) },
    };
    said(200, &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

fn token(asked: &Asked, rules: &Rules, earlier: &[Asked]) -> Said {
    let form = asked.form();
    let number = earlier.iter().filter(|asked| asked.path == "/token").count();
    let polls = |wanted: usize| {
        let device = |asked: &&Asked| asked.form().contains_key("device_code");
        earlier.iter().filter(device).count() < wanted
    };
    match form.get("grant_type").map(String::as_str) {
        Some("urn:ietf:params:oauth:grant-type:device_code") if polls(2) => {
            return said(400, &json!({"error": "authorization_pending"}));
        }
        Some("authorization_code")
            if form.get("code").map(String::as_str) != Some("code-of-the-login") =>
        {
            return said(400, &json!({"error": "invalid_grant"}));
        }
        _ => {}
    }
    let mut body = json!({"access_token": format!("access-token-number-{number}"), "token_type": "Bearer",
        "expires_in": 3600, "refresh_token": format!("refresh-token-number-{number}")});
    (rules.token)(asked, &mut body);
    let status = if body.get("error").is_some() { 400 } else { 200 };
    said(status, &body)
}

fn pairs(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(k, v)| (decoded(k), decoded(v)))
        .collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let hex: String = rest.by_ref().take(2).map(char::from).collect();
                u8::from_str_radix(&hex, 16).unwrap_or(b'?')
            }
            other => other,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A browser of few words: gets an address, follows a redirect, and gets every address in the page.
pub(crate) fn browse(url: &str) {
    let Some(page) = get(url) else { return };
    let (head, body) = page.split_once("\r\n\r\n").unwrap_or((&page, ""));
    let to = head.lines().find_map(|line| line.strip_prefix("location: "));
    for next in to.into_iter().chain(body.lines().filter(|line| line.starts_with("http://"))) {
        let _ = get(next);
    }
}

pub(crate) fn get(url: &str) -> Option<String> {
    let (host, path) = url.strip_prefix("http://")?.split_once('/')?;
    let mut stream = TcpStream::connect(host).ok()?;
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).ok()?;
    Some(page)
}
