//! Text that is safe to show.
//!
//! Tool descriptions, file names and error messages may be hostile. Printed unchanged, they can move the
//! cursor, recolour the screen, reverse the reading order or hide words. Here such characters become
//! visible escapes (`\u{1b}`). Nothing is removed, and nothing is escaped for HTML, JSON or a shell.
//!
//! ```
//! use karat_io::text::{clip, printable};
//!
//! assert_eq!(printable("\u{1b}[31mred"), r"\u{1b}[31mred");
//! assert_eq!(clip("abcdefg", 6), "abcde…");
//! ```

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The mark where text was cut.
const ELLIPSIS: char = '…';

/// Maximum number of zero-width characters after a visible one before [`clip`] cuts. Real scripts need
/// far fewer; a tower of combining marks does not.
const MAX_MARKS: usize = 8;

/// The first names of a list, and how many there are beyond them.
///
/// ```
/// use karat_io::text::first_few;
///
/// assert_eq!(first_few(&["a", "b"], 2), "a, b");
/// assert_eq!(first_few(&["a", "b", "c", "d"], 2), "a, b and 2 more");
/// ```
#[must_use]
pub fn first_few<S: AsRef<str>>(names: &[S], most: usize) -> String {
    let first: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(most) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Bytes in hexadecimal.
///
/// ```
/// assert_eq!(karat_io::text::hex(b"\x00\xff"), "00ff");
/// ```
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// `1 item`, `3 items`, `2 entries`.
#[must_use]
pub fn count(n: impl std::fmt::Display, noun: &str) -> String {
    let n = n.to_string();
    match (n.as_str(), noun.strip_suffix('y')) {
        ("1", _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{n} {stem}ies"),
        (_, None) => format!("{n} {noun}s"),
    }
}

/// Text for one line: every control, invisible or direction-changing character becomes a visible
/// escape, newline and tab included.
///
/// A backslash is not escaped, so escaping twice changes nothing.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    escape(text, Layout::OneLine)
}

/// Text of several lines: as [`printable`], but newlines and tabs are kept and `\r\n` becomes a newline.
#[must_use]
pub fn printable_block(text: &str) -> Cow<'_, str> {
    escape(text, Layout::Block)
}

/// JSON text with every invisible or direction-changing character of its strings as a `\\u` escape: the same
/// JSON, safe to show.
#[must_use]
pub fn printable_json(json: &str) -> Cow<'_, str> {
    let is_dangerous = |c: char| !c.is_ascii() && is_unprintable(c) || c == '\u{7f}';
    if !json.contains(is_dangerous) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if !is_dangerous(c) {
            shown.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            shown.push_str(&format!("\\u{unit:04x}"));
        }
    }
    Cow::Owned(shown)
}

/// Text for the log of a CI system, in which no word starts a command of it: `::error::` of GitHub at the
/// start of a line, `##[error]` and `##vso[` of GitHub, Azure and others anywhere. A blank breaks them.
/// GitLab's marks begin with control characters, which are escaped before.
#[must_use]
pub fn without_log_commands(text: &str) -> Cow<'_, str> {
    broken_up(text, "# #", |before| before.is_none_or(char::is_whitespace), ": :")
}

/// As [`without_log_commands`], for JSON: the same JSON afterwards.
#[must_use]
pub fn without_log_commands_in_json(json: &str) -> Cow<'_, str> {
    // A string never begins a line, because its quote is before it; a key or text holds `##[` only in a string.
    broken_up(json, "#\\u0023", |_| false, "")
}

fn broken_up<'t>(
    text: &'t str,
    hashes: &str,
    starts_word: impl Fn(Option<char>) -> bool,
    colons: &str,
) -> Cow<'t, str> {
    if !text.contains("##") && !text.contains("::") {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut before = None;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let is_command = |mark: &str, more: fn(&char) -> bool| {
            rest.strip_prefix(mark)
                .is_some_and(|after| after.chars().next().as_ref().is_some_and(more))
        };
        let (written, length) = if is_command("##", |c| *c == '[' || c.is_ascii_alphabetic()) {
            (hashes, 2)
        } else if starts_word(before) && is_command("::", char::is_ascii_alphabetic) {
            (colons, 2)
        } else {
            (&rest[..c.len_utf8()], c.len_utf8())
        };
        shown.push_str(written);
        before = Some(c);
        rest = &rest[length..];
    }
    Cow::Owned(shown)
}

/// The start of a text that fits into `max_columns` of a terminal, with `…` where it was cut.
///
/// Width is counted as terminals do: two columns for wide characters, none for combining marks.
/// It does not escape: pass it printable text.
#[must_use]
pub fn clip(text: &str, max_columns: usize) -> Cow<'_, str> {
    let room = max_columns.saturating_sub(1);
    let mut used = 0;
    let mut marks = 0;
    let mut cut = None;
    for (at, character) in text.char_indices() {
        let width = character.width().unwrap_or(1);
        marks = if width == 0 { marks + 1 } else { 0 };
        // Remember the last place where the ellipsis would still fit.
        if cut.is_none() && used + width > room {
            cut = Some(at);
        }
        used += width;
        if used > max_columns || marks > MAX_MARKS {
            return cut_at(text, cut.unwrap_or(at), max_columns);
        }
    }
    // Some sequences are wider than the sum of their characters (an emoji selector after a sign).
    if text.width() > max_columns {
        return cut_at(text, cut.unwrap_or(text.len()), max_columns);
    }
    Cow::Borrowed(text)
}

/// The columns that a text takes in a terminal, counted as [`clip`] counts them.
#[must_use]
pub fn columns(text: &str) -> usize {
    text.width()
}

/// A text with spaces behind it, so that it takes this many columns.
///
/// ```
/// use karat_io::text::padded;
///
/// assert_eq!(padded("検索", 6), "検索  ");
/// ```
#[must_use]
pub fn padded(text: &str, width: usize) -> String {
    format!("{text}{:1$}", "", width.saturating_sub(columns(text)))
}

/// The last lines of a text that fit into `max_columns`, as one line: printable, with ` / ` between them and
/// `…` where the text was cut. What a program says before it ends is at the end.
#[must_use]
pub fn last_lines(text: &str, max_columns: usize) -> String {
    let mut shown = String::new();
    let lines = text.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    for line in lines {
        let line = printable(line);
        let room = max_columns.saturating_sub(shown.width() + 4);
        if line.width() > room {
            if shown.is_empty() {
                let fits = |at: &usize| line[*at..].width() <= room;
                let places = line.char_indices().map(|(at, _)| at);
                shown.push_str(&line[places.into_iter().find(fits).unwrap_or(line.len())..]);
            }
            return format!("… {shown}");
        }
        shown = if shown.is_empty() { line.into_owned() } else { format!("{line} / {shown}") };
    }
    shown
}

fn cut_at(text: &str, at: usize, max_columns: usize) -> Cow<'_, str> {
    if max_columns == 0 {
        return Cow::Borrowed("");
    }
    let mut start = text.get(..at).unwrap_or_default();
    while start.width() > max_columns - 1 {
        let mut characters = start.chars();
        characters.next_back();
        start = characters.as_str();
    }
    Cow::Owned(format!("{start}{ELLIPSIS}"))
}

/// The end of the JSON string that starts with the quote at `start`: the position after its closing
/// quote, if it has one.
#[must_use]
pub fn json_string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    OneLine,
    Block,
}

fn escape(text: &str, layout: Layout) -> Cow<'_, str> {
    let shown_as_is = |character: char| match character {
        '\n' | '\t' => layout == Layout::Block,
        other => !is_unprintable(other),
    };
    let Some(first) = text.char_indices().find(|&(_, c)| !shown_as_is(c)).map(|(at, _)| at) else {
        return Cow::Borrowed(text);
    };
    let (clean, rest) = text.split_at(first);
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(clean);
    let mut characters = rest.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' if layout == Layout::Block && characters.peek() == Some(&'\n') => {}
            other if shown_as_is(other) => shown.push(other),
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            '\r' => shown.push_str("\\r"),
            other => shown.extend(other.escape_unicode()),
        }
    }
    Cow::Owned(shown)
}

/// True for characters that control the terminal, change the reading order, break the line or are
/// invisible.
fn is_unprintable(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_control();
    }
    matches!(
        character,
        '\u{0080}'..='\u{009F}' // C1 controls, among them the one-byte CSI
        | '\u{00AD}' | '\u{034F}' // soft hyphen, grapheme joiner
        | '\u{061C}' // Arabic letter mark
        | '\u{115F}' | '\u{1160}' | '\u{3164}' | '\u{FFA0}' // Hangul fillers: letters that are blank
        | '\u{17B4}' | '\u{17B5}' // inherent Khmer vowels
        | '\u{180B}'..='\u{180F}' // Mongolian selectors and separator
        | '\u{200B}'..='\u{200F}' // zero-width space and joiners, direction marks
        | '\u{2028}' | '\u{2029}' // line and paragraph separators
        | '\u{202A}'..='\u{202E}' // embeddings and overrides
        | '\u{2060}'..='\u{206F}' // word joiner, invisible operators, isolates
        | '\u{2800}' // blank Braille pattern
        | '\u{FDD0}'..='\u{FDEF}' // noncharacters
        | '\u{FEFF}' // byte order mark
        | '\u{FFF0}'..='\u{FFFB}' // reserved, interlinear annotation
        | '\u{1BCA0}'..='\u{1BCA3}' // shorthand format controls
        | '\u{1D173}'..='\u{1D17A}' // musical format controls
        | '\u{E0000}'..='\u{E0FFF}' // tags, variation selectors supplement
    ) || u32::from(character) & 0xFFFE == 0xFFFE
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_lines_are_what_is_shown_of_a_long_text() {
        assert_eq!(last_lines("  one \n\n two\x1b[31m\n", 80), r"one / two\u{1b}[31m");
        assert_eq!(last_lines("first\nsecond\nthird", 20), "… second / third");
        assert_eq!(last_lines("first\nsecond\nthird", 12), "… third");
        assert_eq!(last_lines("0123456789", 8), "… 6789");
        assert_eq!(last_lines("", 80), "");
    }

    /// Written apart from `is_unprintable`, from the list of what must never reach a terminal.
    fn forbidden(character: char) -> bool {
        let code = u32::from(character);
        character.is_control()
            || (0x202A..=0x202E).contains(&code)
            || (0x2066..=0x2069).contains(&code)
            || (0x200B..=0x200F).contains(&code)
            || [0x061C, 0xFEFF, 0x2028, 0x2029, 0x2060].contains(&code)
            || (0xE0000..=0xE01EF).contains(&code)
    }

    /// Strings in which the dangerous characters are frequent.
    fn hostile() -> impl Strategy<Value = String> {
        let special: Vec<char> =
            (0..=0x0010_FFFF).filter_map(char::from_u32).filter(|&c| forbidden(c)).collect();
        let piece = prop_oneof![
            prop::sample::select(special),
            any::<char>(),
            prop::char::range('a', 'z'),
            Just('\u{0301}'),
            Just('\u{FE0F}'),
            Just('漢'),
        ];
        prop::collection::vec(piece, 0..40).prop_map(String::from_iter)
    }

    proptest! {
        #[test]
        fn nothing_dangerous_is_printed(text in hostile()) {
            let shown = printable(&text);
            prop_assert!(!shown.chars().any(forbidden), "{shown:?}");
        }

        #[test]
        fn a_block_keeps_only_newlines_and_tabs(text in hostile()) {
            let shown = printable_block(&text);
            prop_assert!(!shown.chars().any(|c| forbidden(c) && c != '\n' && c != '\t'), "{shown:?}");
            let newlines = |text: &str| text.matches('\n').count();
            prop_assert_eq!(newlines(&shown), newlines(&text));
        }

        #[test]
        fn printing_twice_changes_nothing(text in hostile()) {
            let once = printable(&text).into_owned();
            prop_assert!(matches!(printable(&once), Cow::Borrowed(same) if same == once));
            let block = printable_block(&text).into_owned();
            prop_assert!(matches!(printable_block(&block), Cow::Borrowed(same) if same == block));
        }

        #[test]
        fn plain_ascii_is_borrowed(text in "[ -~]{0,80}") {
            prop_assert!(matches!(printable(&text), Cow::Borrowed(same) if same == text));
        }

        #[test]
        fn clipped_text_fits(text in hostile(), max_columns in 0_usize..30) {
            let text = printable(&text);
            let shown = clip(&text, max_columns);
            prop_assert!(shown.width() <= max_columns, "{shown:?} is {} wide", shown.width());
            let whole = shown == text;
            let cut = shown.strip_suffix(ELLIPSIS).is_some_and(|start| text.starts_with(start));
            prop_assert!(whole || cut || (max_columns == 0 && shown.is_empty()), "{shown:?}");
        }

        #[test]
        fn ascii_that_fits_is_not_clipped(text in "[ -~]{0,30}") {
            prop_assert_eq!(clip(&text, text.len()), text.as_str());
        }
    }

    #[test]
    fn terminal_escapes_become_visible() {
        assert_eq!(printable("\u{1b}[31mred\u{1b}[0m"), r"\u{1b}[31mred\u{1b}[0m");
        assert_eq!(printable("a\u{202e}b"), r"a\u{202e}b");
        assert_eq!(printable("one\ntwo\r\n\tthree"), r"one\ntwo\r\n\tthree");
        assert_eq!(printable_block("one\r\ntwo\rthree"), "one\ntwo\\rthree");
        assert_eq!(printable("héllo 漢字 🙂"), "héllo 漢字 🙂");
    }

    #[test]
    fn text_is_cut_by_columns_not_by_bytes() {
        assert_eq!(clip("abcdef", 6), "abcdef");
        assert_eq!(clip("abcdefg", 6), "abcde…");
        assert_eq!(clip("漢字漢字", 8), "漢字漢字");
        assert_eq!(clip("漢字漢字", 7), "漢字漢…");
        assert_eq!(clip("漢字漢字", 6), "漢字…");
        assert_eq!(clip("abc", 1), "…");
        assert_eq!(clip("abc", 0), "");
        assert_eq!(clip("", 0), "");
        // The accent belongs to the e before it.
        assert_eq!(clip("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
    }

    #[test]
    fn json_stays_the_same_json() {
        let json = "{\"a\": \"x\u{9b}31m\u{202e}\u{200b}\u{e0041}é\"}";
        let shown = printable_json(json);
        assert_eq!(shown, "{\"a\": \"x\\u009b31m\\u202e\\u200b\\udb40\\udc41é\"}");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&shown), read(json));
        let json = "{\"a\": \"##[error]x ::error::\"}";
        let shown = without_log_commands_in_json(json);
        assert!(!shown.contains("##["), "{shown}");
        assert_eq!(read(&shown), read(json));
    }

    #[test]
    fn no_word_starts_a_command_of_a_log() {
        for (text, expected) in [
            ("::error::x", ": :error::x"),
            ("a\n  ::stop-commands::t", "a\n  : :stop-commands::t"),
            ("u ::warning file=a::x", "u : :warning file=a::x"),
            ("x ##[error]y", "x # #[error]y"),
            ("##vso[task.x]", "# #vso[task.x]"),
            ("###[error]", "## #[error]"),
            ("karat::io ::1 # ## plain", "karat::io ::1 # ## plain"),
        ] {
            assert_eq!(without_log_commands(text), expected);
        }
    }

    #[test]
    fn a_tower_of_marks_is_cut() {
        let tower = format!("a{}", "\u{301}".repeat(100_000));
        assert!(clip(&tower, 80).chars().count() <= MAX_MARKS + 2);
    }
}
