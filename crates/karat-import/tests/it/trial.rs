//! A trial on files that were not written here: `KARAT_IMPORT="name=path" cargo test -- --ignored`.

use crate::{check, find, import};

#[test]
#[ignore = "needs KARAT_IMPORT, the name of a benchmark and the path of a copy of it"]
fn a_copy_of_a_benchmark_is_imported_and_measured() {
    let given = std::env::var("KARAT_IMPORT").expect("KARAT_IMPORT");
    let (name, places) = given.split_once('=').expect("name=path");
    let places: Vec<_> = places.split(',').map(Into::into).collect();
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out");
    let imported = import(find(name).unwrap(), &places, &target, false).unwrap();
    println!("{:?} skipped {:?} notes {:?}", imported.counts, imported.skipped, imported.notes);
    for report in check(&target).unwrap() {
        println!("{}: {} items, {} runs", report.name, report.items.len(), report.runs);
        for metric in &report.metrics {
            let range = metric.interval.as_ref().map(|range| (range.low, range.high));
            println!("  {} {:?} {range:?} n {}", metric.id, metric.value, metric.n);
        }
        for slice in &report.slices {
            let first = &slice.metrics[0];
            println!("  {}={} {} {:?}", slice.by, slice.value, first.id, first.value);
        }
        println!("  {:?}", report.warnings);
    }
}
