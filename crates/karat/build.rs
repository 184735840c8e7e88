//! Embeds the bundled project, its datasets, suites and baselines, so that the binary needs nothing
//! next to itself, and what `karat --version --verbose` prints.

#[path = "build/unwind_tables.rs"]
mod unwind_tables;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::GzEncoder;

/// Read from its folder only: larger than all the others, and no entry of the bundled project uses it.
const NOT_EMBEDDED: &str = "datasets/threats/v3";

fn main() -> io::Result<()> {
    let crate_folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
    // A package on a registry has no folders above its own; `scripts/dist crate` copies them into it.
    let packaged = crate_folder.join("bundled");
    let root =
        if packaged.is_dir() { packaged } else { crate_folder.join("../..") }.canonicalize()?;
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    let mut files = vec![root.join("karat.toml")];
    walk(&root.join("baselines"), &mut files)?;
    walk(&root.join("suites"), &mut files)?;
    let project = pack(&root, &root, &files, &out)?;
    let mut code = format!("pub(crate) static PROJECT: Packed = {project};\n");
    let mut datasets = Vec::new();
    for name in folders(&root.join("datasets"))? {
        for version in folders(&name)? {
            if inside(&version, &root)? != NOT_EMBEDDED {
                let mut files = Vec::new();
                walk(&version, &mut files)?;
                datasets.push(pack(&root, &version, &files, &out)?);
            }
        }
    }
    let (count, datasets) = (datasets.len(), datasets.join(",\n"));
    code += &format!("pub(crate) static DATASETS: [Packed; {count}] = [\n{datasets}\n];\n");
    for path in ["karat.toml", "datasets", "baselines", "suites", "ci/gitlab.yml"] {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    fs::copy(root.join("ci/gitlab.yml"), out.join("gitlab.yml"))?;
    fs::write(out.join("embedded.rs"), code)?;
    unwind_tables::drop_them(&out)?;
    println!("cargo::rustc-env=KARAT_TARGET={}", env::var("TARGET").map_err(io::Error::other)?);
    println!("cargo::rerun-if-env-changed=KARAT_COMMIT");
    if let Some(commit) = commit(&crate_folder) {
        println!("cargo::rustc-env=KARAT_BUILT_FROM={commit}");
    }
    Ok(())
}

/// The commit that is built: of the variable, of the package, or of the checkout. A build for development
/// has none, since it would be compiled again after every commit.
fn commit(crate_folder: &Path) -> Option<String> {
    let usable = |text: &str| {
        let text = text.trim();
        let hexadecimal = |c: char| c.is_ascii_hexdigit();
        (text.len() == 40 && text.chars().all(hexadecimal)).then(|| text.to_owned())
    };
    if let Ok(given) = env::var("KARAT_COMMIT") {
        return usable(&given);
    }
    // Written by cargo into every package: {"git": {"sha1": "…"}, …}.
    if let Ok(text) = fs::read_to_string(crate_folder.join(".cargo_vcs_info.json")) {
        return text.split('"').find_map(usable);
    }
    if env::var("PROFILE").is_ok_and(|profile| profile != "release") {
        return None;
    }
    let git = |words: &[&str]| {
        let output = Command::new("git").arg("-C").arg(crate_folder).args(words).output().ok()?;
        let text = output.status.success().then(|| String::from_utf8(output.stdout).ok())??;
        Some(text.trim().to_owned())
    };
    for name in ["HEAD", &git(&["rev-parse", "--symbolic-full-name", "HEAD"])?] {
        let watched = crate_folder.join(git(&["rev-parse", "--git-path", name])?);
        // A packed ref has no file, and a file that is missing would be a change at every build.
        if watched.exists() {
            println!("cargo::rerun-if-changed={}", watched.display());
        }
    }
    usable(&git(&["rev-parse", "HEAD"])?)
}

/// Packs files into one, and gives the code of a `Packed`: the name of their folder, each file's name and
/// length, and all their bytes.
fn pack(root: &Path, folder: &Path, files: &[PathBuf], out: &Path) -> io::Result<String> {
    let name = inside(folder, root)?;
    let packed = format!("{}.gz", name.replace('/', "-"));
    let mut writer = GzEncoder::new(fs::File::create(out.join(&packed))?, Compression::best());
    let mut list = String::new();
    for path in files {
        let bytes = fs::read(path)?;
        writer.write_all(&bytes)?;
        list += &format!("({:?}, {}), ", inside(path, folder)?, bytes.len());
    }
    writer.finish()?;
    // Not the whole path, so that a build folder can be moved.
    let bytes = format!("include_bytes!(concat!(env!(\"OUT_DIR\"), {:?}))", format!("/{packed}"));
    Ok(format!("Packed::new({name:?}, &[{list}], {bytes})"))
}

/// A path below a folder, with slashes.
fn inside(path: &Path, folder: &Path) -> io::Result<String> {
    let path = path.strip_prefix(folder).map_err(io::Error::other)?;
    Ok(path.to_string_lossy().replace('\\', "/"))
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
