//! The official SDK as the other side: its client against our server, its server against our client.

use crate::support;

use std::sync::Arc;
use std::time::Duration;

use karat_mcp::{
    CallError, CallOptions, Elicitation, Options, Policies, Revision, Roots, Sampling, ServerSpec,
    Session,
};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
    Tool,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RequestContext};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpClientTransport, StreamableHttpServerConfig};
use rmcp::{ClientHandler, ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Map, Value, json};
use support::{Toolbox, arguments, on_http, plain_offer};

#[derive(Clone)]
struct Client(ProtocolVersion);

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(Default::default(), Implementation::new("test", "1"))
            .with_protocol_version(self.0.clone())
    }
}

fn lifecycle(version: &ProtocolVersion) -> ClientLifecycleMode {
    if *version == ProtocolVersion::V_2026_07_28 {
        ClientLifecycleMode::Discover { preferred_versions: vec![version.clone()] }
    } else {
        ClientLifecycleMode::Initialize
    }
}

#[tokio::test]
async fn its_client_lists_and_calls_our_tools() {
    let url = on_http().await;
    for version in ProtocolVersion::KNOWN_VERSIONS {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(ours);
        tokio::spawn(karat_mcp::serve::over(plain_offer(), Toolbox, read, write));
        let over_lines =
            Client(version.clone()).serve_with_lifecycle(theirs, lifecycle(version)).await.unwrap();
        let transport = StreamableHttpClientTransport::with_client(
            karat_io::http::builder().build().unwrap(),
            StreamableHttpClientTransportConfig::with_uri(format!("{url}/plain")),
        );
        let over_http = Client(version.clone())
            .serve_with_lifecycle(transport, lifecycle(version))
            .await
            .unwrap();
        for client in [over_lines, over_http] {
            assert_eq!(client.peer_info().unwrap().protocol_version, *version);
            let tools = client.list_all_tools().await.unwrap();
            assert_eq!(serde_json::to_value(&tools).unwrap(), json!(plain_offer().tools));
            let params = CallToolRequestParams::new("say")
                .with_arguments(arguments(json!({"words": "grüß dich"})));
            let said = client.call_tool(params).await.unwrap();
            assert_eq!(said.content[0].as_text().unwrap().text, "grüß dich");
            let failed = client.call_tool(CallToolRequestParams::new("fail")).await.unwrap();
            assert_eq!(failed.is_error, Some(true), "{version}");
            let refused = client.call_tool(CallToolRequestParams::new("refuse")).await.unwrap_err();
            assert!(refused.to_string().contains("-32000"), "{version}: {refused}");
            let unknown = client.call_tool(CallToolRequestParams::new("none")).await.unwrap_err();
            assert!(unknown.to_string().contains("-32602"), "{version}: {unknown}");
            client.cancel().await.unwrap();
        }
    }
}

/// A server of the SDK that asks its client for things.
#[derive(Clone)]
struct Server;

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("official", "3"))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // Two tools on a page.
        let page: usize =
            request.and_then(|request| request.cursor).map_or(0, |cursor| cursor.parse().unwrap());
        let names = ["echo", "roots", "slow", "sample", "elicit"];
        let schema = Arc::new(arguments(json!({"type": "object"})));
        let tools: Vec<Tool> = names
            .iter()
            .skip(page * 2)
            .take(2)
            .map(|name| Tool::new(*name, "a tool", Arc::clone(&schema)))
            .collect();
        let mut result = ListToolsResult::with_all_items(tools);
        if page * 2 + 2 < names.len() {
            result.next_cursor = Some((page + 1).to_string());
        }
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<rmcp::model::CallToolResponse, ErrorData> {
        let text = match &*request.name {
            "echo" => Value::Object(request.arguments.unwrap_or_default()).to_string(),
            "roots" => first_root(&context).await,
            "slow" => {
                context.ct.cancelled().await;
                "cancelled".to_owned()
            }
            other => return Err(ErrorData::invalid_params(format!("no tool {other}"), None)),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

// The newest revision does without roots; the older ones do not.
#[allow(deprecated)]
async fn first_root(context: &RequestContext<RoleServer>) -> String {
    match context.peer.list_roots().await {
        Ok(roots) => roots.roots[0].uri.clone(),
        Err(error) => format!("refused: {error}"),
    }
}

fn policies() -> Policies {
    Policies {
        sampling: Sampling::Answer { model: "none".into(), text: "words".into() },
        elicitation: Elicitation::Decline,
        roots: Roots::List(vec!["file:///data".into()]),
    }
}

async fn talk(session: &Session, revision: Revision) {
    assert_eq!(session.server().revision, revision);
    let names: Vec<String> =
        session.tools().await.unwrap().iter().map(|tool| tool.name().to_owned()).collect();
    assert_eq!(names, ["echo", "roots", "slow", "sample", "elicit"]);
    let given = arguments(json!({"a": [1, "ü"]}));
    let reply = session.call("echo", &given).await.unwrap();
    assert_eq!(reply.texts(), [json!(given).to_string()]);
    if revision.has_handshake() {
        let reply = session.call("roots", &Map::new()).await.unwrap();
        assert_eq!(reply.texts(), ["file:///data"]);
        assert_eq!(session.protocol_log().requests_answered, 1);
    }
    let short = CallOptions {
        timeout: Some(Duration::from_millis(100)),
        progress: true,
        ..CallOptions::default()
    };
    let late = session.call_with("slow", &Map::new(), short).await.unwrap_err();
    assert!(matches!(late, CallError::Timeout { .. }), "{late}");
    let unknown = session.call("nothing", &Map::new()).await.unwrap_err();
    assert!(matches!(unknown, CallError::Protocol { code: -32602, .. }), "{unknown}");
    assert_eq!(session.protocol_log().warnings(), [""; 0]);
}

#[tokio::test]
async fn our_client_works_with_its_server_over_streams() {
    for revision in Revision::ALL {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move {
            let service = Server.serve(theirs).await.unwrap();
            let _ = service.waiting().await;
        });
        let (read, write) = tokio::io::split(ours);
        let options = Options { policies: policies(), ..Options::default() };
        let session = Session::over(read, write, Some(revision), &options).await.unwrap();
        talk(&session, revision).await;
    }
}

#[tokio::test]
async fn our_client_works_with_its_server_over_http() {
    let service = StreamableHttpService::new(
        || Ok(Server),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().fallback_service(service);
    tokio::spawn(async move { axum::serve(listener, router).await });
    for revision in Revision::ALL {
        let spec = ServerSpec {
            protocol: Some(revision),
            ..ServerSpec::from_url(format!("http://{address}/mcp"))
        };
        let options = Options { policies: policies(), ..Options::default() };
        let session = Session::start(&spec, &options).await.unwrap();
        talk(&session, revision).await;
        session.close().await;
    }
}

#[tokio::test]
async fn a_server_that_refuses_requests_of_its_own_is_answered_with_an_error() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    tokio::spawn(async move {
        let service = Server.serve(theirs).await.unwrap();
        let _ = service.waiting().await;
    });
    let (read, write) = tokio::io::split(ours);
    let session = Session::over(read, write, None, &Options::default()).await.unwrap();
    let reply = session.call("roots", &Map::new()).await.unwrap();
    assert!(reply.texts()[0].starts_with("refused"), "{:?}", reply.texts());
}
