//! Leaves the unwind tables out of the program where the linker allows it: a release aborts on panic, and
//! without them it is a tenth smaller.
//!
//! The compiler has a flag for this, but a cargo profile cannot set it; so the linker drops the section.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs, io};

const SCRIPT: &str = "SECTIONS { /DISCARD/ : { *(.eh_frame) } }\nINSERT AFTER .text;\n";

/// Passes the linker's arguments to cargo if an empty program can be linked with them: not every linker reads
/// scripts, and the startup files of some C libraries need the section.
pub(crate) fn drop_them(out: &Path) -> io::Result<()> {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if !(is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && is("PROFILE", "release"))
    {
        return Ok(());
    }
    let script = out.join("no-unwind-tables.ld");
    fs::write(&script, SCRIPT)?;
    let arguments = [format!("-Wl,-T,{}", script.display()), "-Wl,--no-eh-frame-hdr".to_owned()];
    if links(&arguments, &out.join("linked"))? {
        for argument in arguments {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    }
    Ok(())
}

/// Returns whether a program can be linked with these arguments, by the linker of this build.
fn links(arguments: &[String], program: &Path) -> io::Result<bool> {
    let variable = |name: &str| env::var(name).map_err(io::Error::other);
    let mut rustc = Command::new(variable("RUSTC")?);
    rustc.args(["-", "--crate-name=linked", "-Cpanic=abort", "--target", &variable("TARGET")?]);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    rustc.args(arguments.iter().map(|argument| format!("-Clink-arg={argument}")));
    rustc.arg("-o").arg(program);
    rustc.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut started = rustc.spawn()?;
    if let Some(mut input) = started.stdin.take() {
        input.write_all(b"fn main() {}")?;
    }
    Ok(started.wait()?.success())
}
