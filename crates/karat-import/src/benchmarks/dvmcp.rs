//! Damn Vulnerable MCP: ten servers, `challenges/<level>/challengeN/server.py`. They are started over
//! stdio and asked for their tools; no tool is called.
//!
//! Its authors mark hidden instructions in a description with `<IMPORTANT>` or `<HIDDEN>`: those are the
//! attacks. The flaws of the other tools are in their code, which a definition does not show.

use std::path::{Path, PathBuf};
use std::time::Duration;

use karat_core::error::EvalError;
use karat_mcp::{Definition, Options, ServerSpec, Session};
use serde_json::Value;

use crate::source::{File, Source};
use crate::threats::{BENIGN, Threat, Threats};
use crate::writer::Writer;
use crate::{Benchmark, ImportError};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "dvmcp",
    title: "Damn Vulnerable MCP",
    needs: "challenges/<level>/challengeN/server.py, and Python with the package `mcp` in .venv or on \
            the path: the servers are started",
    licence: "MIT by its README; no licence file",
    restricted: true,
    becomes: "detection: the definitions that the running servers offer",
    checked_by: "counts: 10 servers",
    import,
};

/// Loads a server without running it, finds the object it made, and serves that over stdio. What the
/// server prints while it is loaded goes to stderr.
const SERVE: &str = "\
import runpy, sys
from mcp.server.fastmcp import FastMCP
made, init = [], FastMCP.__init__
def noted(self, *given, **named):
    init(self, *given, **named)
    made.append(self)
FastMCP.__init__ = noted
out, sys.stdout = sys.stdout, sys.stderr
path = sys.argv[1]
sys.path.insert(0, path.rpartition('/')[0])
loaded = runpy.run_path(path, run_name='loaded')
sys.stdout = out
if not made:
    sys.exit('no FastMCP server in ' + path)
max(made, key=lambda server: len(server._tool_manager.list_tools())).run(transport='stdio')
";
const MARKS: [&str; 2] = ["<important>", "<hidden>"];
const TIMEOUT: Duration = Duration::from_secs(60);

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    let is_server = |file: &&File| {
        file.base() == "server.py"
            && file.folder().is_some_and(|name| name.starts_with("challenge"))
    };
    let servers: Vec<&File> = source.files().filter(is_server).collect();
    if servers.is_empty() {
        return Err(source.nothing(BENCHMARK.needs));
    }
    let python = python(source.place());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| ImportError::Other(error.to_string()))?;
    let mut threats = Threats::new(&BENCHMARK);
    for file in servers {
        // The digest is over what was run.
        source.bytes(file)?;
        let challenge = file.folder().unwrap_or_default();
        let tools = runtime.block_on(tools(&python, &file.path)).map_err(|reason| {
            let name = file.path.display();
            EvalError::NotStarted(format!("{name} cannot be captured with {python:?}: {reason}"))
        })?;
        writer.count("servers", 1);
        for tool in tools {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
            let text = tool.get("description").and_then(Value::as_str).unwrap_or_default();
            let text = text.to_lowercase();
            let malicious = MARKS.iter().any(|mark| text.contains(mark));
            let threat = Threat {
                id: format!("{challenge}/{name}"),
                malicious,
                category: if malicious { "hidden_instructions" } else { BENIGN },
                server: challenge,
                tool: tool.clone(),
                before: None,
            };
            threats.add(writer, threat)?;
        }
    }
    writer.note(
        "a definition counts as an attack if it hides instructions; flaws in code are not in it"
            .to_owned(),
    );
    threats.finish(writer);
    Ok(())
}

/// The interpreter of the copy's own environment, or the one on the path.
fn python(place: &Path) -> PathBuf {
    let own = place.ancestors().take(4).flat_map(|folder| {
        [".venv", "venv"].map(|name| folder.join(name).join("bin").join("python"))
    });
    let found = own.into_iter().find(|path| path.exists());
    found.and_then(|path| std::path::absolute(path).ok()).unwrap_or_else(|| "python3".into())
}

async fn tools(python: &Path, server: &Path) -> Result<Vec<Value>, String> {
    let server = std::path::absolute(server).map_err(|error| error.to_string())?;
    let command = [&python.to_string_lossy(), "-c", SERVE, &server.to_string_lossy()];
    let spec = ServerSpec {
        cwd: server.parent().map(Path::to_owned),
        ..ServerSpec::from_command(command.map(str::to_owned).to_vec())
    };
    let options = Options { start_timeout: TIMEOUT, call_timeout: TIMEOUT, ..Options::default() };
    let session = Session::start(&spec, &options).await.map_err(|error| error.to_string())?;
    let listed = session.tools().await;
    session.close().await;
    let listed = listed.map_err(|error| error.to_string())?;
    Ok(listed.into_iter().map(Definition::into_raw).collect())
}
