//! Public benchmarks from the user's own copy: one file per benchmark under `benchmarks`, each a
//! reader of the published files. Nothing is downloaded.
//!
//! An import writes a folder with a frozen dataset and a karat.toml, so that `karat check` gives the
//! benchmark's table at once. Most benchmarks publish whether each run succeeded; those become
//! entries of the [`outcomes`] evaluation, which counts as the benchmark does and as Karat does.

mod benchmark;
mod benchmarks;
mod error;
pub mod outcomes;
mod retrieval;
mod runs;
mod source;
mod threats;
mod writer;

use std::path::{Path, PathBuf};

pub use benchmark::Benchmark;
pub use benchmarks::BENCHMARKS;
pub use error::ImportError;
use source::Source;
pub use writer::Imported;
use writer::Writer;

/// Imports a benchmark from the places that were named into a folder that does not exist yet.
///
/// # Errors
/// If the files are not what the benchmark publishes, or the folder cannot be written.
pub fn import(
    benchmark: &Benchmark,
    places: &[PathBuf],
    target: &Path,
    partial: bool,
) -> Result<Imported, ImportError> {
    let source = Source::open(places)?;
    let mut writer = Writer::new(target, benchmark)?;
    writer.partial = partial;
    for (reason, number) in source.passed_over() {
        writer.skip_many(reason, number);
    }
    (benchmark.import)(&source, &mut writer)?;
    writer.finish(benchmark, source.digest())
}

/// The benchmark of a name.
///
/// # Errors
/// If there is none; the message has the nearest name.
pub fn find(name: &str) -> Result<&'static Benchmark, ImportError> {
    let names = || BENCHMARKS.iter().map(|benchmark| benchmark.name);
    BENCHMARKS.iter().find(|benchmark| benchmark.name == name).ok_or_else(|| {
        let advice = match karat_io::input::nearest(name, names()) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => "`karat import --list` shows them".to_owned(),
        };
        let name = karat_io::input::shown(name);
        ImportError::Other(format!("no importer named {name:?}; {advice}"))
    })
}
