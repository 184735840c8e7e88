//! The run journal on disk. In a process of its own: a test that starts programs at the same moment
//! would hand them the lock for an instant.

use std::collections::BTreeMap;

use karat_core::journal::{Entry, Identity, Journal, JournalError, Outcome, SCHEMA};
use karat_core::report::{DatasetRef, Kind, SystemRef};

fn identity() -> Identity {
    Identity {
        schema: SCHEMA.to_owned(),
        kind: Kind::Ranking,
        name: "fake".to_owned(),
        dataset: DatasetRef {
            id: "tools".to_owned(),
            version: "v1".to_owned(),
            digest: "sha256:00".to_owned(),
        },
        system: SystemRef {
            kind: "command".to_owned(),
            name: "fake".to_owned(),
            version: None,
            settings: BTreeMap::new(),
        },
        runs: 2,
        seed: 7,
        part: None,
    }
}

fn entry(run: u32, id: &str) -> Entry<u32> {
    Entry { run, id: id.to_owned(), nanos: 5, outcome: Outcome::Answer(run + 1) }
}

#[test]
fn a_torn_last_line_is_cut_off_and_the_rest_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/journal.jsonl");
    let mut journal = Journal::create(&path, &identity()).unwrap();
    journal.append(&entry(0, "a")).unwrap();
    journal.append(&entry(1, "a")).unwrap();
    drop(journal);
    let whole = std::fs::read(&path).unwrap();

    // Whatever byte the kill fell on, resuming gives a prefix of the answers, never an error.
    for cut in 0..=whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let (mut journal, entries) = Journal::resume::<u32>(&path, &identity()).unwrap();
        let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(entries.len(), lines.saturating_sub(1), "cut at {cut}");
        journal.append(&entry(0, "b")).unwrap();
        drop(journal);
        let (_, entries) = Journal::resume::<u32>(&path, &identity()).unwrap();
        assert_eq!(entries.len(), lines.saturating_sub(1) + 1, "appended after cut {cut}");
    }
}

#[test]
fn a_journal_of_another_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    drop(Journal::create(&path, &identity()).unwrap());
    let mut others = vec![identity(), identity(), identity(), identity()];
    others[0].seed = 8;
    others[1].dataset.digest = "sha256:01".to_owned();
    others[2].system.settings.insert("limit".to_owned(), "5".to_owned());
    others[3].runs = 3;
    for other in others {
        let error = Journal::resume::<u32>(&path, &other).err().unwrap();
        assert!(matches!(error, JournalError::OtherRun { .. }), "{error}");
    }
}

#[test]
fn a_broken_line_in_the_middle_names_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let mut journal = Journal::create(&path, &identity()).unwrap();
    journal.append(&entry(0, "a")).unwrap();
    drop(journal);
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("not a line\n");
    std::fs::write(&path, text).unwrap();
    let error = Journal::resume::<u32>(&path, &identity()).err().unwrap().to_string();
    assert!(error.contains("journal.jsonl:3:"), "{error}");
}

#[test]
fn what_failed_is_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let mut journal = Journal::create(&path, &identity()).unwrap();
    journal.append(&entry(0, "a")).unwrap();
    let (class, message) = ("timeout".to_owned(), "too slow".to_owned());
    let failure: Outcome<u32> = Outcome::Failure { class, message };
    journal.append(&Entry { run: 0, id: "b".to_owned(), nanos: 5, outcome: failure }).unwrap();
    drop(journal);
    let (mut journal, entries) = Journal::resume::<u32>(&path, &identity()).unwrap();
    assert_eq!(entries, [entry(0, "a")]);
    // The answer of the second attempt counts.
    journal.append(&entry(0, "b")).unwrap();
    drop(journal);
    let (_, entries) = Journal::resume::<u32>(&path, &identity()).unwrap();
    assert_eq!(entries, [entry(0, "a"), entry(0, "b")]);
}

#[test]
fn every_flipped_bit_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let mut journal = Journal::create(&path, &identity()).unwrap();
    journal.append(&entry(0, "a")).unwrap();
    journal.append(&entry(1, "b")).unwrap();
    drop(journal);
    let whole = std::fs::read(&path).unwrap();
    let (_, expected) = Journal::resume::<u32>(&path, &identity()).unwrap();
    for (at, bit) in (0..whole.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << bit;
        let line = 1 + whole[..at].iter().filter(|byte| **byte == b'\n').count();
        std::fs::write(&path, &damaged).unwrap();
        match Journal::resume::<u32>(&path, &identity()) {
            // Only the end of the last line can be lost, and that looks like a kill.
            Ok((_, entries)) => {
                assert_eq!(at, whole.len() - 1, "bit {bit}");
                assert_eq!(entries, expected[..1]);
            }
            Err(error) => {
                let text = error.to_string();
                let named = text.contains(&format!("journal.jsonl:{line}:"));
                assert!(named || text.contains("another run"), "byte {at}: {text}");
            }
        }
    }
}

#[test]
fn a_journal_of_an_earlier_version_is_refused_with_its_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    std::fs::write(&path, "{\"schema\":\"karat.journal/2\",\"kind\":\"ranking\"}\n").unwrap();
    let error = Journal::resume::<u32>(&path, &identity()).err().unwrap().to_string();
    assert!(error.contains("karat.journal/2 there") && error.contains("--resume"), "{error}");
}

#[test]
fn two_runs_cannot_write_to_one_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let first = Journal::create(&path, &identity()).unwrap();
    assert!(matches!(Journal::create(&path, &identity()), Err(JournalError::InUse { .. })));
    drop(first);
    assert!(Journal::create(&path, &identity()).is_ok());
}
