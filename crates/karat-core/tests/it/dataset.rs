//! A dataset is what its manifest says, byte for byte, in a folder or inside the program.

use std::fs;
use std::path::{Path, PathBuf};

use karat_core::dataset::{
    BadPath, Dataset, DatasetError, DatasetFiles, Digest, FilePath, IfFrozen, MANIFEST, Manifest,
    Meta, Version,
};
use karat_io::input::{InputError, Limits};
use proptest::prelude::*;
use serde_json::{Value, json};

fn meta() -> Meta {
    Meta {
        name: "tools".into(),
        version: Version::new(1),
        licence: "CC0-1.0".into(),
        made: "written by hand\nfor this test".into(),
    }
}

fn path(text: &str) -> FilePath {
    text.parse().unwrap()
}

/// A folder with two files, frozen.
fn frozen() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("v1");
    fs::create_dir_all(folder.join("more")).unwrap();
    fs::write(folder.join("corpus.json"), "{\"tools\": []}").unwrap();
    fs::write(folder.join("more/golden.yaml"), "queries: [a, b]\n").unwrap();
    Manifest::freeze(&folder, meta(), IfFrozen::Refuse).unwrap();
    (place, folder)
}

#[test]
fn a_frozen_folder_is_a_dataset() {
    let (_place, folder) = frozen();
    let dataset = Dataset::open(&folder).unwrap();
    assert_eq!((dataset.id(), dataset.version().to_string().as_str()), ("tools", "v1"));
    assert_eq!(dataset.manifest().licence, "CC0-1.0");
    let golden: Value = dataset.load(&path("more/golden.yaml"), &Limits::default()).unwrap();
    assert_eq!(golden, json!({"queries": ["a", "b"]}));
    let error = dataset.load::<Value>(&path("nothing.json"), &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "dataset tools v1 has no file `nothing.json`");
}

#[test]
fn the_manifest_is_the_same_every_time_and_readable() {
    let (_place, folder) = frozen();
    let text = fs::read_to_string(folder.join(MANIFEST)).unwrap();
    let corpus = Digest::of(b"{\"tools\": []}");
    let golden = Digest::of(b"queries: [a, b]\n");
    let expected = format!(
        "name = \"tools\"\nversion = \"v1\"\nlicence = \"CC0-1.0\"\n\
         made = \"\"\"\nwritten by hand\nfor this test\"\"\"\n\n[files]\n\
         \"corpus.json\" = \"{corpus}\"\n\"more/golden.yaml\" = \"{golden}\"\n"
    );
    assert_eq!(text, expected);
    Manifest::freeze(&folder, meta(), IfFrozen::Refuse).unwrap();
    assert_eq!(fs::read_to_string(folder.join(MANIFEST)).unwrap(), expected);
}

#[test]
fn the_digest_is_made_as_documented() {
    let (_place, folder) = frozen();
    let corpus = Digest::of(b"{\"tools\": []}");
    let golden = Digest::of(b"queries: [a, b]\n");
    let lines = format!("corpus.json\0{corpus}\nmore/golden.yaml\0{golden}\n");
    let dataset = Dataset::open(&folder).unwrap();
    assert_eq!(dataset.digest(), Digest::of(lines.as_bytes()));

    // Words do not count, files do.
    let other = Manifest { licence: "MIT".into(), ..dataset.manifest().clone() };
    assert_eq!(other.digest(), dataset.digest());
    let mut other = dataset.manifest().clone();
    other.files.insert(path("z"), corpus);
    assert_ne!(other.digest(), dataset.digest());
}

#[test]
fn a_changed_file_is_named_with_both_digests() {
    let (_place, folder) = frozen();
    let changed = folder.join("corpus.json");
    fs::write(&changed, "{\"tools\": [] }").unwrap();
    let error = Dataset::open(&folder).unwrap_err();
    let DatasetError::Changed { file, expected, found, next } = &error else { panic!("{error:?}") };
    assert_eq!(file, &changed);
    assert_eq!(expected, &Digest::of(b"{\"tools\": []}"));
    assert_eq!(found, &Digest::of(b"{\"tools\": [] }"));
    assert_eq!(next, &Version::new(2));
    let message = error.to_string();
    assert!(message.contains("restore it, or make v2"), "{message}");
    assert!(message.contains(&expected.to_string()) && message.contains(&found.to_string()));
}

#[test]
fn missing_and_unlisted_files_are_all_named_at_once() {
    let (_place, folder) = frozen();
    fs::remove_file(folder.join("corpus.json")).unwrap();
    let error = Dataset::open(&folder).unwrap_err();
    assert!(matches!(&error, DatasetError::Missing { .. }), "{error:?}");
    fs::write(folder.join("more/.hidden"), "").unwrap();
    fs::write(folder.join("more/golden.yaml"), "").unwrap();
    let error = Dataset::open(&folder).unwrap_err();
    let DatasetError::Several(problems) = &error else { panic!("{error:?}") };
    let [missing, changed, unlisted] = problems.as_slice() else { panic!("{error}") };
    assert!(matches!(missing, DatasetError::Missing { .. }));
    assert!(matches!(changed, DatasetError::Changed { .. }));
    assert!(
        matches!(unlisted, DatasetError::Unlisted { file, .. } if file.ends_with("more/.hidden"))
    );
    assert!(error.to_string().contains("remove it, or make v2"), "{error}");
}

#[test]
fn files_that_systems_leave_behind_are_not_of_the_dataset() {
    let (_place, folder) = frozen();
    for name in [".DS_Store", "more/Thumbs.db", "more/desktop.ini"] {
        fs::write(folder.join(name), "x").unwrap();
    }
    let dataset = Dataset::open(&folder).unwrap();
    assert_eq!(dataset.manifest().files.len(), 2);
    assert_eq!(Manifest::freeze(&folder, meta(), IfFrozen::Refuse).unwrap().files.len(), 2);
    // Any other file could be one that was forgotten.
    fs::write(folder.join("more/notes.db"), "x").unwrap();
    assert!(matches!(Dataset::open(&folder), Err(DatasetError::Unlisted { .. })));
}

#[test]
fn a_file_changed_after_opening_is_not_read() {
    let (_place, folder) = frozen();
    let dataset = Dataset::open(&folder).unwrap();
    fs::write(folder.join("corpus.json"), "{\"tools\": [1]}").unwrap();
    let error = dataset.load::<Value>(&path("corpus.json"), &Limits::default()).unwrap_err();
    assert!(matches!(error, DatasetError::Changed { .. }), "{error:?}");
    fs::remove_file(folder.join("corpus.json")).unwrap();
    let error = dataset.load::<Value>(&path("corpus.json"), &Limits::default()).unwrap_err();
    assert!(matches!(error, DatasetError::Missing { .. }), "{error:?}");
}

#[test]
fn a_frozen_dataset_changes_only_by_force() {
    let (_place, folder) = frozen();
    let before = fs::read(folder.join(MANIFEST)).unwrap();
    fs::write(folder.join("corpus.json"), "{}").unwrap();
    let error = Manifest::freeze(&folder, meta(), IfFrozen::Refuse).unwrap_err();
    assert!(matches!(&error, DatasetError::Frozen { .. }), "{error:?}");
    assert!(error.to_string().ends_with("make v2"), "{error}");
    assert_eq!(fs::read(folder.join(MANIFEST)).unwrap(), before, "nothing was written");

    // The words may be reworded while the files are the same.
    fs::write(folder.join("corpus.json"), "{\"tools\": []}").unwrap();
    let reworded = Meta { made: "better said".into(), ..meta() };
    Manifest::freeze(&folder, reworded, IfFrozen::Refuse).unwrap();
    assert_eq!(Manifest::load(&folder).unwrap().made, "better said");

    fs::write(folder.join("new.json"), "{}").unwrap();
    assert!(Manifest::freeze(&folder, meta(), IfFrozen::Refuse).is_err());
    Manifest::freeze(&folder, meta(), IfFrozen::Replace).unwrap();
    assert!(Dataset::open(&folder).is_ok());

    // A manifest that cannot be read is not taken for absent.
    fs::write(folder.join(MANIFEST), "name = ").unwrap();
    assert!(Manifest::freeze(&folder, meta(), IfFrozen::Refuse).is_err());
    Manifest::freeze(&folder, meta(), IfFrozen::Replace).unwrap();
}

#[test]
fn what_cannot_be_frozen_is_said() {
    let place = tempfile::tempdir().unwrap();
    let freeze = |meta| Manifest::freeze(place.path(), meta, IfFrozen::Refuse).unwrap_err();
    assert!(matches!(freeze(meta()), DatasetError::Empty { .. }));
    fs::write(place.path().join("a.json"), "{}").unwrap();
    for (bad, key) in [
        (Meta { name: "Tools".into(), ..meta() }, "name"),
        (Meta { name: "../tools".into(), ..meta() }, "name"),
        (Meta { name: String::new(), ..meta() }, "name"),
        (Meta { licence: " ".into(), ..meta() }, "licence"),
        (Meta { made: String::new(), ..meta() }, "made"),
    ] {
        let error = freeze(bad);
        assert!(
            matches!(&error, DatasetError::Input(InputError::Invalid { place, .. }) if place == key),
            "{error:?}"
        );
    }
    let error = Manifest::freeze(&place.path().join("none"), meta(), IfFrozen::Refuse).unwrap_err();
    assert!(matches!(error, DatasetError::Io { .. }), "{error:?}");
    assert!(!place.path().join(MANIFEST).exists());
    let error = Dataset::open(place.path()).unwrap_err();
    assert!(matches!(error, DatasetError::NoManifest { .. }), "{error:?}");
}

#[cfg(unix)]
#[test]
fn links_and_pipes_are_not_data() {
    use std::os::unix::fs::symlink;
    let (place, folder) = frozen();
    let outside = place.path().join("outside.json");
    fs::write(&outside, "{\"tools\": []}").unwrap();

    // A link to the same bytes, inside or outside, is still refused.
    let file = folder.join("corpus.json");
    fs::remove_file(&file).unwrap();
    symlink(&outside, &file).unwrap();
    let error = Dataset::open(&folder).unwrap_err();
    assert!(matches!(&error, DatasetError::NotPlain { file: named } if named == &file), "{error}");
    assert!(Manifest::freeze(&folder, meta(), IfFrozen::Replace).is_err());
    fs::remove_file(&file).unwrap();
    fs::write(&file, "{\"tools\": []}").unwrap();
    let dataset = Dataset::open(&folder).unwrap();

    // A folder replaced by a link, after opening.
    fs::rename(folder.join("more"), place.path().join("moved")).unwrap();
    symlink(place.path().join("moved"), folder.join("more")).unwrap();
    let error = dataset.bytes(&path("more/golden.yaml"), &Limits::default()).unwrap_err();
    assert!(matches!(error, DatasetError::NotPlain { .. }), "{error:?}");
    assert!(Dataset::open(&folder).is_err());
    fs::remove_file(folder.join("more")).unwrap();
    fs::rename(place.path().join("moved"), folder.join("more")).unwrap();

    // A link that leads in a circle does not keep us walking, a pipe does not keep us waiting.
    symlink(&folder, folder.join("more/circle")).unwrap();
    assert!(matches!(Dataset::open(&folder), Err(DatasetError::NotPlain { .. })));
    fs::remove_file(folder.join("more/circle")).unwrap();
    let pipe = folder.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(matches!(Dataset::open(&folder), Err(DatasetError::NotPlain { .. })));
}

#[test]
fn paths_cannot_leave_the_folder() {
    for (bad, reason) in [
        ("../secret", BadPath::Dots),
        ("a/../../secret", BadPath::Dots),
        ("./a", BadPath::Dots),
        ("/etc/passwd", BadPath::Absolute),
        ("a//b", BadPath::EmptyPart),
        ("a/", BadPath::EmptyPart),
        ("", BadPath::EmptyPart),
        ("a\\b", BadPath::Character),
        ("C:/a", BadPath::Character),
        ("a\u{0}b", BadPath::Character),
        ("a\u{202e}b", BadPath::Character),
        ("manifest.toml", BadPath::Manifest),
    ] {
        assert_eq!(bad.parse::<FilePath>(), Err(reason), "{bad:?}");
    }
    let digest = Digest::of(b"");
    let manifest = format!(
        "name = 'a'\nversion = 'v1'\nlicence = 'MIT'\nmade = 'x'\n[files]\n'../secret' = '{digest}'"
    );
    let error = Manifest::parse("m.toml", manifest.as_bytes()).unwrap_err();
    assert!(
        matches!(&error, DatasetError::Input(InputError::Mismatch { line: 6, .. })),
        "{error:?}"
    );
    assert!(error.to_string().contains("cannot leave the folder"), "{error}");
}

#[test]
fn a_wrong_manifest_names_key_and_line() {
    let digest = Digest::of(b"");
    let good = format!(
        "name = 'a'\nversion = 'v1'\nlicence = 'MIT'\nmade = 'x'\n[files]\n'a' = '{digest}'\n"
    );
    assert!(Manifest::parse("m.toml", good.as_bytes()).is_ok());
    for (from, to, message) in [
        ("licence", "license", "m.toml:3: unknown key `license`; did you mean `licence`?"),
        ("'v1'", "'1'", "not a version"),
        ("'v1'", "'v0'", "not a version"),
        ("'v1'", "'v01'", "not a version"),
        ("'v1'", "'v+1'", "not a version"),
        ("sha256:", "sha1:", "not a digest"),
        ("'a' = ", "# ", "m.toml: files: list at least one file"),
        ("[files]", "", "m.toml:6: unknown key `a`"),
        ("made = 'x'\n", "", "missing key `made`"),
        ("[files]", "[files]\n'a' = ''", "m.toml:7: the key `a` is given twice"),
    ] {
        let error = Manifest::parse("m.toml", good.replace(from, to).as_bytes()).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
}

static EMBEDDED: &[(&str, &[u8])] = &[
    (
        "manifest.toml",
        b"name = 'small'\nversion = 'v3'\nlicence = 'CC0-1.0'\nmade = 'by hand'\n[files]\n\
          'abc.jsonl' = 'sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'\n",
    ),
    ("abc.jsonl", b"abc"),
];
static CHANGED: &[(&str, &[u8])] = &[EMBEDDED[0], ("abc.jsonl", b"abd")];
static TOO_MANY: &[(&str, &[u8])] = &[EMBEDDED[0], EMBEDDED[1], ("more", b"")];
static TOO_FEW: &[(&str, &[u8])] = &[EMBEDDED[0]];
static NO_MANIFEST: &[(&str, &[u8])] = &[EMBEDDED[1]];

#[test]
fn an_embedded_dataset_is_verified_like_a_folder() {
    let dataset = Dataset::embedded("small", EMBEDDED).unwrap();
    assert_eq!((dataset.id(), dataset.version()), ("small", Version::new(3)));
    assert_eq!(dataset.bytes(&path("abc.jsonl"), &Limits::default()).unwrap(), b"abc");
    let error = dataset.load::<Vec<Value>>(&path("abc.jsonl"), &Limits::default()).unwrap_err();
    assert!(error.to_string().starts_with("embedded/small/abc.jsonl:1:1: "), "{error}");

    let error = |files| Dataset::embedded("small", files).unwrap_err();
    assert!(matches!(error(CHANGED), DatasetError::Changed { .. }));
    assert!(matches!(error(TOO_MANY), DatasetError::Unlisted { .. }));
    assert!(matches!(error(TOO_FEW), DatasetError::Missing { .. }));
    assert!(matches!(error(NO_MANIFEST), DatasetError::NoManifest { .. }));

    // The same files in a folder have the same digest.
    let place = tempfile::tempdir().unwrap();
    for (name, bytes) in EMBEDDED {
        fs::write(place.path().join(name), bytes).unwrap();
    }
    assert_eq!(Dataset::open(place.path()).unwrap().digest(), dataset.digest());
    let folder = DatasetFiles::Folder(place.path().to_owned());
    assert!(dataset.manifest().verify(&folder).is_ok());
}

/// A manifest in which a few characters are replaced. It is often still one.
fn damaged_manifest() -> impl Strategy<Value = Vec<u8>> {
    let digest = Digest::of(b"").to_string();
    let right = format!(
        "name = \"a\"\nversion = \"v1\"\nlicence = \"MIT\"\nmade = \"by hand\"\n\n[files]\n\"b/c\" = \"{digest}\"\n"
    );
    assert!(Manifest::parse("m.toml", right.as_bytes()).is_ok());
    (any::<prop::sample::Index>(), 0..3_usize, "[a-z0-9 ./\"\n\\\\é]{0,2}").prop_map(
        move |(at, length, other)| {
            let mut bytes = right.clone().into_bytes();
            let start = at.index(bytes.len());
            bytes.splice(start..bytes.len().min(start + length), other.into_bytes());
            bytes
        },
    )
}

proptest! {
    #[test]
    fn a_manifest_is_read_back_as_it_was_written(
        licence in "[^\\s]\\PC{0,20}",
        made in "[^\\s]\\PC{0,10}(\n\\PC{0,10}){0,3}",
        files in prop::collection::btree_map("[a-zé漢\"' ._-]{1,12}(/[a-z]{1,4}){0,2}", any::<u32>(), 1..8),
    ) {
        let files = files
            .into_iter()
            .filter_map(|(path, seed)| Some((path.parse().ok()?, Digest::of(&seed.to_le_bytes()))))
            .collect::<std::collections::BTreeMap<FilePath, Digest>>();
        prop_assume!(!files.is_empty());
        let manifest = Manifest { name: "a-1".into(), version: Version::new(7), licence, made, files };
        let read = Manifest::parse("m.toml", manifest.to_toml().as_bytes()).unwrap();
        prop_assert_eq!(read, manifest);
    }

    #[test]
    fn an_accepted_path_stays_below_the_folder(text in "[a-c./\\\\:~ ]{0,12}") {
        if let Ok(path) = text.parse::<FilePath>() {
            let joined = Path::new("/base").join(path.as_str());
            prop_assert!(joined.starts_with("/base"));
            prop_assert!(joined.components().count() > 2);
            prop_assert!(joined.components().skip(1).all(|part| matches!(part, std::path::Component::Normal(_))));
        }
    }

    #[test]
    fn any_bytes_are_a_manifest_that_can_be_written_or_an_error_with_the_file(
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            damaged_manifest(),
        ],
    ) {
        match Manifest::parse("m.toml", &bytes) {
            Ok(manifest) => {
                prop_assert!(!manifest.files.is_empty() && !manifest.licence.trim().is_empty());
                let again = Manifest::parse("m.toml", manifest.to_toml().as_bytes());
                prop_assert_eq!(again.unwrap(), manifest);
            }
            Err(error) => {
                let message = error.to_string();
                prop_assert!(message.starts_with("m.toml"), "{message}");
                prop_assert!(!message.chars().any(char::is_control), "{message:?}");
            }
        }
    }
}
