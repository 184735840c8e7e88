//! The strings that programs trip over, and a string for a pattern or a format.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Unicode that is handled wrongly more often than not, each with what it is.
pub(super) const UNICODE: &[(&str, &str)] = &[
    ("an emoji of several characters", "👩\u{200d}🔬"),
    ("a flag", "🇨🇭"),
    ("text that runs from right to left", "שלום"),
    ("an override of the reading direction", "a\u{202e}txt.exe"),
    ("isolates that are never closed", "\u{2066}\u{2067}\u{2068}x"),
    ("a zero byte", "a\0b"),
    ("control characters", "\u{1}\u{8}\u{1b}[31mred\u{1b}[0m\u{7f}"),
    ("a tower of combining marks", "Z\u{334}\u{321}\u{327}\u{357}\u{35a}\u{30e}\u{342}\u{301}"),
    ("a decomposed letter", "e\u{301}"),
    ("a character that is no character", "\u{ffff}\u{fffe}"),
    ("the replacement character", "\u{fffd}"),
    ("an escape of half a surrogate, as text", "\\ud800"),
    ("the highest character", "\u{10ffff}"),
    ("a byte order mark", "\u{feff}x"),
    ("invisible letters", "a\u{200b}\u{2060}\u{ad}b"),
    ("tag characters", "x\u{e0041}\u{e0042}"),
    ("a letter that changes length with its case", "İßŉ"),
    ("digits of another script", "٣٤"),
    ("white space of several kinds", "\u{a0}\u{2003}\u{3000}\t\r\n"),
    ("separators of lines", "a\u{2028}b\u{2029}c\u{85}d"),
];

/// Text that is dangerous where it is put into a command, a query, a path, a page or a format.
pub(super) const INJECTION: &[(&str, &str)] = &[
    ("a quote", "'"),
    ("both quotes and a backslash", "\"'\\"),
    ("a query that is always true", "' OR '1'='1"),
    ("the end of a query", "x'); --"),
    ("a command after a semicolon", "; true"),
    ("a command in the middle", "$(true)`true`"),
    ("a pipe", "| true && true"),
    ("an option", "--help"),
    ("a path upwards", "../../../../etc/hostname"),
    ("an absolute path", "/dev/null"),
    ("a path with escapes", "..%2f..%2f%00"),
    ("a template", "{{7*7}}${7*7}<%= 7*7 %>"),
    ("markup", "<script>1</script><!--"),
    ("an entity", "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>"),
    ("a format", "%s%n%x{0}{}"),
    ("an operator", "{\"$gt\": \"\"}"),
    ("a filter", "*)(uid=*))(|(uid=*"),
    ("a header", "x\r\nSet-Cookie: a=b"),
    ("a wild card", "*?[a-z]{1,2}"),
    ("a pattern that backtracks", "(a+)+$"),
    ("words that are values", "null"),
    ("a number as text", "1e309"),
    ("a name of an object's ancestor", "__proto__"),
    ("JSON within text", "{\"a\": [1, {\"b\": null}]}"),
    ("an address", "http://127.0.0.1:9/"),
];

/// A value of each format that the schema language knows.
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

/// How often a repetition without an end is repeated, and how long a string may become.
const REPEATS: u32 = 1;
const LONGEST: usize = 10_000;

/// A string that a regular expression finds, if it is of the simple kind.
pub(super) fn of_pattern(pattern: &str) -> Option<String> {
    let parsed = regex_syntax::Parser::new().parse(pattern).ok()?;
    let mut text = String::new();
    spell(&parsed, &mut text)?;
    Some(text)
}

fn spell(hir: &Hir, text: &mut String) -> Option<()> {
    if text.len() > LONGEST {
        return None;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(Class::Unicode(class)) => {
            // A letter or digit where there is one: the ends of ranges are often odd.
            let plain =
                |c: char| class.iter().any(|range| (range.start()..=range.end()).contains(&c));
            let start = class.iter().next().map(regex_syntax::hir::ClassUnicodeRange::start);
            text.push(['a', 'A', '1', '-'].into_iter().find(|c| plain(*c)).or(start)?);
        }
        HirKind::Class(Class::Bytes(class)) => {
            text.push(char::from(class.iter().next()?.start()));
        }
        HirKind::Repetition(repetition) => {
            let most = repetition.max.unwrap_or(u32::MAX);
            for _ in 0..repetition.min.max(REPEATS).min(most) {
                spell(&repetition.sub, text)?;
            }
        }
        HirKind::Capture(capture) => spell(&capture.sub, text)?,
        HirKind::Concat(parts) => {
            for part in parts {
                spell(part, text)?;
            }
        }
        HirKind::Alternation(ways) => spell(ways.first()?, text)?,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_finds_the_string_that_was_made_for_it() {
        for pattern in [
            "^[a-z]{3}-\\d{4}$",
            "^(cat|dog)s?$",
            "^[A-Z][a-zA-Z0-9_.-]*$",
            "a{2,5}b+c*",
            "^\\p{L}+$",
            "^#[0-9a-f]{6}$",
        ] {
            let text = of_pattern(pattern).unwrap();
            assert!(regex::Regex::new(pattern).unwrap().is_match(&text), "{pattern}: {text}");
        }
        assert_eq!(of_pattern("("), None);
        assert_eq!(of_pattern("a{100000}"), None);
    }
}
