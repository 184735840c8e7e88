//! YARA rules that the user gives, run by boreal.
//!
//! Scanned are the description and the rest of the definition as JSON with ASCII escapes and a blank
//! after `:` and `,`, which is how Python scanners write it and what public rules were made for; the
//! server instructions; the result. Each is scanned by itself, so a rule never matches across two. Rules
//! may match strings and use the modules of boreal that look at bytes; they cannot read files or start
//! anything.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use boreal::compiler::CompilerParams;
use boreal::scanner::ScanResult;
use boreal::{Compiler, MetadataValue, Scanner};
use karat_core::observed::DetectorFinding;
use karat_detectors::ScanInput;
use karat_io::input::{self, Limits};
use karat_io::{Failure, FailureClass};
use serde_json::Value;

use crate::answer::{Answer, DetectorReport, Verdict};
use karat_core::error::EvalError;

/// Compiled rules, and the time that one definition may take.
///
/// A condition can loop for years, and boreal looks at its clock only between conditions. So a scan runs
/// in a thread of its own, which is left behind if it takes too long; until it ends, nothing else is
/// scanned.
pub struct Yara {
    rules: Arc<Rules>,
    timeout: Duration,
    /// Scans that took too long and still run.
    overdue: Arc<AtomicUsize>,
}

struct Rules {
    /// Says which rules match, and stops as soon as that is known.
    quick: Scanner,
    /// Says where as well; asked only where there is something to show.
    thorough: Scanner,
}

impl Yara {
    /// Compiles the rules of a file or a folder.
    ///
    /// # Errors
    /// If there is none, or one does not compile.
    pub(crate) fn load(path: &Path, timeout: Duration) -> Result<Yara, EvalError> {
        let rules = Arc::new(Rules::load(path, timeout)?);
        Ok(Yara { rules, timeout, overdue: Arc::default() })
    }

    /// The rules that match a definition.
    ///
    /// # Errors
    /// If scanning took too long.
    pub(crate) fn inspect(&self, input: &ScanInput) -> Result<Answer, Failure> {
        if self.overdue.load(Ordering::Acquire) > 0 {
            let message = "the rules are still busy with an earlier entry, which took too long";
            return Err(Failure::new(FailureClass::Timeout, message));
        }
        let (send, receive) = std::sync::mpsc::channel();
        let (rules, input) = (Arc::clone(&self.rules), input.clone());
        let overdue = Arc::clone(&self.overdue);
        let late = Arc::new(Mutex::new(None));
        let ended = Arc::clone(&late);
        std::thread::spawn(move || {
            let answer = rules.inspect(&input);
            let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            if *ended == Some(true) {
                overdue.fetch_sub(1, Ordering::AcqRel);
            }
            *ended = Some(false);
            let _ = send.send(answer);
        });
        if let Ok(answer) = receive.recv_timeout(self.timeout) {
            return answer;
        }
        // Under the lock it has either been sent, or is counted as overdue.
        let mut late = late.lock().unwrap_or_else(PoisonError::into_inner);
        receive.try_recv().unwrap_or_else(|_| {
            self.overdue.fetch_add(1, Ordering::AcqRel);
            *late = Some(true);
            let message = format!("the rules did not end within {} ms", self.timeout.as_millis());
            Err(Failure::new(FailureClass::Timeout, message))
        })
    }
}

impl Rules {
    /// Compiles a rule file, or all `.yar` and `.yara` files of a folder, in the order of their names.
    ///
    /// # Errors
    /// If there is none, or one does not compile.
    fn load(path: &Path, timeout: Duration) -> Result<Rules, EvalError> {
        let files = rule_files(path)?;
        if files.is_empty() {
            return Err(EvalError::Config(format!(
                "system: {}: no rule file here; they end in .yar or .yara",
                path.display()
            )));
        }
        let mut compiler = Compiler::new();
        // Every file of the folder is read anyway; an include could reach files outside of it.
        compiler.set_params(CompilerParams::default().disable_includes(true));
        for file in &files {
            let rules = input::read_text(file, &Limits::default())?;
            let namespace = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            compiler.add_rules_str_in_namespace(&rules, namespace.unwrap_or_default()).map_err(
                |error| EvalError::Config(format!("system: {}: {error}", file.display())),
            )?;
        }
        let mut quick = compiler.finalize();
        quick.set_scan_params(quick.scan_params().clone().timeout_duration(Some(timeout)));
        let mut thorough = quick.clone();
        let params = quick.scan_params().clone();
        thorough.set_scan_params(params.compute_full_matches(true).string_max_nb_matches(4));
        Ok(Rules { quick, thorough })
    }

    /// The rules that match a definition.
    ///
    /// # Errors
    /// If scanning took too long.
    fn inspect(&self, input: &ScanInput) -> Result<Answer, Failure> {
        let mut findings = Vec::new();
        for (place, text) in texts(input) {
            let failed = |(error, _): (boreal::scanner::ScanError, ScanResult<'_>)| {
                let message = format!("the scan of the {place} failed: {error}");
                Failure::new(FailureClass::Refused, message)
            };
            let found = self.quick.scan_mem(text.as_bytes()).map_err(failed)?;
            if found.rules.is_empty() {
                continue;
            }
            let found = self.thorough.scan_mem(text.as_bytes()).map_err(failed)?;
            findings.extend(found.rules.iter().map(|rule| {
                let matched = rule.matches.iter().flat_map(|one| &one.matches).next();
                DetectorFinding {
                    rule: rule.name.to_owned(),
                    severity: self.meta(rule.metadatas, "severity"),
                    message: super::text(&self.meta(rule.metadatas, "description")),
                    place: place.to_owned(),
                    excerpt: matched
                        .map(|one| super::text(&String::from_utf8_lossy(&one.data)))
                        .unwrap_or_default(),
                    ..DetectorFinding::default()
                }
            }));
        }
        let verdict = if findings.is_empty() { Verdict::Pass } else { Verdict::Flag };
        Ok(Answer {
            reports: vec![DetectorReport {
                detector: "yara".to_owned(),
                verdict: Some(verdict),
                findings,
                ..DetectorReport::default()
            }],
        })
    }

    fn meta(&self, all: &[boreal::Metadata], name: &str) -> String {
        let found = all.iter().find(|meta| self.quick.get_string_symbol(meta.name) == name);
        match found.map(|meta| meta.value) {
            Some(MetadataValue::Bytes(bytes)) => {
                String::from_utf8_lossy(self.quick.get_bytes_symbol(bytes)).into_owned()
            }
            Some(MetadataValue::Integer(number)) => number.to_string(),
            Some(MetadataValue::Boolean(truth)) => truth.to_string(),
            None => String::new(),
        }
    }
}

fn rule_files(path: &Path) -> Result<Vec<PathBuf>, EvalError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |error: std::io::Error| {
        EvalError::Config(format!("system: {}: cannot be read: {error}", path.display()))
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        let ending = file.extension().map(|ending| ending.to_ascii_lowercase());
        if ending.is_some_and(|ending| ending == "yar" || ending == "yara") {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// The scanned texts, each with its name in evidence.
fn texts(input: &ScanInput) -> Vec<(&'static str, String)> {
    let tool = &input.tool;
    let mut texts = vec![("description", tool.description.clone())];
    let mut rest: Vec<(&str, Value)> = vec![("name", Value::from(tool.name.as_str()))];
    rest.extend(tool.title.as_deref().map(|title| ("title", Value::from(title))));
    rest.extend(tool.input_schema.clone().map(|schema| ("inputSchema", schema)));
    rest.extend(tool.output_schema.clone().map(|schema| ("outputSchema", schema)));
    rest.extend(tool.annotations.clone().map(|annotations| ("annotations", annotations)));
    if rest.len() > 1 {
        let mut json = String::from("{");
        for (number, (key, value)) in rest.iter().enumerate() {
            let _ = write!(json, "{}\"{key}\": ", if number == 0 { "" } else { ", " });
            write_spaced(value, &mut json);
        }
        json.push('}');
        texts.push(("definition", json));
    }
    texts.extend(input.instructions.clone().map(|text| ("server instructions", text)));
    texts.extend(input.result.clone().map(|text| ("result", text)));
    texts.retain(|(_, text)| !text.is_empty());
    texts
}

/// JSON as Python's `json.dumps` writes it.
fn write_spaced(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            out.push('{');
            for (number, (key, value)) in fields.iter().enumerate() {
                if number > 0 {
                    out.push_str(", ");
                }
                write_escaped(key, out);
                out.push_str(": ");
                write_spaced(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    out.push_str(", ");
                }
                write_spaced(item, out);
            }
            out.push(']');
        }
        Value::String(text) => write_escaped(text, out),
        other => out.push_str(&other.to_string()),
    }
}

fn write_escaped(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(character),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}
