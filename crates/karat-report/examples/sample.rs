//! Renders a report, to look at a change of a renderer; the extension of FILE chooses the format:
//! `cargo run -p karat-report --example sample -- FILE [ITEMS | REPORT.json] [hostile]`.
//! Without a report it renders one of each kind and one with this many items.

#![allow(clippy::unwrap_used, clippy::panic, reason = "an example over the samples of the tests")]

#[allow(dead_code, reason = "shared with the tests")]
#[path = "../tests/it/sample/mod.rs"]
mod sample;

use std::path::Path;
use std::process::ExitCode;

use karat_core::report::{CheckReport, load_reports};
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
        return Err("usage: sample FILE.html|.md|.xml|.json [ITEMS | REPORT.json] [hostile]".into());
    };
    let source = rest.first().map_or("500", String::as_str);
    let mut check = match source.ends_with(".json") {
        true => {
            let reports = load_reports(Path::new(source)).map_err(|error| error.to_string())?;
            CheckReport::of(reports)
        }
        false => {
            let count = source.parse().map_err(|error| format!("number of items: {error}"))?;
            let mut check = sample::small();
            check.reports.extend(sample::kinds::each().into_iter().skip(1));
            check.reports.push(sample::synthetic::retrieval(count));
            check
        }
    };
    if rest.get(1).is_some_and(|word| word == "hostile") {
        check = sample::poisoned(&check);
    }
    let text = Output::of(Path::new(path))?.render(&check)?;
    std::fs::write(path, text).map_err(|error| format!("{path}: {error}"))
}
