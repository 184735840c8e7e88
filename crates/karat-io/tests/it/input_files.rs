//! Unusual files: huge, endless, compressed, misnamed, truncated, binary. And atomic writing.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use karat_io::input::{
    Format, InputError, Limits, Lines, check_schema, decode, destination, lines, load, parse,
    parse_json, read_bytes, read_text, records, write_atomic,
};
use serde::Deserialize;
use serde_json::{Value, json};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn file(folder: &tempfile::TempDir, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    path
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn zstandard(content: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(content, 3).unwrap()
}

#[test]
fn a_sparse_file_of_two_gigabytes_is_refused_without_reading() {
    let folder = folder();
    let path = folder.path().join("huge.json");
    File::create(&path).unwrap().set_len(2 << 30).unwrap();
    let too_large = |error: &InputError| matches!(error, InputError::TooLarge { .. });
    let error = load::<Value>(&path, &Limits::default()).unwrap_err();
    assert!(too_large(&error), "{error}");
    assert!(error.to_string().contains("larger than the maximum of 256 MiB"), "{error}");
    assert!(too_large(&read_bytes(&path, &Limits::default()).unwrap_err()));
    assert!(too_large(&lines(&path, &Limits::default()).err().unwrap()));
    // If the file may have any length, the endless line is the error.
    let error = lines(&path, &Limits::streaming()).unwrap().next().unwrap().unwrap_err();
    assert!(matches!(error, InputError::LineTooLong { line: 1, .. }), "{error}");
}

#[cfg(unix)]
#[test]
fn an_endless_device_is_read_up_to_the_limit() {
    let limits = Limits { bytes: 1 << 20, line_bytes: 1 << 16, ..Limits::default() };
    let error = read_text(Path::new("/dev/zero"), &limits).unwrap_err();
    assert!(matches!(error, InputError::TooLarge { limit: 0x10_0000, .. }), "{error}");
    let error = lines(Path::new("/dev/zero"), &limits).unwrap().next().unwrap().unwrap_err();
    assert!(matches!(error, InputError::LineTooLong { limit: 0x1_0000, .. }), "{error}");
    assert_eq!(read_text(Path::new("/dev/null"), &limits).unwrap(), "");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_like_a_file() {
    let folder = folder();
    let path = folder.path().join("pipe.json");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let written = |content: Vec<u8>, limits: Limits| {
        let (to, from) = (path.clone(), path.clone());
        // The reader may stop early, which is not an error of the writer.
        let writer = std::thread::spawn(move || fs::write(to, content).is_ok());
        let value = load::<Value>(&from, &limits);
        writer.join().unwrap();
        value
    };
    assert_eq!(written(b"{\"a\": 1}".to_vec(), Limits::default()).unwrap(), json!({"a": 1}));
    let limits = Limits { bytes: 1000, ..Limits::default() };
    let error = written(vec![b' '; 1_000_000], limits).unwrap_err();
    assert!(matches!(error, InputError::TooLarge { .. }), "{error}");
}

#[test]
fn the_limit_is_exact() {
    let folder = folder();
    let path = file(&folder, "a.json", "[1, 2]");
    let limits = |bytes| Limits { bytes, ..Limits::default() };
    assert_eq!(read_text(&path, &limits(6)).unwrap(), "[1, 2]");
    assert!(matches!(read_text(&path, &limits(5)), Err(InputError::TooLarge { limit: 5, .. })));
    let packed = file(&folder, "b.json.gz", gzip(b"[1,      2]"));
    assert_eq!(read_bytes(&packed, &limits(1000)).unwrap(), b"[1,      2]");
    let text = "x".repeat(1000);
    let packed = file(&folder, "c.json.zst", zstandard(text.as_bytes()));
    assert_eq!(read_text(&packed, &limits(1000)).unwrap(), text);
    assert!(matches!(read_text(&packed, &limits(999)), Err(InputError::TooLarge { .. })));
}

#[test]
fn a_bomb_of_either_compression_stops_at_the_limit() {
    let zeros = vec![b' '; 64 << 20];
    let limits = Limits { bytes: 1 << 20, line_bytes: 1 << 16, ..Limits::default() };
    for bomb in [gzip(&zeros), zstandard(&zeros)] {
        assert!(bomb.len() < 100_000, "{} bytes", bomb.len());
        let error = decode("bomb", &bomb, &limits).unwrap_err();
        assert!(matches!(error, InputError::TooLarge { limit: 0x10_0000, .. }), "{error}");
        let error = Lines::of("bomb", bomb.as_slice(), &limits).unwrap().next().unwrap();
        assert!(matches!(error, Err(InputError::LineTooLong { .. })), "{error:?}");
    }
    // Many small members add up.
    let members = gzip(&[b' '; 100_000]).repeat(20);
    assert!(matches!(decode("bomb", &members, &limits), Err(InputError::TooLarge { .. })));
}

/// The text of the next test, packed by `xz --check=crc32`.
const XZ: &[u8] = &[
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x01, 0x69, 0x22, 0xde, 0x36, 0x02, 0x00, 0x21, 0x01,
    0x1c, 0x00, 0x00, 0x00, 0x10, 0xcf, 0x58, 0xcc, 0x01, 0x00, 0x0f, 0x7b, 0x22, 0x61, 0x22, 0x3a,
    0x20, 0x5b, 0x31, 0x2c, 0x20, 0x32, 0x2c, 0x20, 0x33, 0x5d, 0x7d, 0x00, 0xca, 0xc4, 0xd0, 0x00,
    0x00, 0x01, 0x24, 0x10, 0xe9, 0x44, 0xd9, 0xcc, 0x90, 0x42, 0x99, 0x0d, 0x01, 0x00, 0x00, 0x00,
    0x00, 0x01, 0x59, 0x5a,
];

#[test]
fn compression_is_recognized_by_content_and_damage_is_reported() {
    let folder = folder();
    let text = br#"{"a": [1, 2, 3]}"#;
    let names = ["a.json", "b.json.gz", "c.json.zst", "d.JSON.GZ", "e.json.zstd", "f.json.xz"];
    for (name, content) in [gzip(text), zstandard(text), XZ.to_vec(), text.to_vec()]
        .iter()
        .flat_map(|content| names.map(|name| (name, content)))
    {
        let path = file(&folder, name, content);
        assert_eq!(load::<Value>(&path, &Limits::default()).unwrap(), json!({"a": [1, 2, 3]}));
    }
    for whole in [gzip(text), zstandard(text)] {
        let damaged = |content: &[u8]| decode("a.json.gz", content, &Limits::default());
        let (cut, _) = whole.split_at(whole.len() - 5);
        let error = damaged(cut).unwrap_err();
        assert!(matches!(error, InputError::Compression { .. }), "{error:?}");
        let mut changed = whole.clone();
        changed[whole.len() / 2] ^= 0xFF;
        if let Ok(text_again) = damaged(&changed) {
            // A zstd frame may come without a checksum.
            assert_ne!(text_again.as_bytes(), text);
        }
    }
    // Only one layer is decompressed.
    assert!(matches!(
        decode("twice.gz", &gzip(&gzip(text)), &Limits::default()),
        Err(InputError::NotUtf8 { .. })
    ));
}

#[test]
fn missing_files_and_folders_are_reported() {
    let folder = folder();
    let missing = folder.path().join("missing.json");
    assert!(matches!(
        load::<Value>(&missing, &Limits::default()),
        Err(InputError::NotFound { path }) if path == missing
    ));
    for name in ["missing.txt", "no-extension", "missing.json/below.json"] {
        let error = load::<Value>(&folder.path().join(name), &Limits::default()).unwrap_err();
        assert!(matches!(error, InputError::NotFound { .. }), "{name}: {error}");
    }
    fs::create_dir(folder.path().join("folder.json")).unwrap();
    let error = load::<Value>(&folder.path().join("folder.json"), &Limits::default()).unwrap_err();
    assert!(matches!(error, InputError::IsFolder { .. }), "{error:?}");
    for name in ["a.txt", "json", "a.json.bak", "a.gz"] {
        let path = file(&folder, name, "{}");
        let error = load::<Value>(&path, &Limits::default()).unwrap_err();
        assert!(matches!(error, InputError::UnknownFormat { .. }), "{name}: {error}");
        assert!(error.to_string().contains(".jsonl"), "{error}");
    }
}

#[test]
fn formats_follow_the_extension() {
    let format = |name: &str| Format::of(Path::new(name));
    assert_eq!(format("a.json"), Some(Format::Json));
    assert_eq!(format("a.b.JSONL"), Some(Format::JsonLines));
    assert_eq!(format("a.ndjson.gz"), Some(Format::JsonLines));
    assert_eq!(format("dir.json/a.yml"), Some(Format::Yaml));
    assert_eq!(format("a.yaml.zst"), Some(Format::Yaml));
    assert_eq!(format("karat.toml"), Some(Format::Toml));
    assert_eq!(format("a.gz"), None);
    assert_eq!(format(".json"), None);
    assert_eq!(format(""), None);
}

#[test]
fn text_that_is_not_utf8_is_reported_with_line_and_byte() {
    let folder = folder();
    let path = file(&folder, "a.json", b"{\n\"a\":\n\"caf\xE9\"}");
    for error in [
        read_text(&path, &Limits::default()).unwrap_err(),
        lines(&path, &Limits::default()).unwrap().find_map(Result::err).unwrap(),
    ] {
        assert!(matches!(error, InputError::NotUtf8 { line: 3, column: 5, .. }), "{error:?}");
    }
    let utf16: Vec<u8> = "\u{feff}{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for error in [
        decode("a.json", &utf16, &Limits::default()).unwrap_err(),
        Lines::of("a.json", utf16.as_slice(), &Limits::default())
            .unwrap()
            .next()
            .unwrap()
            .unwrap_err(),
    ] {
        assert!(error.to_string().contains("looks like UTF-16"), "{error}");
    }
}

#[test]
fn a_byte_order_mark_is_not_data() {
    let marked = "\u{feff}{\"a\": 1}\n";
    assert_eq!(parse_json::<Value>("a.json", marked.as_bytes()).unwrap(), json!({"a": 1}));
    let first = Lines::of("a", marked.as_bytes(), &Limits::default()).unwrap().next();
    assert_eq!(first.unwrap().unwrap(), (1, "{\"a\": 1}".to_owned()));
}

#[test]
fn lines_have_their_numbers_in_any_compression() {
    let text = b"one\r\n\ntwo\nlast \xF0\x9F\x99\x82 without end";
    let expected = [(1, "one"), (2, ""), (3, "two"), (4, "last 🙂 without end")];
    for content in [text.to_vec(), gzip(text), zstandard(text)] {
        let mut lines = Lines::of("a.log", content.as_slice(), &Limits::default()).unwrap();
        let mut seen = Vec::new();
        while let Some((number, line)) = lines.next_line().unwrap() {
            seen.push((number, line.to_owned()));
        }
        assert_eq!(seen, expected.map(|(number, line)| (number, line.to_owned())));
        assert!(lines.next().is_none());
    }
}

#[test]
fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
    let limits = Limits { line_bytes: 5, ..Limits::default() };
    let read = |text: &str| {
        let lines = Lines::of("a", text.as_bytes(), &limits).unwrap();
        lines.map(|line| line.map(|(_, text)| text)).collect::<Result<Vec<_>, _>>()
    };
    assert_eq!(read("12345\n12345\r\n12345").unwrap(), ["12345"; 3]);
    for (text, number) in [("123456", 1), ("1\n123456\n", 2), ("123456\r\n", 1), ("12345\rx", 1)] {
        let error = read(text).unwrap_err();
        assert!(matches!(error, InputError::LineTooLong { line, .. } if line == number), "{error}");
    }
    // Nothing follows an error.
    let mut lines = Lines::of("a", &b"1234567\n1\n"[..], &limits).unwrap();
    assert!(lines.next().unwrap().is_err());
    assert!(lines.next().is_none());
    // The file is bounded, too.
    let limits = Limits { bytes: 10, ..Limits::default() };
    let error = Lines::of("a", &b"1234\n1234\n1234\n"[..], &limits).unwrap().find_map(Result::err);
    assert!(matches!(error, Some(InputError::TooLarge { limit: 10, .. })), "{error:?}");
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: u32,
}

#[test]
fn records_are_read_one_by_one_until_the_first_error() {
    let folder = folder();
    let path = file(&folder, "a.jsonl", "{\"id\": 1}\n\n{\"id\": 2}\n{\"di\": 3}\n{\"id\": 4}\n");
    let mut read = records::<Entry>(&path, &Limits::streaming()).unwrap();
    assert_eq!(read.next().unwrap().unwrap(), (1, Entry { id: 1 }));
    assert_eq!(read.next().unwrap().unwrap(), (3, Entry { id: 2 }));
    let error = read.next().unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("{}:4: unknown key `di`; did you mean `id`?", path.display())
    );
    assert!(read.next().is_none());
}

#[test]
fn a_file_of_a_later_version_is_reported_as_such() {
    let check = |found: Option<&str>| check_schema(Path::new("r.json"), found, "karat.report/2");
    assert!(check(Some("karat.report/2")).is_ok());
    assert!(check(Some("karat.report/1")).is_ok());
    let newer = check(Some("karat.report/3")).unwrap_err();
    assert!(matches!(newer, InputError::NewerSchema { .. }), "{newer}");
    assert!(newer.to_string().contains("update Karat"), "{newer}");
    for other in [Some("karat.check/1"), Some("x"), None] {
        let error = check(other).unwrap_err();
        assert!(matches!(error, InputError::Invalid { .. }), "{error}");
    }
    assert!(check_schema(Path::new("a"), Some("karat.report/-1"), "karat.report/1").is_err());
    assert!(
        check_schema(Path::new("a"), Some("karat.report/99999999999"), "karat.report/1").is_err()
    );
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let folder = folder();
    let path = folder.path().join("new/folders/report.json");
    write_atomic(&path, b"first").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"first");
    write_atomic(&path, b"second").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"second");
    let files: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(files.len(), 1, "no temporary file is left: {files:?}");

    let error = write_atomic(path.parent().unwrap(), b"third").unwrap_err();
    assert!(error.to_string().contains("cannot be written"), "{error}");
    let below_a_file = path.join("below.json");
    let error = write_atomic(&below_a_file, b"third").unwrap_err();
    assert!(error.to_string().contains("report.json"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"second");
}

#[cfg(unix)]
#[test]
#[cfg_attr(karat_portable, ignore = "needs permissions")]
fn writing_keeps_permissions_and_devices() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let path = file(&folder, "a.json", "old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    write_atomic(&path, b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);

    // A new file gets the usual permissions.
    let usual = file(&folder, "usual", "");
    let written = folder.path().join("written");
    write_atomic(&written, b"").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&usual), mode(&written));

    write_atomic(Path::new("/dev/null"), b"gone").unwrap();
    assert!(!fs::metadata("/dev/null").unwrap().is_file(), "the device is still a device");
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_a_link() {
    use karat_io::input::{create_folder, open_existing_for_writing, open_for_writing};
    use std::os::unix::fs::symlink;
    let folder = folder();
    let project = folder.path().join("above/project");
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join("karat.toml"), "").unwrap();
    let precious = file(&folder, "precious", "precious");
    let outside = folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&precious, project.join("link.json")).unwrap();
    symlink(folder.path().join("missing"), project.join("early.json")).unwrap();
    symlink(&outside, project.join("out")).unwrap();
    for name in
        ["link.json", "early.json", "out/report.json", "out/deep/report.json", "a/../link.json"]
    {
        let path = project.join(name);
        let errors = [
            write_atomic(&path, b"x").unwrap_err(),
            open_for_writing(&path).unwrap_err(),
            open_existing_for_writing(&path).unwrap_err(),
        ];
        for error in errors {
            let text = error.to_string();
            let link = error.path.file_name().unwrap().to_str().unwrap();
            assert!(text.contains("symbolic link") && name.contains(link), "{name}: {text}");
        }
    }
    assert!(create_folder(&project.join("out/deep")).is_err());
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert!(!folder.path().join("missing").exists());

    // Above the project a link is the user's own.
    symlink(folder.path().join("above"), folder.path().join("mine")).unwrap();
    write_atomic(&folder.path().join("mine/project/report.json"), b"x").unwrap();
    assert_eq!(fs::read(project.join("report.json")).unwrap(), b"x");
}

#[cfg(unix)]
#[test]
fn a_destination_is_the_file_that_would_be_written() {
    use std::os::unix::fs::symlink;
    let folder = folder();
    let root = folder.path().canonicalize().unwrap();
    let there = root.join("there");
    fs::write(&there, "").unwrap();
    symlink("there", root.join("link")).unwrap();
    symlink("link", root.join("chain")).unwrap();
    symlink("nowhere/yet", root.join("early")).unwrap();
    symlink("round", root.join("round")).unwrap();
    for (name, expected) in [
        ("there", "there"),
        ("chain", "there"),
        ("new/../link", "there"),
        ("new/./deep/../file", "new/file"),
        ("early", "nowhere/yet"),
        ("round", "round"),
    ] {
        assert_eq!(destination(&root.join(name)), root.join(expected), "{name}");
    }
    assert_eq!(destination(Path::new("/dev/null")), Path::new("/dev/null"));
}

#[test]
fn parsing_needs_no_file() {
    let value: Value = parse(Path::new("memory"), "a = 1", Format::Toml).unwrap();
    assert_eq!(value, json!({"a": 1}));
}
