//! A definition, read once for all detectors.
//!
//! Everything that a model would see (name, title, description, every string in the schemas, server
//! instructions, the result of a call) is laid out in one buffer: lower case, white space collapsed,
//! invisible characters dropped, cut into sentences. The words that detectors care about are looked up
//! in one pass over it. The work is linear in the text, and a definition beyond [`MOST_BYTES`] is read
//! up to there, in equal parts from its start and its end.

use std::borrow::Cow;
use std::cell::Cell;
use std::mem::take;

use serde_json::Value;

use super::lexicon::{self, Hit, Mask};
use super::register::{BYTES, Lanes, Register};
use super::{hidden_unicode, literals};
use crate::system::Exhibit;

/// How much text of one definition is read.
pub const MOST_BYTES: usize = 4 << 20;
/// How many strings of one definition are read; a schema with more is no schema for people.
const MOST_PARTS: usize = 20_000;

/// How much of a name is read.
const LONGEST_NAME: usize = 400;

/// Where a piece of text stands in the definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Surface {
    /// The server's name.
    Server,
    /// The tool's name.
    Name,
    /// The tool's title, in either of its places.
    Title,
    /// The tool's description.
    Description,
    /// The instructions of the server.
    Instructions,
    /// The name of a parameter.
    ParameterName,
    /// The title or description of a parameter.
    ParameterText,
    /// An allowed, default or example value of a parameter.
    ParameterValue,
    /// Anything in the output schema.
    Output,
    /// What a call returned.
    Result,
}

impl Surface {
    /// The name in evidence.
    pub fn name(self) -> &'static str {
        match self {
            Surface::Server => "server",
            Surface::Name => "name",
            Surface::Title => "title",
            Surface::Description => "description",
            Surface::Instructions => "server instructions",
            Surface::ParameterName => "parameter name",
            Surface::ParameterText => "parameter description",
            Surface::ParameterValue => "parameter value",
            Surface::Output => "output schema",
            Surface::Result => "result",
        }
    }
}

/// One string of the definition and where it lies in the buffer.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// Where it stands.
    pub surface: Surface,
    /// The parameter that it belongs to.
    pub parameter: Option<&'a str>,
    /// Whether that parameter must be given.
    pub required: bool,
    /// The keyword of a schema value: `default`, `enum`, `const`, `examples`.
    pub keyword: &'static str,
    /// The text as it was written.
    pub raw: &'a str,
    /// Everything that was found in it.
    pub mask: Mask,
    /// The kinds of its bytes.
    kinds: u8,
    start: usize,
    end: usize,
}

/// One sentence.
#[derive(Clone, Copy, Debug)]
pub struct Sentence {
    /// The part that it belongs to.
    pub part: usize,
    /// Where it begins in the buffer.
    pub start: usize,
    /// Where it ends in the buffer.
    pub end: usize,
    first_hit: usize,
    end_hit: usize,
    /// Everything that was found in it.
    pub mask: Mask,
}

/// A definition that was read.
pub struct Reading<'a> {
    /// The definition itself.
    pub exhibit: &'a Exhibit,
    /// Its strings.
    pub parts: Vec<Part<'a>>,
    /// Its sentences, in the order of the buffer.
    pub sentences: Vec<Sentence>,
    /// What the tool is openly about: found in its name, title, server and first sentence.
    pub purpose: Mask,
    buffer: String,
    hits: Vec<Hit>,
}

impl<'a> Reading<'a> {
    /// Reads a definition.
    pub fn of(exhibit: &'a Exhibit) -> Reading<'a> {
        let mut room = Room::get();
        let mut collector = Collector { parts: emptied(take(&mut room.parts)) };
        collector.exhibit(exhibit);
        let Collector { parts, .. } = collector;
        Reading::lay_out(exhibit, parts, room)
    }

    /// Reads one text as if it were the description: what a detector does with text that it decoded.
    pub fn of_text(exhibit: &'a Exhibit, text: &'a str) -> Reading<'a> {
        let mut room = Room::get();
        let mut parts = emptied(take(&mut room.parts));
        parts.push(Part::new(Surface::Description, text));
        Reading::lay_out(exhibit, parts, room)
    }

    fn lay_out(exhibit: &'a Exhibit, mut parts: Vec<Part<'a>>, room: Room) -> Reading<'a> {
        let total: usize = parts.iter().map(|part| part.raw.len() + 1).sum();
        let Room { mut buffer, sentences, mut hits, .. } = room;
        buffer.reserve(total.min(MOST_BYTES) + parts.len());
        let mut layout = Layout { buffer, sentences };
        for (number, part) in parts.iter_mut().enumerate() {
            let room = MOST_BYTES.saturating_sub(layout.buffer.len());
            part.start = layout.buffer.len();
            if part.is_name() {
                let read = part.raw.floor_char_boundary(room.min(LONGEST_NAME));
                part.kinds = layout.add_name(number, &part.raw[..read]) | unread(part, read);
            } else {
                for piece in pieces(part.raw, room) {
                    part.kinds |= layout.add(number, piece);
                }
                part.kinds |= unread(part, room);
            }
            part.end = layout.buffer.len();
            layout.buffer.push('\n');
        }
        let Layout { buffer, mut sentences } = layout;
        lexicon::look_up(&buffer, &mut hits);
        literals::mark(&buffer, &mut hits);
        super::cross_tool::mark_peers(exhibit, &buffer, &mut hits);
        lexicon::keep_longest(&mut hits);
        let mut next = 0;
        for sentence in &mut sentences {
            while hits.get(next).is_some_and(|hit| hit.start < sentence.start) {
                next += 1;
            }
            sentence.first_hit = next;
            while hits.get(next).is_some_and(|hit| hit.start < sentence.end) {
                next += 1;
            }
            sentence.end_hit = next;
        }
        let mut reading = Reading { exhibit, parts, sentences, purpose: Mask::NONE, buffer, hits };
        lexicon::derive(&mut reading);
        for sentence in &reading.sentences {
            reading.parts[sentence.part].mask |= sentence.mask;
        }
        reading.purpose = reading.find_purpose();
        reading
    }

    /// The words found in a sentence, in order.
    pub fn hits(&self, sentence: &Sentence) -> &[Hit] {
        self.hits.get(sentence.first_hit..sentence.end_hit).unwrap_or_default()
    }

    pub(super) fn hits_mut(&mut self, number: usize) -> (&str, &mut [Hit], &mut Sentence) {
        let sentence = &mut self.sentences[number];
        let hits = &mut self.hits[sentence.first_hit..sentence.end_hit];
        (&self.buffer, hits, sentence)
    }

    /// How many known words it has.
    pub fn words(&self) -> usize {
        self.hits.len()
    }

    /// The text of a stretch of the buffer, as it was laid out.
    pub fn text(&self, start: usize, end: usize) -> &str {
        self.buffer.get(start..end).unwrap_or_default()
    }

    /// The laid-out text of a part.
    pub fn part_text(&self, part: &Part<'_>) -> &str {
        self.text(part.start, part.end)
    }

    /// The part that a sentence belongs to.
    pub fn part(&self, sentence: &Sentence) -> &Part<'a> {
        &self.parts[sentence.part]
    }

    /// What a sentence says before its first break: what comes after "and" may be what is slipped in.
    fn first_clause(&self, sentence: &Sentence) -> Mask {
        let text = self.text(sentence.start, sentence.end);
        let breaks = |(at, byte): (usize, u8)| match byte {
            b',' | b';' | b':' => text.as_bytes().get(at + 1) == Some(&b' '),
            b' ' => text[at..].starts_with(" and ") || text[at..].starts_with(" then "),
            _ => false,
        };
        let length = text.bytes().enumerate().position(breaks).unwrap_or(text.len());
        let within = self.hits(sentence).iter().filter(|hit| hit.start < sentence.start + length);
        within.fold(Mask::NONE, |mask, hit| mask | hit.mask)
    }

    fn find_purpose(&self) -> Mask {
        let mut purpose = Mask::NONE;
        let mut seen_description = false;
        for sentence in &self.sentences {
            match self.part(sentence).surface {
                Surface::Server | Surface::Name | Surface::Title => purpose |= sentence.mask,
                Surface::Description if !seen_description => {
                    purpose |= self.first_clause(sentence);
                    seen_description = true;
                }
                _ => {}
            }
        }
        purpose
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        // What one huge definition took is given back.
        if self.buffer.capacity() + self.parts.capacity() > MOST_KEPT {
            return;
        }
        let mut room = Room {
            buffer: take(&mut self.buffer),
            parts: emptied(take(&mut self.parts)),
            sentences: take(&mut self.sentences),
            hits: take(&mut self.hits),
        };
        room.buffer.clear();
        room.sentences.clear();
        room.hits.clear();
        // A thread that ends has no use for it.
        let _ = ROOM.try_with(|kept| kept.set(room));
    }
}

/// How much room a thread keeps for its next reading.
const MOST_KEPT: usize = 64 << 10;

thread_local! {
    /// What the last reading of this thread left: nearly every definition fits into it, and asking for
    /// memory for each would be a tenth of the work.
    static ROOM: Cell<Room> = Cell::default();
}

/// Empty lists that have room.
#[derive(Default)]
struct Room {
    buffer: String,
    parts: Vec<Part<'static>>,
    sentences: Vec<Sentence>,
    hits: Vec<Hit>,
}

impl Room {
    fn get() -> Room {
        ROOM.try_with(Cell::take).unwrap_or_default()
    }
}

/// The list without its parts, for those of another definition; its room stays.
fn emptied<'b>(mut parts: Vec<Part<'_>>) -> Vec<Part<'b>> {
    parts.clear();
    parts.into_iter().map_while(|_| None).collect()
}

impl<'a> Part<'a> {
    fn new(surface: Surface, raw: &'a str) -> Part<'a> {
        Part {
            surface,
            parameter: None,
            required: false,
            keyword: "",
            raw,
            mask: Mask::NONE,
            kinds: 0,
            start: 0,
            end: 0,
        }
    }

    /// Whether it may hold something else than printable ASCII and line breaks.
    pub(super) fn has_odd_characters(&self) -> bool {
        self.kinds & ODD != 0
    }

    /// Whether it may hold characters written as escapes.
    pub(super) fn has_escapes(&self) -> bool {
        self.kinds & ESCAPE != 0
    }

    /// Whether it is a name rather than text: words are joined by `_` or by capitals.
    fn is_name(&self) -> bool {
        match self.surface {
            Surface::Server | Surface::Name | Surface::ParameterName => true,
            Surface::ParameterValue => {
                self.raw.len() < LONGEST_NAME
                    && self.raw.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            }
            _ => false,
        }
    }

    /// Where it stands, in words.
    pub fn place(&self) -> String {
        match self.parameter {
            Some(parameter) if self.keyword.is_empty() => {
                format!("{} of `{parameter}`", self.surface.name())
            }
            Some(parameter) => format!("{} of `{parameter}`", self.keyword),
            None => self.surface.name().to_owned(),
        }
    }
}

/// What a text may hold behind what was read of it: anything.
fn unread(part: &Part<'_>, read: usize) -> u8 {
    if part.raw.len() > read { ODD | ESCAPE } else { 0 }
}

/// The text, or its two ends where there is not room for all of it.
fn pieces(text: &str, room: usize) -> impl Iterator<Item = &str> {
    let (head, tail) = if text.len() <= room {
        (text, "")
    } else {
        let head = text.floor_char_boundary(room / 2);
        let tail = text.ceil_char_boundary(text.len() - room / 2);
        (&text[..head], &text[tail..])
    };
    [head, tail].into_iter().filter(|piece| !piece.is_empty())
}

/// Lays text out: one pass, byte by byte for ASCII.
struct Layout {
    buffer: String,
    sentences: Vec<Sentence>,
}

impl Layout {
    /// Adds a text, sentence by sentence; returns the kinds of its bytes.
    fn add(&mut self, part: usize, text: &str) -> u8 {
        let mut kinds = 0;
        let bytes = text.as_bytes();
        let mut start = self.buffer.len();
        // Blanks at the start of a sentence and after another blank are dropped.
        let mut space = true;
        let mut at = 0;
        while at < bytes.len() {
            let run = plain_run(&bytes[at..], space);
            if run > 0 {
                let from = self.buffer.len();
                self.buffer.push_str(&text[at..at + run]);
                self.buffer[from..].make_ascii_lowercase();
                at += run;
                space = bytes[at - 1] == b' ';
                continue;
            }
            let Some(character) = text[at..].chars().next() else { break };
            kinds |= KINDS[usize::from(bytes[at])];
            at += character.len_utf8();
            match character {
                '\\' | '&' => {
                    self.buffer.push(character);
                    space = false;
                }
                '\n' if breaks_line(&self.buffer[start..], &text[at..]) => {
                    start = self.end_sentence(part, start);
                    space = true;
                }
                ' ' | '\n' | '\t' | '\r' | '\u{b}' | '\u{c}' => {
                    if !space {
                        self.buffer.push(' ');
                    }
                    space = true;
                }
                '.' | '!' | '?' => {
                    self.buffer.push(character);
                    space = false;
                    if closes(&text[at..]) && !is_abbreviation(&self.buffer[start..]) {
                        start = self.end_sentence(part, start);
                        space = true;
                    }
                }
                control if control.is_ascii() => {}
                other => match fold(other) {
                    None => {}
                    Some(' ') if space => {}
                    Some(folded) => {
                        self.buffer.push(folded);
                        space = folded == ' ';
                        if matches!(folded, '。' | '！' | '？' | '।' | '؟' | '۔') {
                            start = self.end_sentence(part, start);
                            space = true;
                        }
                    }
                },
            }
        }
        self.end_sentence(part, start);
        kinds
    }

    /// A name, cut into its words: one sentence.
    fn add_name(&mut self, part: usize, name: &str) -> u8 {
        let start = self.buffer.len();
        lexicon::fold_name(name, &mut self.buffer);
        self.end_sentence(part, start);
        name.bytes().fold(0, |kinds, byte| kinds | KINDS[usize::from(byte)])
    }

    fn end_sentence(&mut self, part: usize, start: usize) -> usize {
        let end = self.buffer.len();
        let begins = self.buffer.as_bytes().get(start).is_some_and(u8::is_ascii_graphic);
        if !begins && self.buffer[start..].trim().is_empty() {
            return start;
        }
        self.sentences.push(Sentence {
            part,
            start,
            end,
            first_hit: 0,
            end_hit: 0,
            mask: Mask::NONE,
        });
        self.buffer.push(' ');
        self.buffer.len()
    }
}

/// A control character, or part of one that is not ASCII.
const ODD: u8 = 1;
/// The start of an escape, as in `\u0041` or `&#65;`.
const ESCAPE: u8 = 2;

/// What each byte is.
const KINDS: [u8; 256] = {
    let mut kinds = [ODD; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        kinds[byte as usize] = match byte {
            b'\\' | b'&' => ESCAPE,
            b' '..=b'~' | b'\n' | b'\r' | b'\t' => 0,
            _ => ODD,
        };
        byte += 1;
    }
    kinds
};

/// How many bytes are copied as they are, but for upper case: words with single blanks between them, up to
/// what may end a sentence or be more than it seems. `space` says whether a blank stands before.
fn plain_run(bytes: &[u8], space: bool) -> usize {
    let mut before = if space { Lanes::FIRST } else { Lanes::NONE };
    let mut length = 0;
    loop {
        let register = Register::of(&bytes[length..]);
        let blanks = register.equal(b' ');
        let doubled = blanks.and(blanks.followers(before));
        // The zeros behind the end are not plain either.
        let odd = register.within(b' ', b'~').not();
        let special = register.first_of([b'.', b'!', b'?', b'\\', b'&']);
        let run = odd.or(doubled).or(special).before_first();
        length += run;
        if run < BYTES {
            return length;
        }
        let (wide, ended) = wide_run(bytes, length);
        length += wide;
        if ended {
            return length;
        }
        before = if bytes[length - 1] == b' ' { Lanes::FIRST } else { Lanes::NONE };
    }
}

/// How many bytes go on being plain from a place behind the first, looked at sixteen at a time as long as
/// there are so many; whether the run ended among them. The compiler makes one instruction for all sixteen
/// of each comparison.
fn wide_run(bytes: &[u8], from: usize) -> (usize, bool) {
    const WIDE: usize = 16;
    let mut at = from;
    while let (Some(before), Some(here)) =
        (bytes[at - 1..].first_chunk::<WIDE>(), bytes[at..].first_chunk::<WIDE>())
    {
        let mut stops = [0_u8; WIDE];
        for ((stop, byte), before) in stops.iter_mut().zip(here).zip(before) {
            let odd = byte.wrapping_sub(b' ') > b'~' - b' ';
            let doubled = (*byte == b' ') & (*before == b' ');
            let ends = (*byte == b'.') | (*byte == b'!') | (*byte == b'?');
            let escapes = (*byte == b'\\') | (*byte == b'&');
            *stop = u8::from(odd | doubled | ends | escapes);
        }
        let stops = u128::from_le_bytes(stops);
        if stops != 0 {
            return (at - from + stops.trailing_zeros() as usize / 8, true);
        }
        at += WIDE;
    }
    (at - from, false)
}

/// Whether a full stop ends the sentence: white space or mark-up follows.
fn closes(rest: &str) -> bool {
    match rest.as_bytes().first() {
        None => true,
        Some(byte) if byte.is_ascii() => byte.is_ascii_whitespace() || *byte == b'<',
        Some(_) => {
            let next = rest.chars().find(|next| !hidden_unicode::is_invisible(*next));
            next.is_none_or(|next| next.is_whitespace() || next == '<')
        }
    }
}

/// A line break ends the sentence before an empty line or a list item, and after a finished line.
fn breaks_line(so_far: &str, rest: &str) -> bool {
    let next = rest.trim_start_matches([' ', '\t', '\r']).chars().next();
    let finished =
        so_far.trim_end().ends_with(['.', ':', '!', '?', ';', '>', ']', '}', '。', '：']);
    let starts_anew = next.is_none_or(|next| {
        matches!(next, '\n' | '-' | '*' | '•' | '#' | '<' | '・') || next.is_ascii_digit()
    });
    finished || starts_anew
}

/// `e.g.`, `z.B.`, `1.` and the like do not end a sentence.
fn is_abbreviation(sentence: &str) -> bool {
    let body = sentence.trim_end_matches('.');
    let border = body.bytes().rposition(|byte| matches!(byte, b' ' | b'('));
    let word = border.map_or(body, |at| &body[at + 1..]);
    // None of those below is longer.
    if word.len() > 4 && !word.contains('.') {
        return false;
    }
    word.contains('.') && !word.contains(['/', '@'])
        || word.chars().count() <= 1
        || [
            "etc", "bzw", "ca", "vs", "no", "nr", "sr", "sra", "mr", "mrs", "dr", "incl", "ej",
            "ex",
        ]
        .contains(&word)
}

/// A character as detectors compare it, or nothing where it is invisible.
fn fold(character: char) -> Option<char> {
    // Letters without case, of which there are most in the scripts that have them.
    if matches!(character, '\u{3041}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
    {
        return Some(character);
    }
    if hidden_unicode::is_invisible(character) {
        return None;
    }
    Some(match character {
        '’' | '‘' | 'ʼ' | '＇' => '\'',
        '“' | '”' | '„' | '＂' => '"',
        '–' | '—' | '‒' | '―' => '-',
        character if character.is_whitespace() => ' ',
        // Letters in mathematical dress.
        '\u{1d400}'..='\u{1d7ff}' | '\u{24b6}'..='\u{24e9}' => {
            use unicode_normalization::UnicodeNormalization as _;
            std::iter::once(character).nfkc().next().unwrap_or(character).to_ascii_lowercase()
        }
        // Full-width forms are ASCII in disguise.
        '！' | '？' | '：' | '；' => character,
        '\u{ff01}'..='\u{ff5e}' => {
            let ascii = char::from_u32(u32::from(character) - 0xfee0).unwrap_or(character);
            ascii.to_ascii_lowercase()
        }
        other => {
            let mut lower = other.to_lowercase();
            match (lower.next(), lower.next()) {
                (Some(lower), None) => lower,
                _ => other,
            }
        }
    })
}

/// Walks a definition and lists its strings.
struct Collector<'a> {
    parts: Vec<Part<'a>>,
}

/// A schema node that waits to be visited.
struct Waiting<'a> {
    node: &'a Value,
    parameter: Option<&'a str>,
    required: bool,
}

impl<'a> Collector<'a> {
    fn exhibit(&mut self, exhibit: &'a Exhibit) {
        let tool = &exhibit.tool;
        self.push(Surface::Server, &exhibit.server);
        self.push(Surface::Name, &tool.name);
        if let Some(title) = &tool.title {
            self.push(Surface::Title, title);
        }
        self.push(Surface::Description, &tool.description);
        if let Some(annotations) = &tool.annotations {
            self.schema(annotations, Surface::Title);
        }
        if let Some(instructions) = &exhibit.instructions {
            self.push(Surface::Instructions, instructions);
        }
        if let Some(schema) = &tool.input_schema {
            self.schema(schema, Surface::ParameterText);
        }
        if let Some(schema) = &tool.output_schema {
            self.schema(schema, Surface::Output);
        }
        if let Some(result) = &exhibit.result {
            self.push(Surface::Result, result);
        }
    }

    fn push(&mut self, surface: Surface, text: &'a str) {
        if !text.is_empty() && self.parts.len() < MOST_PARTS {
            self.parts.push(Part::new(surface, text));
        }
    }

    /// Every string of a schema, without recursion: depth costs memory on the heap, not the stack.
    fn schema(&mut self, root: &'a Value, surface: Surface) {
        let mut waiting = Vec::with_capacity(16);
        waiting.push(Waiting { node: root, parameter: None, required: false });
        while let Some(Waiting { node, parameter, required }) = waiting.pop() {
            if self.parts.len() >= MOST_PARTS {
                return;
            }
            match node {
                Value::Object(fields) => {
                    for (key, value) in fields.iter().rev() {
                        let child = Waiting { node: value, parameter, required };
                        match key.as_str() {
                            "properties" | "patternProperties" | "$defs" | "definitions" => {
                                let needed = fields.get("required").and_then(Value::as_array);
                                self.properties(value, needed, surface, &mut waiting);
                            }
                            "title" | "description" | "$comment" => {
                                self.text(value, parameter, required, surface);
                            }
                            "default" => self.values(value, "default", &child, surface),
                            "enum" => self.values(value, "enum", &child, surface),
                            "const" => self.values(value, "const", &child, surface),
                            "examples" | "example" => {
                                self.values(value, "examples", &child, surface);
                            }
                            "type" | "format" | "$ref" | "$schema" | "$id" | "required"
                            | "pattern" => {}
                            _ if value.is_object() || value.is_array() => waiting.push(child),
                            _ => self.text(value, parameter, required, surface),
                        }
                    }
                }
                Value::Array(items) => waiting.extend(items.iter().rev().map(|node| Waiting {
                    node,
                    parameter,
                    required,
                })),
                _ => {}
            }
        }
    }

    fn properties(
        &mut self,
        value: &'a Value,
        needed: Option<&'a Vec<Value>>,
        surface: Surface,
        waiting: &mut Vec<Waiting<'a>>,
    ) {
        let Value::Object(properties) = value else { return };
        for (name, node) in properties.iter().rev() {
            let required = needed
                .is_some_and(|names| names.iter().any(|needed| needed.as_str() == Some(name)));
            if surface == Surface::ParameterText && self.parts.len() < MOST_PARTS {
                self.parts.push(Part {
                    parameter: Some(name),
                    required,
                    ..Part::new(Surface::ParameterName, name)
                });
            }
            waiting.push(Waiting { node, parameter: Some(name), required });
        }
    }

    fn text(
        &mut self,
        value: &'a Value,
        parameter: Option<&'a str>,
        required: bool,
        surface: Surface,
    ) {
        if let Value::String(text) = value
            && !text.is_empty()
        {
            self.parts.push(Part { parameter, required, ..Part::new(surface, text) });
        }
    }

    /// Default, allowed and example values: every string in them.
    fn values(
        &mut self,
        value: &'a Value,
        keyword: &'static str,
        at: &Waiting<'a>,
        surface: Surface,
    ) {
        let surface =
            if surface == Surface::ParameterText { Surface::ParameterValue } else { surface };
        let mut add = |text: &'a str| {
            if !text.is_empty() && self.parts.len() < MOST_PARTS {
                let (parameter, required) = (at.parameter, at.required);
                self.parts.push(Part { parameter, required, keyword, ..Part::new(surface, text) });
            }
        };
        // Nearly all values are strings or numbers, for which no list is needed.
        let mut waiting = match value {
            Value::String(text) => return add(text),
            Value::Array(_) | Value::Object(_) => vec![value],
            _ => return,
        };
        while let Some(value) = waiting.pop() {
            match value {
                Value::String(text) => add(text),
                Value::Array(items) => waiting.extend(items.iter().rev()),
                Value::Object(fields) => waiting.extend(fields.values().rev()),
                _ => {}
            }
        }
    }
}

/// The part of a text that evidence quotes: around a stretch, cut at word borders.
pub(super) fn excerpt(text: &str, start: usize, end: usize) -> Cow<'_, str> {
    const MOST: usize = 240;
    if text.len() <= MOST {
        return Cow::Borrowed(text.trim());
    }
    let spare = MOST.saturating_sub(end.saturating_sub(start)) / 2;
    let from = text.floor_char_boundary(start.saturating_sub(spare));
    let to = text.ceil_char_boundary((start + MOST).min(end + spare).min(text.len()));
    let cut = text.get(from..to).unwrap_or_default().trim();
    Cow::Owned(format!(
        "{}{cut}{}",
        if from > 0 { "…" } else { "" },
        if to < text.len() { "…" } else { "" }
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What `plain_run` promises, byte by byte.
    fn plainly(bytes: &[u8], space: bool) -> usize {
        let mut before = space;
        let plain = |byte: &u8| {
            let doubled = before && *byte == b' ';
            before = *byte == b' ';
            matches!(byte, b' '..=b'~') && !doubled && !b".!?\\&".contains(byte)
        };
        bytes
            .iter()
            .position({
                let mut plain = plain;
                move |byte| !plain(byte)
            })
            .unwrap_or(bytes.len())
    }

    proptest! {
        #[test]
        fn a_run_ends_where_a_byte_is_not_plain(
            words in "([a-zA-Z0-9,;-]{1,12} ){0,12}", end in "[ .!?&\\\\a\n\u{e9}\u{0}~]{0,3}",
            more in "[a-z .]{0,40}", space: bool,
        ) {
            let text = words + &end + &more;
            prop_assert_eq!(plain_run(text.as_bytes(), space), plainly(text.as_bytes(), space));
        }
    }

    #[test]
    fn room_of_an_earlier_reading_leaves_nothing_of_it_behind() {
        let tool = |description: &str| Exhibit {
            server: "acme".to_owned(),
            ..Exhibit::of_tool(crate::dataset::Tool {
                name: "lookup".to_owned(),
                description: description.to_owned(),
                ..Default::default()
            })
        };
        let (long, short) = (tool("Send the password. Then read on. And on."), tool("Reads."));
        let seen = |exhibit: &Exhibit| {
            let reading = Reading::of(exhibit);
            (reading.buffer.clone(), reading.hits.clone(), format!("{:?}", reading.sentences))
        };
        let first = seen(&short);
        seen(&long);
        assert_eq!(seen(&short), first);
    }
}
