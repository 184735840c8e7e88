//! Embeds the bundled project, its datasets, suites and baselines, so that the binary needs nothing
//! next to itself.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Read from its folder only: larger than all the others, and no entry of the bundled project uses it.
const NOT_EMBEDDED: &str = "datasets/threats/v3";

fn main() -> io::Result<()> {
    let crate_folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
    let root = crate_folder.join("../..").canonicalize()?;
    let embed = |path: &Path, name: &Path| {
        let name = name.to_string_lossy().replace('\\', "/");
        format!("({name:?}, include_bytes!({:?}) as &[u8]),\n", path.to_string_lossy())
    };
    let inside = |path: &Path, folder: &Path| {
        path.strip_prefix(folder).map(Path::to_owned).map_err(io::Error::other)
    };

    let mut code = String::from(
        "type File = (&'static str, &'static [u8]);\npub(crate) static FILES: &[File] = &[\n",
    );
    let mut files = vec![root.join("karat.toml")];
    walk(&root.join("baselines"), &mut files)?;
    walk(&root.join("suites"), &mut files)?;
    for path in &files {
        code += &embed(path, &inside(path, &root)?);
    }
    code += "];\npub(crate) static DATASETS: &[(&str, &[File])] = &[\n";
    for name in folders(&root.join("datasets"))? {
        for version in folders(&name)? {
            let shown = inside(&version, &root)?;
            if shown == Path::new(NOT_EMBEDDED) {
                continue;
            }
            let mut files = Vec::new();
            walk(&version, &mut files)?;
            code += &format!("({:?}, &[\n", shown.to_string_lossy().replace('\\', "/"));
            for path in &files {
                code += &embed(path, &inside(path, &version)?);
            }
            code += "]),\n";
        }
    }
    code += "];\n";
    for path in ["karat.toml", "datasets", "baselines", "suites"] {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    fs::write(out.join("embedded.rs"), code)
}

/// The folders directly below a folder, sorted.
fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    found.retain(|path| path.is_dir());
    found.sort();
    Ok(found)
}

/// Every file below a folder, sorted.
fn walk(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { walk(&path, paths)? } else { paths.push(path) }
    }
    paths.sort();
    Ok(())
}
