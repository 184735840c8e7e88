//! The path of the `karat-test-server` binary. Test crates include this file as a module; it is not part of
//! the program.
//!
//! Cargo sets `CARGO_BIN_EXE_…` only for binaries of the same package, so the binary is looked up next to the
//! test and in the target folder of the workspace.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

const NAME: &str = "karat-test-server";

/// The path of the binary.
///
/// # Panics
/// If it is not built, or older than its source.
pub(crate) fn test_server() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| match find() {
        Ok(path) => path.to_string_lossy().into_owned(),
        Err(why) => {
            panic!("{NAME} {why}; run `cargo build -p {NAME}` (`cargo test --workspace` does it)")
        }
    })
}

fn find() -> Result<PathBuf, String> {
    let test = std::env::current_exe().map_err(|error| error.to_string())?;
    // target/debug/deps/it-0123456789abcdef
    let profile = test.ancestors().nth(2).ok_or("cannot be looked up")?;
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = workspace.join("target").join(profile.file_name().unwrap_or_default());
    let places = [profile.join(NAME), target.join(NAME)];
    let path = places.into_iter().find(|path| path.is_file());
    let path = path.ok_or("is not built")?;
    let changed = |path: &Path| path.metadata().and_then(|found| found.modified()).ok();
    let sources = std::fs::read_dir(workspace.join("crates").join(NAME).join("src"));
    let sources = sources.into_iter().flatten().flatten();
    let newest: Option<SystemTime> = sources.filter_map(|file| changed(&file.path())).max();
    if newest > changed(&path) {
        return Err("is older than its source".to_owned());
    }
    Ok(path)
}
