//! Set-up for tests that need installed software: everything goes under `target/live/`, once.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The folder for what is installed.
pub(crate) fn live() -> PathBuf {
    repository().join("target/live")
}

/// Runs a program to its end and gives its output; anything but success fails the test with what
/// it said.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{err}", output.status);
    out.into_owned()
}

/// A Python with exactly these packages, such as `gepa==0.1.4`.
pub(crate) fn python(name: &str, packages: &[&str]) -> PathBuf {
    let folder = live().join(name);
    let python = folder.join("bin/python");
    let done = folder.join("installed");
    let wanted = packages.join("\n");
    if std::fs::read_to_string(&done).is_ok_and(|found| found == wanted) {
        return python;
    }
    std::fs::create_dir_all(live()).unwrap();
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(packages));
    std::fs::write(done, wanted).unwrap();
    python
}
