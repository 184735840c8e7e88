//! Imports of small files in the formats that benchmarks publish, measured as `karat check` does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a panic is a failed test"
)]

mod bfcl;
mod livemcpbench;
mod mcpmark;
mod others;
mod own;
mod tau;
mod wrong;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::evaluation::RunContext;
use karat_core::project::{Baselines, NoBundle, Project, Registry, Root};
use karat_core::report::{Measured, Report};
use karat_core::run::Silent;
use karat_import::outcomes::Outcomes;
use karat_import::{ImportError, Imported, find, import};
use karat_resilience::Resilience;

/// A folder with files, and the place where an import goes.
struct Copy(tempfile::TempDir);

impl Copy {
    fn new(files: &[(&str, &str)]) -> Copy {
        let copy = Copy(tempfile::tempdir().unwrap());
        for (name, text) in files {
            copy.write(name, text);
        }
        copy
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.source().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn source(&self) -> PathBuf {
        self.0.path().join("copy")
    }

    fn target(&self) -> PathBuf {
        self.0.path().join("imported")
    }

    fn import(&self, name: &str) -> Result<Imported, ImportError> {
        import(find(name)?, &[self.source()], &self.target(), false)
    }

    /// The message of an import that must fail, and must leave nothing.
    fn refused(&self, name: &str) -> String {
        let message = self.import(name).unwrap_err().to_string();
        assert!(!self.target().exists(), "something was left behind");
        let left: Vec<_> = std::fs::read_dir(self.0.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "something was left behind");
        message
    }

    /// The reports of an import.
    fn reports(&self, name: &str) -> Vec<Report> {
        self.import(name).unwrap();
        check(&self.target()).unwrap()
    }
}

/// Measures the outcomes of a project.
fn check(folder: &Path) -> Result<Vec<Report>, String> {
    let path = folder.join("karat.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let registry = Registry::default().with::<Outcomes>().with::<Resilience>();
    let root = Root::in_folder(folder, &NoBundle);
    let project = Project::load(root, &path, &text, &registry, Baselines::Needed)
        .map_err(|error| error.to_string())?;
    let context = RunContext { folder, journal: None, resume: false, progress: Arc::new(Silent) };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let entries = project.entries.iter();
    entries
        .map(|planned| {
            let ran = runtime.block_on(planned.entry.run(&context));
            ran.map_err(|error| error.to_string())
        })
        .collect()
}

fn report<'a>(reports: &'a [Report], name: &str) -> &'a Report {
    reports.iter().find(|report| report.name == name).unwrap_or_else(|| {
        panic!("no {name} among {:?}", reports.iter().map(|r| &r.name).collect::<Vec<_>>())
    })
}

/// A metric over everything, or over a slice written as `by=value`.
fn metric<'a>(report: &'a Report, slice: Option<&str>, id: &str) -> &'a Measured {
    let metrics = match slice {
        None => &report.metrics,
        Some(slice) => {
            let is = |known: &&karat_core::report::Slice| {
                format!("{}={}", known.by, known.value) == slice
            };
            &report.slices.iter().find(is).unwrap_or_else(|| panic!("no {slice}")).metrics
        }
    };
    metrics.iter().find(|metric| metric.id == id).unwrap_or_else(|| panic!("no {id}"))
}

fn value(report: &Report, id: &str) -> Option<f64> {
    metric(report, None, id).value
}

#[track_caller]
fn near(found: Option<f64>, expected: f64) {
    let found = found.unwrap();
    assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
}
