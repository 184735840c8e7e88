//! `karat corpus serve`: a frozen corpus as MCP servers, so that a real proxy or scanner reads
//! the frozen definitions instead of live ones that drift.
//!
//! The definitions are served unmodified. A call of a tool returns an error: it has no implementation.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use karat_detection::dataset::{Dataset as Threats, Sample, Tool};
use karat_io::input::write_atomic;
use karat_io::text::{count, printable};
use karat_mcp::serve::{Context, HttpServer, Offer, ProtocolError, Respond, over_stdio};
use karat_retrieval::snapshot::Snapshot;
use serde_json::{Map, Value, json};

use super::{proxy, snapshot};
use crate::bundled;
use crate::cli::ServeArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use crate::work::runtime;

/// The version of a server without one.
const VERSION: &str = "frozen";

/// Answers every call with an error: a frozen corpus has no implementations.
struct Nothing;

impl Respond for Nothing {
    async fn call(&self, _: &Context, tool: &str, _: &Value) -> Result<Value, ProtocolError> {
        let text = format!(
            "{tool} is part of a frozen corpus that Karat serves for measurements; it has no implementation, \
             and the call did nothing"
        );
        Ok(json!({"content": [{"type": "text", "text": text}], "isError": true}))
    }
}

pub(super) fn run(arguments: &ServeArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    if arguments.world {
        return super::world::run(arguments, terminal);
    }
    let offers = chosen(arguments, offers(&arguments.dataset)?)?;
    match arguments.http {
        Some(address) => over_http(arguments, address, offers, terminal),
        None if arguments.proxy_config.is_some() => {
            let servers = offers.keys().map(|name| (name.clone(), program(arguments, name)));
            configure(arguments, &servers.collect(), terminal)?;
            Ok(Exit::Pass)
        }
        None => one_over_stdio(offers),
    }
}

fn one_over_stdio(mut offers: BTreeMap<String, Offer>) -> Result<Exit, Stop> {
    let names: Vec<String> = offers.keys().take(20).cloned().collect();
    let (Some((_, offer)), true) = (offers.pop_first(), offers.is_empty()) else {
        return Err(Stop::bad_input(format!(
            "--stdio serves a single server; choose it with --server: {} …",
            names.join(", ")
        )));
    };
    runtime()?.block_on(over_stdio(offer, Nothing)).map_err(Stop::bad_input)?;
    Ok(Exit::Pass)
}

fn over_http(
    arguments: &ServeArgs,
    address: SocketAddr,
    offers: BTreeMap<String, Offer>,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    let runtime = runtime()?;
    let (servers, tools) = (offers.len(), offers.values().map(|offer| offer.tools.len()).sum());
    let names: Vec<String> = offers.keys().cloned().collect();
    let at = offers.into_iter().map(|(name, offer)| (path(&name), offer)).collect();
    runtime.block_on(async {
        let server = HttpServer::bind(address, at, Nothing).await.map_err(Stop::bad_input)?;
        let root = format!("http://{}", server.address());
        let urls = names
            .into_iter()
            .map(|name| {
                let url = format!("{root}{}", path(&name));
                (name, proxy::Reach::Url(url))
            })
            .collect();
        configure(arguments, &urls, terminal)?;
        announce(&root, servers, tools, terminal)?;
        server.run_until(ended()).await;
        Ok(Exit::Pass)
    })
}

/// One line on stdout when it is ready, so that a script can wait for it and read the port.
pub(super) fn announce(
    root: &str,
    servers: usize,
    tools: usize,
    terminal: &Terminal,
) -> Result<(), Stop> {
    if terminal.json() {
        let line = json!({"url": root, "servers": servers, "tools": tools});
        terminal.print_json_text(&format!("{line}\n"))?;
    } else {
        let (servers, tools) = (count(servers, "server"), count(tools, "tool"));
        terminal.print(&format!("{servers}, {tools} at {root}/NAME/mcp\n"))?;
    }
    let _ = std::io::stdout().flush();
    Ok(())
}

fn configure(
    arguments: &ServeArgs,
    servers: &BTreeMap<String, proxy::Reach>,
    terminal: &Terminal,
) -> Result<(), Stop> {
    let (Some(kind), Some(out)) = (arguments.proxy_config, &arguments.output) else {
        return Ok(());
    };
    let peers = || out.with_extension("data");
    let data = arguments.proxy_data.clone().unwrap_or_else(peers);
    let proxy = proxy::Proxy {
        listen: arguments.proxy_listen,
        data: std::path::absolute(&data).unwrap_or(data),
        key: arguments.proxy_key.clone(),
    };
    let text = karat_report::json::text(&proxy::document(kind, &proxy, servers));
    write_atomic(out, text.as_bytes())?;
    let servers = count(servers.len(), "server");
    terminal.say(&format!("{}: {servers}", printable(&out.to_string_lossy())));
    Ok(())
}

/// The way a proxy starts one server of the corpus.
fn program(arguments: &ServeArgs, name: &str) -> proxy::Reach {
    let karat = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("karat"));
    let bundled = arguments.dataset.to_string_lossy().starts_with("bundled:");
    let dataset = match bundled {
        true => arguments.dataset.clone(),
        // The proxy may run elsewhere.
        false => {
            std::path::absolute(&arguments.dataset).unwrap_or_else(|_| arguments.dataset.clone())
        }
    };
    let texts =
        [karat.to_string_lossy(), "corpus".into(), "serve".into(), dataset.to_string_lossy()];
    let mut command: Vec<String> = texts.into_iter().map(|text| text.into_owned()).collect();
    command.extend(["--server", name, "--stdio"].map(str::to_owned));
    proxy::Reach::Command(command)
}

/// Ctrl-C, or the request to end that a script sends.
pub(super) async fn ended() {
    let _ = karat_io::process::end_all_on_signal().await;
}

/// The path of a server. Names come from corpora and may contain anything.
pub(super) fn path(name: &str) -> String {
    format!("/{}/mcp", karat_io::template::percent_encoded(name))
}

fn chosen(
    arguments: &ServeArgs,
    mut offers: BTreeMap<String, Offer>,
) -> Result<BTreeMap<String, Offer>, Stop> {
    if let Some(unknown) = arguments.servers.iter().find(|name| !offers.contains_key(*name)) {
        let names = karat_io::input::nearest(unknown, offers.keys().map(String::as_str));
        let hint = names.map_or(String::new(), |name| format!("; did you mean {name}?"));
        return Err(Stop::bad_input(format!(
            "{}: no server {unknown:?}{hint}",
            arguments.dataset.display()
        )));
    }
    if !arguments.servers.is_empty() {
        offers.retain(|name, _| arguments.servers.contains(name));
    }
    if offers.is_empty() {
        return Err(Stop::bad_input(format!(
            "{}: no servers in the corpus",
            arguments.dataset.display()
        )));
    }
    Ok(offers)
}

/// Every server of a corpus of tools, or every entry of a threat corpus.
fn offers(dataset: &Path) -> Result<BTreeMap<String, Offer>, Stop> {
    let bundled = dataset.to_str().and_then(|text| text.strip_prefix("bundled:"));
    if bundled.is_some_and(|name| name.starts_with("threats/")) {
        let files = bundled::named(bundled.unwrap_or_default())?;
        return Ok(of_threats(&Threats::open(files)?));
    }
    if dataset.join("entries").is_dir() {
        let files = karat_core::dataset::DatasetFiles::Folder(dataset.to_owned());
        return Ok(of_threats(&Threats::open(files)?));
    }
    // The content of a file shows its kind: threat corpora have entries, others have tools.
    if dataset.is_file()
        && let Ok(threats) = Threats::from_file(dataset)
    {
        return Ok(of_threats(&threats));
    }
    Ok(of_tools(snapshot(dataset)?))
}

fn of_tools(snapshot: Snapshot) -> BTreeMap<String, Offer> {
    let offer = |(name, server): (String, karat_retrieval::snapshot::Server)| {
        let offer = Offer {
            name: name.clone(),
            version: server.text("version").unwrap_or(VERSION).to_owned(),
            instructions: server.text("instructions").map(str::to_owned),
            tools: server.tools,
        };
        (name, offer)
    };
    snapshot.servers.into_iter().map(offer).collect()
}

/// Each entry is a server of its own, since two entries may be two definitions of one tool. Peers
/// that the entry puts on the same server are served peers it.
fn of_threats(threats: &Threats) -> BTreeMap<String, Offer> {
    let offer = |sample: &Sample| {
        let peers = sample.peers.iter().filter(|peer| peer.server == sample.server);
        let tools = std::iter::once(&sample.tool).chain(peers.map(|peer| &peer.tool));
        let name = if sample.server.is_empty() { &sample.id } else { &sample.server };
        let offer = Offer {
            name: name.clone(),
            version: VERSION.to_owned(),
            instructions: sample.instructions.clone(),
            tools: tools.map(|tool| definition(tool, &sample.id)).collect(),
        };
        (sample.id.clone(), offer)
    };
    threats.samples.iter().map(offer).collect()
}

/// A definition with the names that the protocol has for its fields.
fn definition(tool: &Tool, id: &str) -> Value {
    let mut fields = Map::new();
    let name = if tool.name.is_empty() { id } else { &tool.name };
    fields.insert("name".to_owned(), json!(name));
    if let Some(title) = &tool.title {
        fields.insert("title".to_owned(), json!(title));
    }
    fields.insert("description".to_owned(), json!(tool.description));
    let schema = tool.input_schema.clone().unwrap_or_else(|| json!({"type": "object"}));
    fields.insert("inputSchema".to_owned(), schema);
    for (field, value) in
        [("outputSchema", &tool.output_schema), ("annotations", &tool.annotations)]
    {
        if let Some(value) = value {
            fields.insert(field.to_owned(), value.clone());
        }
    }
    Value::Object(fields)
}
