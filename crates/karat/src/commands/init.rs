//! `karat init`: a commented starter project that works at once.

use std::path::Path;

use karat_core::dataset::{IfFrozen, Manifest, Meta, Version};
use karat_core::input::write_atomic;

use crate::cli::{InitArgs, User};
use crate::exit::{Exit, Stop};
use crate::face::Terminal;

/// The files of a starter project; the manifest of the dataset is made from them.
const PROXY: &[(&str, &str)] = &[
    ("karat.toml", include_str!("../starter/proxy/karat.toml")),
    ("search.py", include_str!("../starter/proxy/search.py")),
    ("datasets/starter/v1/tools/tools.json", include_str!("../starter/proxy/tools.json")),
    ("datasets/starter/v1/golden/golden.jsonl", include_str!("../starter/proxy/golden.jsonl")),
];

/// The dataset among them.
const DATASET: &str = "datasets/starter/v1";

/// Writes the project; never over anything that is there.
pub(crate) fn run(arguments: &InitArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let files = match arguments.user {
        User::Proxy => PROXY,
    };
    let folder = &arguments.folder;
    if let Some((name, _)) = files.iter().find(|(name, _)| folder.join(name).exists()) {
        return Err(Stop::bad_input(format!(
            "{} exists already; nothing was written",
            folder.join(name).display()
        )));
    }
    for (name, text) in files {
        write_atomic(&folder.join(name), text.as_bytes())?;
    }
    freeze(&folder.join(DATASET))?;
    let mut text = String::from("wrote:\n");
    for (name, _) in files {
        text.push_str(&format!("  {}\n", folder.join(name).display()));
    }
    text.push_str(&format!("  {}\n", folder.join(DATASET).join("manifest.toml").display()));
    text.push_str(
        "next:\n  karat check             measures the built-in engine on the starter set\n",
    );
    text.push_str("  karat baseline update   records the scores, so that a later drop fails\n");
    terminal.print(&text)?;
    Ok(Exit::Pass)
}

fn freeze(folder: &Path) -> Result<(), Stop> {
    let meta = Meta {
        name: "starter".to_owned(),
        version: Version::new(1),
        licence: "CC0-1.0".to_owned(),
        made: "Written by karat init as something to start from.".to_owned(),
    };
    Manifest::freeze(folder, meta, IfFrozen::Refuse).map_err(Stop::bad_input)?;
    Ok(())
}
