//! How many definitions the built-in detectors read in a second, on one thread.
//!
//! `throughput FILE COUNT` reads definitions, one JSON line each, and then, for every line on its own
//! input, scans COUNT of them (from the start again where the file has fewer) and prints what that took:
//! `{"cpu_seconds", "flagged", "definitions", "peak_kib"}`. Reading the file and building the word tables
//! are not counted. benches/scanners/run drives it.

#![allow(clippy::print_stdout, reason = "a program that prints")]

use std::error::Error;
use std::io::BufRead as _;

use karat_detection::dataset::Tool;
use karat_detection::detectors;
use karat_detection::system::Exhibit;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Definition {
    id: String,
    server: String,
    tool: Tool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, file, count] = arguments.as_slice() else {
        return Err("usage: throughput FILE COUNT".into());
    };
    let count: usize = count.parse()?;
    let definitions = read(file)?;
    detectors::scan(&Exhibit::default());
    for line in std::io::stdin().lock().lines() {
        line?;
        let before = cpu_seconds()?;
        let scanned = definitions.iter().cycle().take(count);
        let flagged = scanned.filter(|definition| detectors::scan(definition).flags()).count();
        let spent = cpu_seconds()? - before;
        println!(
            "{}",
            json!({"cpu_seconds": spent, "flagged": flagged, "definitions": count, "peak_kib": peak_kib()?})
        );
    }
    Ok(())
}

fn read(file: &str) -> Result<Vec<Exhibit>, Box<dyn Error>> {
    let text = std::fs::read_to_string(file)?;
    let definitions = text.lines().map(|line| {
        let Definition { id, server, tool } = serde_json::from_str(line)?;
        Ok(Exhibit { id, server, ..Exhibit::of_tool(tool) })
    });
    definitions.collect()
}

/// What this thread has used of a processor, from the kernel's own count.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = text.split_whitespace().next().ok_or("no schedstat")?.parse()?;
    Ok(nanoseconds / 1e9)
}

/// The peak of resident memory.
fn peak_kib() -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}
