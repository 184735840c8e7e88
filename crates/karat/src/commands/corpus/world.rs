//! `karat corpus serve --world`: worlds as MCP servers, with an attack or without.

use std::collections::BTreeMap;
use std::sync::Arc;

use karat_mcp::serve::{HttpServer, over_stdio};
use karat_resilience::serve::Served;
use karat_resilience::set::{Case, WorldSet};

use super::serve::{announce, ended, path};
use crate::bundled;
use crate::cli::ServeArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use crate::work::runtime;

/// Serves one world over stdio, or one over HTTP.
pub(super) fn run(arguments: &ServeArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let set = WorldSet::open(bundled::dataset(&arguments.dataset.to_string_lossy())?)?;
    let case = chosen(&set, arguments)?;
    let mut served = Served::new(&case.world, &case.task, case.attack.as_ref());
    if let Some(file) = &arguments.state {
        served = served.writing(file.clone());
    }
    let offer = served.offer();
    let runtime = runtime()?;
    let Some(address) = arguments.http else {
        runtime.block_on(over_stdio(offer, served)).map_err(Stop::bad_input)?;
        return Ok(Exit::Pass);
    };
    let tools = offer.tools.len();
    let offers = BTreeMap::from([(path(&case.world.name), offer)]);
    runtime.block_on(async {
        let server =
            HttpServer::bind(address, offers, Arc::new(served)).await.map_err(Stop::bad_input)?;
        announce(&format!("http://{}", server.address()), 1, tools, terminal)?;
        server.run_until(ended()).await;
        Ok(Exit::Pass)
    })
}

/// The case that was named, or the first task of the one world that was named.
fn chosen(set: &WorldSet, arguments: &ServeArgs) -> Result<Case, Stop> {
    if let Some(id) = &arguments.case {
        return Ok(set.case(id)?);
    }
    let named: Vec<_> = set
        .worlds
        .iter()
        .filter(|world| arguments.servers.is_empty() || arguments.servers.contains(&world.name))
        .collect();
    match named.as_slice() {
        [world] => {
            let id = format!("{}/{}", world.name, world.tasks.first().map_or("", |task| &task.id));
            Ok(set.case(&id)?)
        }
        _ => {
            let names: Vec<&str> = set.worlds.iter().map(|world| world.name.as_str()).collect();
            Err(Stop::bad_input(format!("choose one world with --server: {}", names.join(", "))))
        }
    }
}
