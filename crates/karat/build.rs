//! Embeds the bundled project, its datasets and its baselines, so that the binary needs nothing
//! beside itself.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let crate_folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
    let root = crate_folder.join("../..").canonicalize()?;
    let mut paths = vec![root.join("karat.toml")];
    for folder in ["datasets", "baselines"] {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
        walk(&root.join(folder), &mut paths)?;
    }
    println!("cargo::rerun-if-changed={}", root.join("karat.toml").display());
    paths.sort();
    let mut code = String::from("pub(crate) static FILES: &[(&str, &[u8])] = &[\n");
    for path in paths {
        let inside = path.strip_prefix(&root).map_err(io::Error::other)?;
        let name = inside.to_string_lossy().replace('\\', "/");
        let _ = writeln!(code, "    ({name:?}, include_bytes!({:?})),", path.to_string_lossy());
    }
    code.push_str("];\n");
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    fs::write(out.join("embedded.rs"), code)
}

fn walk(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { walk(&path, paths)? } else { paths.push(path) }
    }
    Ok(())
}
