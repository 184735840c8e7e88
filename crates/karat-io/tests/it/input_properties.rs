//! No bytes make a reader panic, and what is read was in the text.

use std::io::Write;

use karat_io::input::{
    Format, InputError, Limits, Lines, decode, parse_bytes, parse_json, parse_json_lines,
    parse_toml, parse_yaml,
};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct Typed {
    id: String,
    count: Option<u8>,
    share: Option<f32>,
    list: Option<Vec<Typed>>,
    #[serde(default)]
    choice: Choice,
}

#[derive(Debug, Default, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[allow(dead_code)]
enum Choice {
    #[default]
    None,
    Some {
        value: Value,
    },
}

/// Pieces that the formats give a meaning to, in any order.
fn near_syntax() -> impl Strategy<Value = String> {
    const PIECES: &str = "{ } [ ] : , \" ' \\ ␤ ␠ - ? &a *a <<: !!str !x | > # ---␤ ... %YAML␠1.2␤ = . [[ \
        ]] \"\"\" \'\'\' id count choice kind some value 1 -0 1e9 0x true null nan 2020-01-01 \\u \
        \\ud800 \u{feff} \u{0} é \t \r␤ ~ @ `";
    // Shown signs are for the space and the newline, which separate the pieces here.
    let pieces: Vec<String> =
        PIECES.split(' ').map(|piece| piece.replace('␠', " ").replace('␤', "\n")).collect();
    prop::collection::vec(prop::sample::select(pieces), 0..60).prop_map(|all| all.concat())
}

fn every_reader(bytes: &[u8]) {
    let _ = parse_json::<Value>("a.json", bytes).map(drop);
    let _ = parse_json::<Typed>("a.json", bytes).map(drop);
    let _ = parse_json_lines::<Vec<Value>>("a.jsonl", bytes).map(drop);
    let _ = parse_json_lines::<Typed>("a.jsonl", bytes).map(drop);
    let _ = parse_yaml::<Value>("a.yaml", bytes).map(drop);
    let _ = parse_yaml::<Typed>("a.yaml", bytes).map(drop);
    let _ = parse_toml::<Value>("a.toml", bytes).map(drop);
    let _ = parse_toml::<Typed>("a.toml", bytes).map(drop);
    for line in Lines::of("a", bytes, &Limits::default()).unwrap() {
        let _ = line.map(drop);
    }
}

/// Every message is one line of harmless text that begins with the name of the file.
fn well_said(result: Result<Value, InputError>) -> Result<(), TestCaseError> {
    if let Err(error) = result {
        let message = error.to_string();
        prop_assert!(message.starts_with("name"), "{message}");
        prop_assert!(!message.chars().any(char::is_control), "{message:?}");
        prop_assert!(message.len() < 2000);
    }
    Ok(())
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((".{0,6}", inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic_and_errors_are_well_said(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        every_reader(&bytes);
        for format in [Format::Json, Format::JsonLines, Format::Yaml, Format::Toml] {
            well_said(parse_bytes("name", &bytes, format, &Limits::default()))?;
        }
    }

    #[test]
    fn almost_right_text_never_panics_and_errors_are_well_said(text in near_syntax()) {
        every_reader(text.as_bytes());
        for format in [Format::Json, Format::JsonLines, Format::Yaml, Format::Toml] {
            well_said(parse_bytes("name", text.as_bytes(), format, &Limits::default()))?;
        }
    }

    #[test]
    fn damaged_compression_never_panics(
        text in ".{0,200}",
        zstandard in any::<bool>(),
        at in any::<prop::sample::Index>(),
        to in any::<u8>(),
        keep in any::<prop::sample::Index>(),
    ) {
        let mut packed = if zstandard {
            zstd::stream::encode_all(text.as_bytes(), 3).unwrap()
        } else {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Default::default());
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        };
        let unpacked = decode("a", &packed, &Limits::default()).unwrap();
        prop_assert_eq!(&unpacked, text.strip_prefix('\u{feff}').unwrap_or(&text));
        let at = at.index(packed.len());
        packed[at] = to;
        let kept = keep.index(packed.len()) + 1;
        let limits = Limits { bytes: 1 << 20, ..Limits::default() };
        let _ = decode("a", &packed[..kept], &limits).map(drop);
    }

    #[test]
    fn json_is_read_back_as_it_was_written(value in any_json()) {
        let text = serde_json::to_string_pretty(&value).unwrap();
        let read: Value = parse_json("a.json", text.as_bytes()).unwrap();
        prop_assert_eq!(serde_json::to_string_pretty(&read).unwrap(), text);
    }

    #[test]
    fn lines_read_are_the_lines_of_the_text(text in "[a-c\n]{0,100}", buffer in 1_usize..8) {
        let reader = std::io::BufReader::with_capacity(buffer, text.as_bytes());
        let read: Vec<String> = Lines::of("a", reader, &Limits::default())
            .unwrap()
            .map(|line| line.unwrap().1)
            .collect();
        prop_assert_eq!(read, text.lines().collect::<Vec<_>>());
    }
}
