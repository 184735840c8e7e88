//! The number of definitions the built-in detectors read in a second.
//!
//! `throughput FILE COUNT` reads definitions, one JSON line each, and then, for every line on its own
//! input, scans COUNT of them (from the start again where the file has fewer) and prints what that took:
//! `{"cpu_seconds", "wall_seconds", "flagged", "definitions", "peak_kib"}`. The line `all` has them
//! scanned on all processors, as `scan_all` does, any other on one thread; the CPU time is that of the
//! first thread, which only waits where there are more, and is null then. Reading the file and the word
//! lists is not counted. benches/scanners/run drives it.

#![allow(clippy::print_stdout, reason = "a program that prints")]

use std::error::Error;
use std::io::BufRead as _;
use std::time::Instant;

use karat_detectors::{ScanInput, Tool, scan, scan_all};
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
    scan(&ScanInput::default());
    for line in std::io::stdin().lock().lines() {
        let all = line?.trim() == "all";
        let (began, before) = (Instant::now(), cpu_seconds()?);
        let flagged = if all { on_all(&definitions, count) } else { on_one(&definitions, count) };
        let (spent, wall) = (cpu_seconds()? - before, began.elapsed().as_secs_f64());
        let answer = json!({
            "cpu_seconds": (!all).then_some(spent),
            "wall_seconds": wall,
            "flagged": flagged,
            "definitions": count,
            "peak_kib": peak_kib()?,
        });
        println!("{answer}");
    }
    Ok(())
}

fn on_one(definitions: &[ScanInput], count: usize) -> usize {
    let scanned = definitions.iter().cycle().take(count);
    scanned.filter(|definition| scan(definition).flags()).count()
}

/// All of them in one call.
fn on_all(definitions: &[ScanInput], count: usize) -> usize {
    let scanned: Vec<&ScanInput> = definitions.iter().cycle().take(count).collect();
    scan_all(&scanned).iter().filter(|scan| scan.flags()).count()
}

fn read(file: &str) -> Result<Vec<ScanInput>, Box<dyn Error>> {
    let text = std::fs::read_to_string(file)?;
    let definitions = text.lines().map(|line| {
        let Definition { id, server, tool } = serde_json::from_str(line)?;
        Ok(ScanInput { id, server, ..ScanInput::of_tool(tool) })
    });
    definitions.collect()
}

/// The processor time of this thread, as the kernel counts it.
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
