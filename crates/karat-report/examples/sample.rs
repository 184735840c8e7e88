//! Writes a sample report, so that a change of a renderer can be looked at:
//! `cargo run -p karat-report --example sample -- page.html [items] [hostile]`.
//! The ending of the file chooses the format.

#[path = "../tests/it/sample/mod.rs"]
mod sample;

use std::path::Path;
use std::process::ExitCode;

use karat_report::Output;

fn main() -> ExitCode {
    match write(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                format!("{message}\n").as_bytes(),
            );
            ExitCode::FAILURE
        }
    }
}

fn write(arguments: &[String]) -> Result<(), String> {
    let [path, rest @ ..] = arguments else {
        return Err("usage: sample FILE.html|.md|.xml|.json [ITEMS] [hostile]".to_owned());
    };
    let count = rest.first().map_or(Ok(500), |text| text.parse::<usize>());
    let count = count.map_err(|error| format!("number of items: {error}"))?;
    let mut check = match rest.get(1).map(String::as_str) {
        Some("hostile") => sample::hostile(),
        _ => sample::small(),
    };
    check.reports.extend(sample::kinds::all().reports);
    check.reports.push(sample::synthetic::retrieval(count));
    let text = Output::of(Path::new(path))?.render(&check)?;
    std::fs::write(path, text).map_err(|error| format!("{path}: {error}"))
}
