//! Strings that programs often handle wrongly, and strings for a pattern or a format.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};

/// Unicode that is often handled wrongly, with a description.
pub(super) const UNICODE: &[(&str, &str)] = &[
    ("an emoji of several characters", "👩\u{200d}🔬"),
    ("a flag", "🇨🇭"),
    ("right-to-left text", "שלום"),
    ("a direction override", "a\u{202e}txt.exe"),
    ("unclosed isolates", "\u{2066}\u{2067}\u{2068}x"),
    ("a zero byte", "a\0b"),
    ("control characters", "\u{1}\u{8}\u{1b}[31mred\u{1b}[0m\u{7f}"),
    ("stacked combining marks", "Z\u{334}\u{321}\u{327}\u{357}\u{35a}\u{30e}\u{342}\u{301}"),
    ("a decomposed letter", "e\u{301}"),
    ("noncharacters", "\u{ffff}\u{fffe}"),
    ("the replacement character", "\u{fffd}"),
    ("an escaped lone surrogate", "\\ud800"),
    ("the highest character", "\u{10ffff}"),
    ("a byte order mark", "\u{feff}x"),
    ("invisible letters", "a\u{200b}\u{2060}\u{ad}b"),
    ("tag characters", "x\u{e0041}\u{e0042}"),
    ("a letter that changes length with its case", "İßŉ"),
    ("digits of another script", "٣٤"),
    ("several kinds of white space", "\u{a0}\u{2003}\u{3000}\t\r\n"),
    ("line separators", "a\u{2028}b\u{2029}c\u{85}d"),
];

/// Text that is dangerous inside a command, a query, a path, a page or a format.
pub(super) const INJECTION: &[(&str, &str)] = &[
    ("a quote", "'"),
    ("both quotes and a backslash", "\"'\\"),
    ("a query that is always true", "' OR '1'='1"),
    ("the end of a query", "x'); --"),
    ("a command after a semicolon", "; true"),
    ("a command substitution", "$(true)`true`"),
    ("a pipe", "| true && true"),
    ("an option", "--help"),
    ("a path with parent folders", "../../../../etc/hostname"),
    ("an absolute path", "/dev/null"),
    ("an encoded path", "..%2f..%2f%00"),
    ("a template", "{{7*7}}${7*7}<%= 7*7 %>"),
    ("markup", "<script>1</script><!--"),
    ("an entity", "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>"),
    ("a format", "%s%n%x{0}{}"),
    ("an operator", "{\"$gt\": \"\"}"),
    ("a filter", "*)(uid=*))(|(uid=*"),
    ("a header", "x\r\nSet-Cookie: a=b"),
    ("a wild card", "*?[a-z]{1,2}"),
    ("a pattern that backtracks", "(a+)+$"),
    ("a word that is a value", "null"),
    ("a number as text", "1e309"),
    ("the name of an object prototype", "__proto__"),
    ("JSON inside text", "{\"a\": [1, {\"b\": null}]}"),
    ("an address", "http://127.0.0.1:9/"),
];

/// A value of a format of JSON Schema.
pub(super) fn of_format(format: &str) -> Option<&'static str> {
    Some(match format {
        "date-time" => "2024-02-29T23:59:59Z",
        "date" => "2024-02-29",
        "time" => "23:59:59Z",
        "duration" => "P1DT12H",
        "email" | "idn-email" => "someone@karat.invalid",
        "hostname" | "idn-hostname" => "localhost",
        "ipv4" => "127.0.0.1",
        "ipv6" => "::1",
        "uri" | "iri" | "url" => "http://127.0.0.1:9/",
        "uri-reference" | "iri-reference" => "/a?b#c",
        "uri-template" => "/a/{b}",
        "uuid" => "123e4567-e89b-12d3-a456-426614174000",
        "json-pointer" => "/a/0",
        "relative-json-pointer" => "1/a",
        "regex" => "^a+$",
        "byte" => "YQ==",
        _ => return None,
    })
}

/// Different values of a format, by number.
pub(super) fn numbered_format(format: &str, number: usize) -> Option<String> {
    Some(match format {
        "email" | "idn-email" => format!("someone{number}@karat.invalid"),
        "uri" | "iri" | "url" => format!("http://127.0.0.1:9/{number}"),
        "uuid" => format!("123e4567-e89b-12d3-a456-{number:012}"),
        "date" => format!("{:04}-02-28", 2000 + number % 1000),
        "date-time" => format!("{:04}-02-28T23:59:59Z", 2000 + number % 1000),
        _ => return None,
    })
}

/// A number in letters, of at least this length.
pub(super) fn letters(number: usize, least: usize) -> String {
    let (mut text, mut rest) = (Vec::new(), number);
    while rest > 0 || text.len() < least {
        text.push(char::from(b"abcdefghijklmnopqrstuvwxyz"[rest % 26]));
        rest /= 26;
    }
    text.into_iter().rev().collect()
}

/// The longest string that is made.
const MAX_LENGTH: usize = 10_000;

/// A string that matches a regular expression, if that is a simple one. Unbounded repetitions are made
/// `repeats` times, and other numbers choose other characters.
pub(super) fn of_pattern(pattern: &str, repeats: u32, number: usize) -> Option<String> {
    let parsed = regex_syntax::Parser::new().parse(pattern).ok()?;
    let mut spelled = Spelled { text: String::new(), repeats, number };
    spelled.spell(&parsed)?;
    Some(spelled.text)
}

struct Spelled {
    text: String,
    repeats: u32,
    /// The rest of the number: every character class takes its share.
    number: usize,
}

impl Spelled {
    fn spell(&mut self, hir: &Hir) -> Option<()> {
        if self.text.len() > MAX_LENGTH {
            return None;
        }
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => self.text.push_str(std::str::from_utf8(&literal.0).ok()?),
            HirKind::Class(Class::Unicode(class)) => {
                let c = self.choose(class)?;
                self.text.push(c);
            }
            HirKind::Class(Class::Bytes(class)) => {
                self.text.push(char::from(class.iter().next()?.start()));
            }
            HirKind::Repetition(repetition) => {
                let most = repetition.max.unwrap_or(u32::MAX);
                for _ in 0..repetition.min.max(self.repeats).min(most) {
                    self.spell(&repetition.sub)?;
                }
            }
            HirKind::Capture(capture) => self.spell(&capture.sub)?,
            HirKind::Concat(parts) => {
                for part in parts {
                    self.spell(part)?;
                }
            }
            HirKind::Alternation(ways) => self.spell(ways.first()?)?,
        }
        Some(())
    }

    /// A letter or digit if there is one: the ends of ranges are often unusual.
    fn choose(&mut self, class: &ClassUnicode) -> Option<char> {
        let has = |c: &char| class.iter().any(|range| (range.start()..=range.end()).contains(c));
        let plain: Vec<char> = ['a', 'A', '1', '-']
            .into_iter()
            .chain('b'..='z')
            .chain('B'..='Z')
            .chain('0'..='9')
            .filter(has)
            .collect();
        if plain.is_empty() {
            return class.iter().next().map(ClassUnicodeRange::start);
        }
        let chosen = plain.get(self.number % plain.len()).copied();
        self.number /= plain.len();
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_for_a_pattern_matches_it() {
        for pattern in [
            "^[a-z]{3}-\\d{4}$",
            "^(cat|dog)s?$",
            "^[A-Z][a-zA-Z0-9_.-]*$",
            "a{2,5}b+c*",
            "^\\p{L}+$",
            "^#[0-9a-f]{6}$",
        ] {
            for (repeats, number) in [(1, 0), (3, 0), (1, 1), (2, 77)] {
                let text = of_pattern(pattern, repeats, number).unwrap();
                assert!(regex::Regex::new(pattern).unwrap().is_match(&text), "{pattern}: {text}");
            }
        }
        assert_eq!(of_pattern("(", 1, 0), None);
        assert_eq!(of_pattern("a{100000}", 1, 0), None);
    }

    #[test]
    fn different_numbers_give_different_texts() {
        let many = |of: &dyn Fn(usize) -> String| {
            (0..300).map(of).collect::<std::collections::HashSet<String>>().len()
        };
        assert_eq!(many(&|number| letters(number, 1)), 300);
        assert_eq!(many(&|number| of_pattern("^[A-Z]{2}$", 1, number).unwrap()), 300);
        assert_eq!(many(&|number| numbered_format("email", number).unwrap()), 300);
    }
}
