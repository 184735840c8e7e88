//! The defence between an agent and a world: a proxy, a guard, or none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use karat_io::exchange::{Exchange, Reply};
use karat_io::input::write_atomic;
use karat_io::process::{Process, Program};
use karat_mcp::serve::{self, HttpServer, Offer, ProtocolError, Respond};
use karat_mcp::{Options, ServerSpec, Session};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::serve::Served;
use crate::set::Case;

/// The settings of a defence; one of them at most.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DefenceConfig {
    /// The name in reports.
    pub name: Option<String>,
    /// The command of a proxy. In its words, `{server}` becomes the command of the world's server,
    /// `{url}` its address, `{config}` and `{config-url}` a file that names it as most clients do, and
    /// `{port}` a free port.
    pub proxy: Vec<String>,
    /// The address at which the proxy listens, such as `http://127.0.0.1:{port}/mcp`; stdio without it.
    pub url: Option<String>,
    /// Variables of the proxy or guard.
    pub env: BTreeMap<String, String>,
    /// The command of a guard: lines `{"id", "kind": "call" | "text", "text"}` in, `{"id", "block": true}` out.
    pub guard: Vec<String>,
}

impl DefenceConfig {
    /// The name in reports.
    pub fn label(&self) -> String {
        let program = self.proxy.first().or(self.guard.first());
        let program = program.map(|name| name.rsplit('/').next().unwrap_or(name).to_owned());
        self.name.clone().or(program).unwrap_or_else(|| "none".to_owned())
    }

    /// Finds contradictions.
    ///
    /// # Errors
    /// If there is one.
    pub fn validate(&self) -> Result<(), String> {
        if !self.proxy.is_empty() && !self.guard.is_empty() {
            return Err("give `proxy` or `guard`, not both".to_owned());
        }
        if self.url.is_some() && self.proxy.is_empty() {
            return Err("`url` needs the command of the proxy in `proxy`".to_owned());
        }
        let places = ["{server}", "{url}", "{config}", "{config-url}"];
        let named = |text: &String| places.iter().any(|place| text.contains(place));
        if !self.proxy.is_empty() && !self.proxy.iter().chain(self.env.values()).any(named) {
            return Err(format!(
                "the proxy must be given the world's server: use one of {}",
                places.join(", ")
            ));
        }
        Ok(())
    }
}

/// A program that decides about calls and texts.
pub struct Guard {
    exchange: Exchange<bool>,
    asked: AtomicU64,
    /// Set once the guard failed: what it cannot judge is not passed on.
    failed: std::sync::Mutex<Option<String>>,
}

impl Guard {
    /// Starts a guard.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(config: &DefenceConfig, folder: &Path) -> Result<Guard, String> {
        let program = Program {
            command: config.guard.clone(),
            env: config.env.clone(),
            folder: Some(folder.to_owned()),
            ..Program::default()
        };
        let exchange = Exchange::start(&program, read_verdict)?;
        Ok(Guard { exchange, asked: AtomicU64::new(0), failed: std::sync::Mutex::default() })
    }

    /// Asks about a call or a text. What a guard does not answer is blocked, and the run is an error.
    pub(crate) async fn blocks(&self, kind: &str, text: &str) -> bool {
        let id = self.asked.fetch_add(1, Ordering::Relaxed).to_string();
        let question = json!({"id": id, "kind": kind, "text": text});
        let answer =
            tokio::time::timeout(Duration::from_secs(30), self.exchange.ask(&id, &question)).await;
        let failure = match answer {
            Ok(Ok(block)) => return block,
            Ok(Err(failure)) => failure.message,
            Err(_) => "the guard did not answer within 30 s".to_owned(),
        };
        *self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(failure);
        true
    }

    /// The failure of the guard since it was last asked for.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
    }
}

fn read_verdict(line: &str) -> Result<(String, Reply<bool>), String> {
    #[derive(Deserialize)]
    struct Verdict {
        id: String,
        block: bool,
    }
    let verdict: Verdict = serde_json::from_str(line)
        .map_err(|error| format!("the guard's line is not {{\"id\", \"block\"}}: {error}"))?;
    Ok((verdict.id, Ok(verdict.block)))
}

/// The way from an agent to a world.
#[derive(Clone)]
pub enum Route {
    /// Nothing in between.
    Direct,
    /// A proxy in this process that passes everything on, or refuses every call.
    Relay {
        /// True to refuse every call.
        block: bool,
    },
    /// A proxy under test.
    Proxy(Arc<ProxyRoute>),
}

/// A proxy under test.
pub struct ProxyRoute {
    /// Its settings.
    pub config: DefenceConfig,
    /// The command that serves a case over stdio, without the words for the case.
    pub server: Vec<String>,
    /// The folder in which it runs.
    pub folder: PathBuf,
    /// The folder for files of runs.
    pub scratch: PathBuf,
}

/// A connection to a world, and the way to its state.
pub(crate) struct Connected {
    pub(crate) session: Session,
    served: Option<Arc<Served>>,
    file: Option<PathBuf>,
    /// Kept until the run has ended: dropping it ends the proxy.
    _proxy: Option<Process>,
    serving: Vec<tokio::task::JoinHandle<()>>,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.serving.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

impl Connected {
    /// The state of the world.
    pub(crate) fn state(&self) -> Result<Value, String> {
        match (&self.served, &self.file) {
            (Some(served), _) => Ok(served.state()),
            (None, Some(file)) => {
                let text = std::fs::read(file)
                    .map_err(|_| "the proxy did not start the world's server".to_owned())?;
                serde_json::from_slice(&text).map_err(|error| error.to_string())
            }
            (None, None) => Err("the world has no state".to_owned()),
        }
    }
}

impl Route {
    /// Connects an agent with the world of a case.
    pub(crate) async fn connect(
        &self,
        case: &Case,
        options: &Options,
    ) -> Result<Connected, String> {
        let served = Arc::new(Served::new(&case.world, &case.task, case.attack.as_ref()));
        match self {
            Route::Direct => {
                let (session, serving) = over(served.offer(), Arc::clone(&served), options).await?;
                Ok(Connected {
                    session,
                    served: Some(served),
                    file: None,
                    _proxy: None,
                    serving: vec![serving],
                })
            }
            Route::Relay { block } => {
                let behind = Options { recorder: None, ..options.clone() };
                let (inner, serving) = over(served.offer(), Arc::clone(&served), &behind).await?;
                let tools = inner.tools().await.map_err(|error| error.to_string())?;
                let offer = Offer {
                    name: inner.server().name.clone(),
                    version: inner.server().version.clone(),
                    instructions: inner.server().instructions.clone(),
                    tools: tools.into_iter().map(karat_mcp::Definition::into_raw).collect(),
                };
                let relay = Relay { inner, block: *block };
                let (session, relaying) = over(offer, relay, options).await?;
                let serving = vec![serving, relaying];
                Ok(Connected { session, served: Some(served), file: None, _proxy: None, serving })
            }
            Route::Proxy(proxy) => proxy.connect(case, served, options).await,
        }
    }
}

async fn over(
    offer: Offer,
    respond: impl Respond,
    options: &Options,
) -> Result<(Session, tokio::task::JoinHandle<()>), String> {
    let (client, server) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(server);
    let serving = tokio::spawn(async move {
        let _ = serve::over(offer, respond, read, write).await;
    });
    let (read, write) = tokio::io::split(client);
    let session =
        Session::over(read, write, None, options).await.map_err(|error| error.to_string())?;
    Ok((session, serving))
}

impl ProxyRoute {
    async fn connect(
        &self,
        case: &Case,
        served: Arc<Served>,
        options: &Options,
    ) -> Result<Connected, String> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let config = &self.config;
        let words = || config.proxy.iter().chain(config.env.values());
        let over_http = words().any(|word| word.contains("{url}") || word.contains("{config-url}"));
        let mut places: Vec<(&str, String)> = Vec::new();
        let mut serving = Vec::new();
        let (mut kept, mut file) = (Some(Arc::clone(&served)), None);
        let mut command = Vec::new();
        let name = &case.world.name;
        let write = |ending: &str, content: Value| -> Result<String, String> {
            let path = self.scratch.join(format!("{number}{ending}"));
            write_atomic(&path, content.to_string().as_bytes())
                .map_err(|error| error.to_string())?;
            Ok(path.to_string_lossy().into_owned())
        };
        if over_http {
            let offers = BTreeMap::from([("/mcp".to_owned(), served.offer())]);
            let local = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
            let server =
                HttpServer::bind(local, offers, served).await.map_err(|error| error.to_string())?;
            let url = format!("http://{}/mcp", server.address());
            serving.push(tokio::spawn(server.run_until(std::future::pending::<()>())));
            places.push((
                "{config-url}",
                write(".url.json", json!({"mcpServers": {name: {"url": url}}}))?,
            ));
            places.push(("{url}", url));
        } else {
            let state = self.scratch.join(format!("{number}.state.json"));
            command.clone_from(&self.server);
            command.extend(["--case".to_owned(), case.id(), "--state".to_owned()]);
            command.push(state.to_string_lossy().into_owned());
            let (program, arguments) =
                command.split_first().ok_or("there is no command of the world")?;
            let content = json!({"mcpServers": {name: {"command": program, "args": arguments}}});
            places.push(("{config}", write(".config.json", content)?));
            (kept, file) = (None, Some(state));
        }
        if words().chain(&config.url).any(|word| word.contains("{port}")) {
            let free =
                std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr());
            places.push(("{port}", free.map_err(|error| error.to_string())?.port().to_string()));
        }
        let fill = |word: &str| {
            places.iter().fold(word.to_owned(), |word, (place, value)| word.replace(place, value))
        };
        let mut started = Vec::new();
        for word in &config.proxy {
            if word == "{server}" {
                started.extend(command.iter().cloned());
            } else {
                started.push(fill(&word.replace("{server}", &command.join(" "))));
            }
        }
        let env: BTreeMap<String, String> =
            config.env.iter().map(|(name, value)| (name.clone(), fill(value))).collect();
        let (session, proxy) = match &config.url {
            None => {
                let spec = ServerSpec { env, ..ServerSpec::from_command(started) };
                (Session::start(&spec, options).await.map_err(|error| error.to_string())?, None)
            }
            Some(url) => {
                let program = Program {
                    command: started,
                    env,
                    folder: options.folder.clone(),
                    ..Program::default()
                };
                let (mut process, stdin, mut stdout) = Process::spawn(&program)?;
                // Its output is read, and its input stays open, for as long as it runs.
                serving.push(tokio::spawn(async move {
                    let _open = stdin;
                    let _ = tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await;
                }));
                let spec = ServerSpec::from_url(fill(url));
                (ready(&spec, options, &mut process).await?, Some(process))
            }
        };
        Ok(Connected { session, served: kept, file, _proxy: proxy, serving })
    }
}

/// Waits until a proxy answers.
async fn ready(
    spec: &ServerSpec,
    options: &Options,
    process: &mut Process,
) -> Result<Session, String> {
    let started = Instant::now();
    loop {
        let attempt = Options { start_timeout: Duration::from_secs(5), ..options.clone() };
        let error = match Session::start(spec, &attempt).await {
            Ok(session) => return Ok(session),
            Err(error) => error,
        };
        if started.elapsed() > options.start_timeout {
            return Err(format!("the proxy did not answer: {error}"));
        }
        tokio::select! {
            _ = process.ended() => return Err(format!("the proxy {}", process.describe_exit().await)),
            () = tokio::time::sleep(Duration::from_millis(50)) => {}
        }
    }
}

/// A proxy in this process, for controls.
struct Relay {
    inner: Session,
    block: bool,
}

impl Respond for Relay {
    async fn call(&self, tool: &str, arguments: &Value) -> Result<Value, ProtocolError> {
        if self.block {
            return Ok(json!({"content": [{"type": "text", "text": "refused"}], "isError": true}));
        }
        let none = Map::new();
        let answer = self.inner.call(tool, arguments.as_object().unwrap_or(&none)).await;
        answer.map(|reply| reply.raw).map_err(|error| ProtocolError::new(-32603, error.to_string()))
    }

    async fn request(
        &self,
        _: &serve::Context,
        method: &str,
        params: &Value,
    ) -> Result<Value, ProtocolError> {
        let none = Map::new();
        let answer = self.inner.request(method, params.as_object().unwrap_or(&none)).await;
        answer.map_err(|error| ProtocolError::new(-32603, error.to_string()))
    }

    fn capabilities(&self) -> Value {
        json!({"resources": {}, "prompts": {}})
    }
}
