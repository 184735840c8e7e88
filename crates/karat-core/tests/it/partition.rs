//! A run that is measured in parts gives the report of one that is not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::evaluation::RunContext;
use karat_core::gate;
use karat_core::parts::PartFile;
use karat_core::project::{Baselines, NoBundle, Planned, Project, Registry, Root};
use karat_core::report::Report;
use karat_core::run::Silent;
use proptest::prelude::*;

use crate::toy::{Toy, folder};

const SETTINGS: &str = "[[toy]]\nname = \"words\"\nwords = \"words.txt\"\nlimit = 4\n\
                        gate.max_errors = 0.9\ngate.metrics.accuracy.min = 0.5\n";

fn project(folder: &Path) -> Project<'static> {
    let root = Root::in_folder(folder, &NoBundle);
    let registry = Registry::default().with::<Toy>();
    Project::load(root, Path::new("karat.toml"), SETTINGS, &registry, Baselines::Needed).unwrap()
}

fn context<'a>(folder: &'a Path, journal: Option<&'a Path>) -> RunContext<'a> {
    RunContext { folder, journal, resume: false, progress: Arc::new(Silent) }
}

/// The report as text, judged and without its environment.
fn judged(planned: &Planned, mut report: Report, other: Option<&Report>) -> String {
    if let Some(other) = other {
        report.environment = other.environment.clone();
    }
    gate::judge(&mut report, &planned.entry.common().gate, None).unwrap();
    serde_json::to_string(&report).unwrap()
}

fn merged(planned: &Planned, folder: &Path, parts: &[PathBuf]) -> Result<Report, String> {
    let files: Result<Vec<PartFile>, _> = parts.iter().map(|path| PartFile::open(path)).collect();
    let files = files.map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let merged = runtime.block_on(planned.entry.merge(&context(folder, None), &files));
    merged.map_err(|error| error.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_division_and_any_order_gives_the_same_report(
        words in prop::collection::btree_set("[a-e]{1,8}", 1..25),
        unanswerable in any::<bool>(),
        of in 1..12u32,
        shuffle in any::<prop::sample::Index>(),
    ) {
        let mut words: BTreeSet<String> = words;
        if unanswerable {
            words.insert("unanswerable".to_owned());
        }
        let words: Vec<String> = words.into_iter().collect();
        let folder = folder(&words.join(" "));
        let folder = folder.path();
        let project = project(folder);
        let planned = &project.entries[0];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let whole = runtime.block_on(planned.entry.run(&context(folder, None))).unwrap();

        let mut parts = Vec::new();
        let mut items = 0;
        for part in 1..=of {
            let path = folder.join(format!("part-{part}.jsonl"));
            let partition = format!("hash:{part}/{of}").parse().unwrap();
            let context = context(folder, Some(&path));
            items += runtime.block_on(planned.entry.run_part(&context, partition)).unwrap().items;
            parts.push(path);
        }
        prop_assert_eq!(items, words.len());
        let expected = judged(planned, whole.clone(), None);
        let report = merged(planned, folder, &parts).unwrap();
        prop_assert_eq!(&judged(planned, report, Some(&whole)), &expected);
        let by = shuffle.index(parts.len());
        parts.rotate_left(by);
        parts.reverse();
        let report = merged(planned, folder, &parts).unwrap();
        prop_assert_eq!(&judged(planned, report, Some(&whole)), &expected);

        // Without one of them there is no report.
        let gone = parts.remove(by);
        prop_assert!(merged(planned, folder, &parts).is_err());
        parts.extend([gone.clone(), gone]);
        let error = merged(planned, folder, &parts).unwrap_err();
        prop_assert!(error.contains("duplicate part"), "{}", error);
    }
}
