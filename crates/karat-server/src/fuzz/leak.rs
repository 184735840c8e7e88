//! Internals of the server in an answer.
//!
//! Stack traces are recognized by the form of their frames, not by words. One frame alone may be a
//! quotation, so two are needed in languages whose traces have no headline. A file with a line number
//! counts only in an error, because there are tools that list code.

use std::sync::LazyLock;

use regex::Regex;

/// A language, the pattern of its trace, and the number of matches that are needed.
const TRACES: &[(&str, &str, usize)] = &[
    ("Python", r"Traceback \(most recent call last\):\s", 1),
    ("Python", r#"File "[^"\n]+", line \d+, in \S+"#, 1),
    (
        "JavaScript",
        r"(?m)^\s+at (?:[^\n()]+ \()?(?:file://|node:|[A-Za-z]:)?[^\s()]+:\d+:\d+\)?$",
        2,
    ),
    ("Java", r"(?m)^\s*at [\w.$/]+(?:<\w+>)?\([\w$]+\.(?:java|kt|scala|groovy):\d+\)", 1),
    ("C#", r"(?m)^\s*at [\w.<>`\[\],]+\([^\n]*\) in [^\n]+:line \d+", 1),
    ("Go", r"goroutine \d+ \[[a-z ]+\]:\n", 1),
    ("Rust", r"thread '[^'\n]*'(?: \(\d+\))? panicked at ", 1),
    ("Ruby", r"(?m)[\w./-]+\.rb:\d+:in [`'][^'\n]+'", 2),
    ("PHP", r"(?m)^#\d+ [^\n]*\.php\(\d+\): ", 1),
    ("Elixir", r"\(\w+ [\d.]+\) lib/[^\s:]+\.ex:\d+: ", 1),
    ("C or C++", r"==\d+==ERROR: \w+Sanitizer: ", 1),
];

/// The full path of a source file, with a line.
const PLACE: &str = r"(?:/[\w.@+-]+){2,}\.(?:py|js|mjs|cjs|ts|rb|go|rs|java|kt|cs|php|ex|c|cc|cpp)(?::\d+|\(\d+\)|, line \d+)";

static COMPILED: LazyLock<Vec<(&str, Regex, usize)>> = LazyLock::new(|| {
    TRACES
        .iter()
        .filter_map(|(language, pattern, times)| {
            Some((*language, Regex::new(pattern).ok()?, *times))
        })
        .collect()
});
static SOURCE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(PLACE).ok());

/// The language whose stack trace is in the text.
#[must_use]
pub(super) fn stack_trace(text: &str) -> Option<&'static str> {
    let found =
        |pattern: &Regex, times: usize| pattern.find_iter(text).take(times).count() == times;
    COMPILED
        .iter()
        .find(|(_, pattern, times)| found(pattern, *times))
        .map(|(language, ..)| *language)
}

/// A place in the server's own code that is in the text.
#[must_use]
pub(super) fn source_place(text: &str) -> Option<&str> {
    SOURCE.as_ref()?.find(text).map(|found| found.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(COMPILED.len(), TRACES.len());
        assert!(SOURCE.is_some());
    }

    #[test]
    fn traces_of_every_language_are_recognized() {
        let traces = [
            (
                "Python",
                "Traceback (most recent call last):\n  File \"/a/b.py\", line 3, in f\nKeyError: 'x'",
            ),
            (
                "JavaScript",
                "TypeError: x\n    at f (/app/a.js:10:5)\n    at async Server.run (node:internal/x:1:2)",
            ),
            ("JavaScript", "Error: x\n    at file:///app/a.mjs:10:5\n    at g (/b/c.js:1:1)"),
            ("Java", "java.lang.IllegalStateException: x\n\tat com.shop.Stock.find(Stock.java:41)"),
            ("C#", "System.Exception: x\n   at Shop.Stock.Find(String a) in /src/Stock.cs:line 12"),
            ("Go", "panic: x\n\ngoroutine 1 [running]:\nmain.main()\n\t/a/main.go:7 +0x1"),
            ("Rust", "thread 'main' panicked at src/main.rs:4:5:\nx"),
            ("Rust", "thread 'tokio-runtime-worker' (77) panicked at src/a.rs:1:1:\n"),
            ("Ruby", "a.rb:3:in `f': x (RuntimeError)\n\tfrom a.rb:9:in `<main>'"),
            ("PHP", "Stack trace:\n#0 /var/www/a.php(12): f()\n#1 {main}"),
            ("Elixir", "** (KeyError)\n    (shop 0.1.0) lib/shop/stock.ex:12: Shop.find/1"),
        ];
        for (language, text) in traces {
            assert_eq!(stack_trace(text), Some(language), "{text}");
        }
    }

    #[test]
    fn text_about_errors_is_not_a_trace() {
        for text in [
            "Error: there is no such file",
            "ValueError: invalid literal for int()",
            "    at noon (12:30)",
            "meet me at the station:\n  at 10:20:30",
            "{\"stack\": \"lamp\"}",
            "It panicked at the thought.",
        ] {
            assert_eq!(stack_trace(text), None, "{text}");
        }
        assert_eq!(source_place("failed in /srv/app/stock.py:31"), Some("/srv/app/stock.py:31"));
        assert_eq!(source_place("no such file: /home/me/notes.txt"), None);
    }
}
