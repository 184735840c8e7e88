//! The configuration with which a proxy finds the servers of a corpus.
//!
//! It is made for measuring: the proxy listens on the address that it is given, keeps its data in a
//! scratch folder, holds nothing back for review, and makes no calls.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::cli::ProxyConfig;

/// The proxy's own settings.
pub(super) struct Proxy {
    pub(super) listen: SocketAddr,
    pub(super) data: PathBuf,
    pub(super) key: String,
}

/// The way the proxy reaches a server.
pub(super) enum Reach {
    Url(String),
    Command(Vec<String>),
}

pub(super) fn document(
    kind: ProxyConfig,
    proxy: &Proxy,
    servers: &BTreeMap<String, Reach>,
) -> Value {
    match kind {
        ProxyConfig::Mcpproxy => mcpproxy(proxy, servers),
        ProxyConfig::McpJson => mcp_json(servers),
    }
}

/// mcpproxy's mcp_config.json. A new server and a changed tool would be held in quarantine, which is
/// right for strangers and wrong for a corpus that is to be indexed whole.
fn mcpproxy(proxy: &Proxy, servers: &BTreeMap<String, Reach>) -> Value {
    let server = |(name, reach): (&String, &Reach)| {
        let mut server = Map::new();
        server.insert("name".to_owned(), json!(name));
        match reach {
            Reach::Url(url) => {
                server.insert("url".to_owned(), json!(url));
                server.insert("protocol".to_owned(), json!("http"));
            }
            Reach::Command(command) => {
                server.insert("command".to_owned(), json!(command.first()));
                server.insert("args".to_owned(), json!(command.get(1..)));
                server.insert("protocol".to_owned(), json!("stdio"));
            }
        }
        server.insert("enabled".to_owned(), json!(true));
        server.insert("quarantined".to_owned(), json!(false));
        server.insert("skip_quarantine".to_owned(), json!(true));
        Value::Object(server)
    };
    json!({
        "listen": proxy.listen.to_string(),
        "data_dir": proxy.data.to_string_lossy(),
        "api_key": proxy.key,
        "enable_socket": false,
        "enable_tray": false,
        "tools_limit": 100,
        "tool_response_limit": 0,
        "quarantine_enabled": false,
        "docker_isolation": {"enabled": false},
        "telemetry": {"enabled": false},
        "update_check": {"enabled": false},
        "features": {"enable_web_ui": false},
        "registries": [],
        "mcpServers": servers.iter().map(server).collect::<Vec<_>>(),
    })
}

fn mcp_json(servers: &BTreeMap<String, Reach>) -> Value {
    let server = |(name, reach): (&String, &Reach)| {
        let server = match reach {
            Reach::Url(url) => json!({"url": url}),
            Reach::Command(command) => {
                json!({"command": command.first(), "args": command.get(1..)})
            }
        };
        (name.clone(), server)
    };
    json!({"mcpServers": servers.iter().map(server).collect::<Map<_, _>>()})
}
