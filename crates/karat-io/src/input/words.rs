//! The messages of serde as people would put them: no names of Rust types.

/// The words of serde's messages, and what they mean to a user.
const TYPES: [(&str, &str); 7] = [
    ("a sequence", "a list: [\"…\", \"…\"]"),
    ("a map", "an object"),
    ("a boolean", "true or false"),
    ("a string", "a text"),
    ("a borrowed string", "a text"),
    ("unit", "nothing"),
    ("path string", "a path: \"…\""),
];

/// The names of what was found.
const FOUND: [(&str, &str); 6] = [
    ("sequence", "a list"),
    ("map", "an object"),
    ("floating point ", "the number "),
    ("integer ", "the number "),
    ("string ", "the text "),
    ("boolean ", "the value "),
];

/// A message of serde without the names of types: `invalid type: map, expected a sequence` becomes
/// `found an object, expected a list`.
#[must_use]
pub fn plain(message: &str) -> String {
    let message = message.replacen("missing field", "missing key", 1);
    let Some((before, expected)) = message.split_once(", expected ") else { return message };
    let found = ["invalid type: ", "invalid value: "].iter().find_map(|start| {
        before.strip_prefix(start).map(|found| format!("found {}", shown(found)))
    });
    let found = found.unwrap_or_else(|| before.to_owned());
    // The place that serde_json adds stays as it is.
    let (wanted, place) = match expected.find(" at line ") {
        Some(at) => expected.split_at(at),
        None => (expected, ""),
    };
    format!("{found}, expected {}{place}", expected_words(wanted))
}

fn shown(found: &str) -> String {
    for (word, plain) in FOUND {
        if word.ends_with(' ') {
            if let Some(rest) = found.strip_prefix(word) {
                return format!("{plain}{rest}");
            }
        } else if found == word {
            return plain.to_owned();
        }
    }
    found.to_owned()
}

fn expected_words(wanted: &str) -> String {
    if let Some((_, plain)) = TYPES.iter().find(|(word, _)| *word == wanted) {
        return (*plain).to_owned();
    }
    let is_number = |kinds: &[&str]| kinds.contains(&wanted);
    match wanted {
        _ if wanted.starts_with("struct ") || wanted.starts_with("internally tagged enum ") => {
            "an object with keys".to_owned()
        }
        _ if wanted.starts_with("enum ") || wanted == "variant identifier" => {
            "one of the known names".to_owned()
        }
        _ if wanted.starts_with("tuple ") || wanted.starts_with("a tuple ") => "a list".to_owned(),
        _ if is_number(&["f32", "f64"]) => "a number".to_owned(),
        _ if is_number(&["u8", "u16", "u32", "u64", "usize"]) => {
            "a non-negative integer".to_owned()
        }
        _ if is_number(&["i8", "i16", "i32", "i64", "isize"]) => "an integer".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn types_are_named_as_people_name_them() {
        for (serde, people) in [
            (
                "invalid type: integer `3`, expected path string",
                "found the number `3`, expected a path: \"…\"",
            ),
            (
                "invalid type: map, expected a sequence",
                "found an object, expected a list: [\"…\", \"…\"]",
            ),
            (
                "invalid type: string \"x\", expected struct Rule at line 1 column 4",
                "found the text \"x\", expected an object with keys at line 1 column 4",
            ),
            ("invalid type: string \"a\", expected f64", "found the text \"a\", expected a number"),
            (
                "invalid value: integer `-1`, expected u32",
                "found the number `-1`, expected a non-negative integer",
            ),
            ("missing field `name`", "missing key `name`"),
            ("something else", "something else"),
        ] {
            assert_eq!(plain(serde), people);
        }
    }
}
