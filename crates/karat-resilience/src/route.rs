//! The way from an agent to a world: directly, through a relay in this process, or through a proxy.
//!
//! A world with tools of its own is served by this process or by `karat corpus serve --world`; one
//! without them by a command of the user's, which keeps the state in a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use karat_core::adapter::program;
use karat_io::input::{Limits, parse_json_text, read_text, write_atomic};
use karat_io::interpolate::escaped;
use karat_io::process::Process;
use karat_io::task;
use karat_io::template::fill_word;
use karat_mcp::serve::{self, HttpServer, Offer, Respond};
use karat_mcp::{Options, ServerSpec, Session};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::defence::DefenceConfig;
use crate::relay::Relay;
use crate::serve::Served;
use crate::set::Case;

/// Worlds in processes of their own.
pub(crate) struct Servers {
    /// The command that serves a case over stdio, without the words for the case.
    command: Vec<String>,
    /// The folder for files of runs; removed at the end.
    scratch: TempDir,
    runs: AtomicU64,
}

impl Servers {
    /// # Errors
    /// If there cannot be a folder for files.
    pub(crate) fn new(command: Vec<String>) -> Result<Servers, String> {
        let scratch = tempfile::Builder::new()
            .prefix("karat-worlds-")
            .tempdir()
            .map_err(|error| format!("no temporary folder: {error}"))?;
        Ok(Servers { command, scratch, runs: AtomicU64::new(0) })
    }

    /// A folder for the files of one run.
    pub(crate) fn folder(&self) -> Result<RunFolder, String> {
        let number = self.runs.fetch_add(1, Ordering::Relaxed).to_string();
        let path = self.scratch.path().join(number);
        std::fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(RunFolder(path))
    }

    /// The command that serves a case, for a place where variables are replaced: the words of a world,
    /// such as the text of an attack, hold none.
    fn variable_command(&self, words: &[String]) -> Vec<String> {
        let own = self.command.len();
        let word =
            |(at, word): (usize, &String)| if at < own { word.clone() } else { escaped(word) };
        words.iter().enumerate().map(word).collect()
    }

    /// The command that serves a case.
    fn command(&self, case: &Case, state: &Path) -> Result<Vec<String>, String> {
        if self.command.is_empty() {
            return Err(format!("no command serves the world {}", case.world.name));
        }
        let mut command = self.command.clone();
        command.extend(["--case".to_owned(), case.id(), "--state".to_owned()]);
        command.push(state.to_string_lossy().into_owned());
        if let Some(attack) = case.attack.as_ref().filter(|_| case.world.is_served_elsewhere()) {
            command.extend(["--text".to_owned(), attack.text.clone()]);
        }
        Ok(command)
    }
}

/// The files of one run, removed with it.
pub(crate) struct RunFolder(PathBuf);

impl RunFolder {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file, and returns its path.
    pub(crate) fn write(&self, name: &str, content: &str) -> Result<String, String> {
        let path = self.path(name);
        write_atomic(&path, content.as_bytes()).map_err(|error| error.to_string())?;
        Ok(path.to_string_lossy().into_owned())
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // The folder of the whole measurement is removed later in any case.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The way from an agent to a world.
#[derive(Clone)]
pub(crate) enum Route {
    /// Nothing in between.
    Direct,
    /// A proxy in this process that passes everything on, or refuses every call.
    Relay {
        /// True to refuse every call.
        block: bool,
    },
    /// A proxy under test.
    Proxy(Arc<DefenceConfig>),
}

/// A connection to a world, and the way to its state.
pub(crate) struct Connected {
    pub(crate) session: Arc<Session>,
    state: State,
    /// Kept until the run has ended: dropping it ends the proxy.
    _proxy: Option<Process>,
    serving: Vec<JoinHandle<()>>,
    /// Dropped last.
    pub(crate) folder: RunFolder,
}

/// The place of the state.
enum State {
    Here(Arc<Served>),
    File(PathBuf),
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.serving.iter().for_each(JoinHandle::abort);
    }
}

impl Connected {
    /// The state of the world.
    pub(crate) fn state(&self) -> Result<Value, String> {
        let file = match &self.state {
            State::Here(served) => return Ok(served.state()),
            State::File(file) => file,
        };
        if !file.exists() {
            return Err("the world's server was not started, or wrote no state".to_owned());
        }
        let text = read_text(file, &Limits::default());
        let state = text.and_then(|text| parse_json_text(Path::new("state"), &text));
        state.map_err(|error| format!("the state of the world: {error}"))
    }
}

impl Route {
    /// Connects an agent with the world of a case.
    pub(crate) async fn connect(
        &self,
        case: &Case,
        servers: &Servers,
        options: &Options,
    ) -> Result<Connected, String> {
        let folder = servers.folder()?;
        match self {
            Route::Direct => world(case, servers, folder, options).await,
            Route::Relay { block } => {
                let behind = Options { recorder: None, ..options.clone() };
                let mut inner = world(case, servers, folder, &behind).await?;
                let relay = Relay::new(Arc::clone(&inner.session), None).await?;
                let relay = if *block { relay.blocking() } else { relay };
                let (session, relaying) = over(relay.offer(), relay, options).await?;
                inner.session = Arc::new(session);
                inner.serving.push(relaying);
                Ok(inner)
            }
            Route::Proxy(config) => through(config, case, servers, folder, options).await,
        }
    }
}

/// Connects with a world, with nothing in between.
async fn world(
    case: &Case,
    servers: &Servers,
    folder: RunFolder,
    options: &Options,
) -> Result<Connected, String> {
    if case.world.is_served_elsewhere() {
        let state = folder.path("state.json");
        let command = servers.variable_command(&servers.command(case, &state)?);
        let spec = ServerSpec::from_command(command);
        let session = Session::start(&spec, options).await.map_err(|error| error.to_string())?;
        let (session, state) = (Arc::new(session), State::File(state));
        return Ok(Connected { session, state, _proxy: None, serving: Vec::new(), folder });
    }
    let served = Arc::new(Served::new(&case.world, &case.task, case.attack.as_ref()));
    let (session, serving) = over(served.offer(), Arc::clone(&served), options).await?;
    let (session, state) = (Arc::new(session), State::Here(served));
    Ok(Connected { session, state, _proxy: None, serving: vec![serving], folder })
}

async fn over(
    offer: Offer,
    respond: impl Respond,
    options: &Options,
) -> Result<(Session, JoinHandle<()>), String> {
    let (client, server) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(server);
    let serving = task::spawn(async move {
        let _ = serve::over(offer, respond, read, write).await;
    });
    let (read, write) = tokio::io::split(client);
    let session =
        Session::over(read, write, None, options).await.map_err(|error| error.to_string())?;
    Ok((session, serving))
}

/// Serves over HTTP on this machine; returns the address.
pub(crate) async fn over_http(
    offer: Offer,
    respond: impl Respond,
) -> Result<(String, JoinHandle<()>), String> {
    let offers = BTreeMap::from([("/mcp".to_owned(), offer)]);
    let local = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let server =
        HttpServer::bind(local, offers, respond).await.map_err(|error| error.to_string())?;
    let url = format!("http://{}/mcp", server.address());
    Ok((url, task::spawn(server.run_until(std::future::pending::<()>()))))
}

/// Connects with a world through a proxy.
async fn through(
    config: &DefenceConfig,
    case: &Case,
    servers: &Servers,
    folder: RunFolder,
    options: &Options,
) -> Result<Connected, String> {
    let words = || config.proxy.iter().chain(config.env.values());
    let mentions = |place: &str| words().chain(&config.url).any(|word| word.contains(place));
    let name = &case.world.name;
    let mut places: Vec<(&str, String)> = Vec::new();
    let (mut serving, mut command) = (Vec::new(), Vec::new());
    let state;
    if mentions("{config-url}") || words().any(|word| word.contains("{url}")) {
        if case.world.is_served_elsewhere() {
            return Err(format!(
                "the world {name} is served over stdio: give the proxy {{server}} or {{config}}"
            ));
        }
        let served = Arc::new(Served::new(&case.world, &case.task, case.attack.as_ref()));
        let (url, task) = over_http(served.offer(), Arc::clone(&served)).await?;
        serving.push(task);
        let content = json!({"mcpServers": {name: {"type": "http", "url": url}}});
        places.push(("config-url", folder.write("config-url.json", &content.to_string())?));
        places.push(("url", url));
        state = State::Here(served);
    } else {
        let file = folder.path("state.json");
        command = servers.command(case, &file)?;
        let content = json!({"mcpServers": {name: {"command": command[0], "args": command[1..]}}});
        places.push(("config", folder.write("config.json", &content.to_string())?));
        command = servers.variable_command(&command);
        state = State::File(file);
    }
    if mentions("{port}") {
        let free = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr());
        places.push(("port", free.map_err(|error| error.to_string())?.port().to_string()));
    }
    places.push(("folder", folder.0.to_string_lossy().into_owned()));
    let started = fill_command(&config.proxy, &command, &places);
    let env: BTreeMap<String, String> =
        config.env.iter().map(|(name, value)| (name.clone(), fill_word(value, &places))).collect();
    let (session, proxy) = match &config.url {
        None => {
            let spec = ServerSpec { env, ..ServerSpec::from_command(started) };
            (Session::start(&spec, options).await.map_err(|error| error.to_string())?, None)
        }
        Some(url) => {
            let folder = options.folder.as_deref().unwrap_or(Path::new("."));
            let (program, redactor) = program(&started, &env, folder)?;
            let (mut process, stdin, mut stdout) = Process::spawn(&program)?;
            // Its output is read, and its input stays open, for as long as it runs.
            serving.push(task::spawn(async move {
                let _open = stdin;
                let _ = tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await;
            }));
            let spec = ServerSpec::from_url(fill_word(url, &places));
            let session = ready(&spec, options, &mut process).await;
            (session.map_err(|error| redactor.hidden(error))?, Some(process))
        }
    };
    Ok(Connected { session: Arc::new(session), state, _proxy: proxy, serving, folder })
}

/// Fills a command; `{server}` alone becomes as many words as the server's command has.
fn fill_command(words: &[String], server: &[String], places: &[(&str, String)]) -> Vec<String> {
    // As a shell reads it; a word with a zero byte cannot be one.
    let quoted = shlex::try_join(server.iter().map(String::as_str)).unwrap_or_default();
    let mut places = places.to_vec();
    places.push(("server", quoted));
    let mut filled = Vec::new();
    for word in words {
        match word.as_str() {
            "{server}" => filled.extend(server.iter().cloned()),
            _ => filled.push(fill_word(word, &places)),
        }
    }
    filled
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
