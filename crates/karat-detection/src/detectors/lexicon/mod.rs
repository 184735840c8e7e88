//! The words that detectors look for, by what they mean.
//!
//! Detectors reason over meanings ([`Mask`]), not over phrases: "send" and "отправьте" are both
//! [`Mask::TRANSFER`]. Each language has a table of its own; adding a language adds a file and a line
//! here. All tables are looked up in one pass, whatever the language of the text, because attackers
//! mix them. A term is a word or a few and begins where a word or a sign does; `*` at its end means that
//! the word may go on.

mod arabic;
mod chinese;
mod dutch;
mod english;
mod french;
mod german;
mod hindi;
mod italian;
mod japanese;
mod korean;
mod polish;
mod portuguese;
mod russian;
mod spanish;
mod swedish;
mod technical;
mod terms;
mod turkish;

use std::ops::{BitOr, BitOrAssign};
use std::sync::OnceLock;

use self::terms::{Place, Term, Terms};
use super::reading::Reading;
use super::register::{BYTES, Register};

/// One language's words.
type Table = &'static [(Mask, &'static [&'static str])];

const TABLES: &[Table] = &[
    technical::TERMS,
    english::TERMS,
    german::TERMS,
    french::TERMS,
    spanish::TERMS,
    portuguese::TERMS,
    italian::TERMS,
    dutch::TERMS,
    swedish::TERMS,
    polish::TERMS,
    turkish::TERMS,
    russian::TERMS,
    arabic::TERMS,
    hindi::TERMS,
    chinese::TERMS,
    japanese::TERMS,
    korean::TERMS,
];

/// A set of meanings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mask(u64);

macro_rules! meanings {
    ($($(#[$doc:meta])* $name:ident = $bit:expr;)*) => {
        impl Mask {
            $($(#[$doc])* pub const $name: Mask = Mask(1 << $bit);)*
        }
    };
}

meanings! {
    /// Not, never, without.
    NEGATION = 0;
    /// A negation that follows its verb.
    NEGATION_AFTER = 1;
    /// To tell, show, mention.
    TELL = 2;
    /// The person served: user, customer, patient.
    USER = 3;
    /// Keeping something from the user.
    CONCEAL = 4;
    /// To put into a parameter: pass, fill in, append, copy.
    PUT = 5;
    /// To send elsewhere.
    TRANSFER = 6;
    /// To read, open, collect.
    COLLECT = 7;
    /// Passwords, keys, tokens.
    SECRET = 8;
    /// What only the model knows: its instructions, the conversation.
    CONTEXT = 9;
    /// Personal data.
    PERSONAL = 10;
    /// A file that holds secrets.
    SECRET_PATH = 11;
    /// An address, host or network outside.
    EXTERNAL = 12;
    /// To ignore, cancel, supersede.
    OVERRIDE = 13;
    /// Instructions, rules, guidance.
    INSTRUCTIONS = 14;
    /// Belonging to the model or its host: your, system, safety.
    MODEL = 15;
    /// Previous, all, above.
    PRIOR = 16;
    /// A new role for the model.
    ROLE = 17;
    /// A word that calls an assistant by its kind.
    ASSISTANT = 18;
    /// Other tools, in general.
    OTHER_TOOL = 19;
    /// A tool or server of the peers, by its name.
    PEER = 20;
    /// To use, to call.
    USE = 21;
    /// The only one, the official one.
    SOLE = 22;
    /// Even if, regardless of.
    EVEN_IF = 23;
    /// To want, ask for, say.
    WANT = 24;
    /// Against what the user asked for.
    AGAINST = 25;
    /// To ask back, confirmation, consent.
    ASK = 26;
    /// Acting without asking.
    UNASKED = 27;
    /// To delete, cancel, revoke.
    DESTROY = 28;
    /// To switch off, skip, bypass.
    DISABLE = 29;
    /// What protects: checks, alarms, audit.
    CONTROL = 30;
    /// Code fetched and run.
    EXECUTE = 31;
    /// Where code survives a restart.
    PERSIST = 32;
    /// Broken, unavailable, unsafe.
    DISPARAGE = 33;
    /// To take the place of.
    REPLACE = 34;
    /// Speaking about attacks: lesson, example, phishing.
    ABOUT_ATTACKS = 35;
    /// Always, each time, any.
    ALWAYS = 36;
    /// A promise that nothing happens: read-only, nothing is sent.
    ASSURANCE = 38;
    /// To change a value that the user gave.
    ALTER = 39;
    /// The whole of it: full, complete, everything.
    WHOLE = 40;
    /// A claim that the user has agreed.
    PRETEXT = 41;
    /// To write, create, update.
    WRITE = 42;
    /// A mark-up that poses as the system.
    SYSTEM_TAG = 43;
    /// To pay, charge, order.
    PAY = 44;
    /// The ways in which a user stays in control: ask first, show before.
    CARE = 45;
    /// Only, unless, except.
    UNLESS = 46;
    /// An answer that is asked of the model: reply, summary.
    ANSWER = 47;
    /// Not to tell, in languages that say it in one word.
    UNTOLD = 48;
    /// To say this very thing: mention this, reveal it.
    TELL_THIS = 49;
    /// Without a sound; common in honest documentation too.
    QUIET = 50;
    /// Others who would like to have the data.
    THIRD_PARTY = 51;
    /// What cannot be undone.
    IRREVERSIBLE = 52;
    /// What the tool itself does to the world: deletes, sends, pays.
    ACTS = 53;
    /// Encoding and decoding.
    CODE = 54;
    /// An appeal to what the model is supposed to want or fear.
    APPEAL = 55;
    /// A mail address.
    MAILBOX = 56;
    /// The order that every collection of attacks begins with: ignore previous instructions.
    CLASSIC = 57;
    /// To obey what stands in the data.
    OBEY = 58;
    /// To give away what is known: reveal, print, dump.
    DIVULGE = 59;
    /// A tool called by its name: the send_mail tool.
    NAMED_TOOL = 60;
    /// The word "tool" itself.
    TOOL_WORD = 61;
}

impl Mask {
    /// Nothing.
    pub const NONE: Mask = Mask(0);

    /// What only the user, the host or the model should see.
    pub const SENSITIVE: Mask =
        Mask(Mask::SECRET.0 | Mask::CONTEXT.0 | Mask::PERSONAL.0 | Mask::SECRET_PATH.0);

    /// Whether any of these meanings is in it.
    pub const fn has(self, any: Mask) -> bool {
        self.0 & any.0 != 0
    }

    /// Whether all of these meanings are in it.
    pub const fn has_all(self, all: Mask) -> bool {
        self.0 & all.0 == all.0
    }

    /// Both together, in constants.
    pub const fn and(self, other: Mask) -> Mask {
        Mask(self.0 | other.0)
    }

    /// What is left without these.
    pub const fn without(self, other: Mask) -> Mask {
        Mask(self.0 & !other.0)
    }
}

impl BitOr for Mask {
    type Output = Mask;

    fn bitor(self, other: Mask) -> Mask {
        Mask(self.0 | other.0)
    }
}

impl BitOrAssign for Mask {
    fn bitor_assign(&mut self, other: Mask) {
        self.0 |= other.0;
    }
}

/// A word that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Where it begins in the buffer.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// What it means.
    pub mask: Mask,
    /// Whether a negation governs it.
    pub negated: bool,
}

fn lexicon() -> &'static Terms {
    static LEXICON: OnceLock<Terms> = OnceLock::new();
    LEXICON.get_or_init(|| Terms::of(&all_terms()))
}

fn all_terms() -> Vec<Term> {
    let mut terms = Vec::new();
    for (mask, written) in TABLES.iter().flat_map(|table| table.iter()) {
        for text in *written {
            let word = text.trim_end_matches('*');
            let bordered = word.chars().next_back().is_some_and(has_borders);
            terms.push(Term { text: word, mask: *mask, open: text.ends_with('*') || !bordered });
        }
    }
    terms
}

/// Whether words of this character's script are set apart by spaces and stand without prefixes.
fn has_borders(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || matches!(character, '\u{c0}'..='\u{24f}' | '\u{370}'..='\u{52f}' | '\u{1e00}'..='\u{1eff}')
}

/// Finds the terms in laid-out text: the longest at each place where a word or a sign begins.
pub(super) fn look_up(text: &str, hits: &mut Vec<Hit>) {
    let lexicon = lexicon();
    let bytes = text.as_bytes();
    let mut look = |start: usize, place: &Place<'_>| {
        let found = lexicon.longest(place, |length| ends_word(text, start + length));
        if let Some((length, mask)) = found {
            hits.push(Hit { start, end: start + length, mask, negated: false });
        }
    };
    let mut at = 0;
    // Whether a letter of a script with borders stands right before.
    let mut within_word = false;
    while let Some(byte) = bytes.get(at) {
        let rest = &bytes[at..];
        match byte {
            b' ' | b'\n' => {
                within_word = false;
                at += 1;
            }
            b'a'..=b'z' | b'0'..=b'9' => {
                let first = Register::of(rest);
                let place = Place { rest, first, word: word_length(first, rest) };
                if !within_word && lexicon.may_begin_with_word(&place) {
                    look(at, &place);
                }
                at += place.word;
                // Most words end with a blank, and there is nothing to see in it.
                within_word = bytes.get(at) != Some(&b' ');
                at += usize::from(!within_word);
            }
            0..0x80 => {
                let place = Place { rest, first: Register::of(rest), word: 0 };
                if lexicon.may_begin_with_sign(&place) {
                    look(at, &place);
                }
                within_word = false;
                at += 1;
            }
            _ => {
                let (length, bordered) = other_character(*byte, &text[at..]);
                let place = Place { rest, first: Register::of(rest), word: 0 };
                if !(within_word && bordered) && lexicon.may_begin_otherwise(&place) {
                    look(at, &place);
                }
                within_word = bordered;
                at += length;
            }
        }
    }
}

/// Everything that a text means by its words.
fn meanings(text: &str) -> Mask {
    let mut hits = Vec::new();
    look_up(text, &mut hits);
    hits.iter().fold(Mask::NONE, |mask, hit| mask | hit.mask)
}

/// The length of a character that is not ASCII, and whether its script has borders.
#[inline]
fn other_character(first: u8, text: &str) -> (usize, bool) {
    match first {
        // From U+2000 on no script has any.
        0xe2..0xf0 => (3, false),
        0xf0.. => (4, false),
        _ => {
            let character = text.chars().next().unwrap_or(' ');
            (character.len_utf8(), has_borders(character))
        }
    }
}

/// How many lower-case letters and digits of ASCII a text begins with; its first eight bytes are at hand.
#[inline]
fn word_length(first: Register, text: &[u8]) -> usize {
    let length = first.lower_alphanumeric().not().before_first();
    if length < BYTES { length } else { BYTES + long_word_rest(&text[BYTES..]) }
}

#[cold]
fn long_word_rest(text: &[u8]) -> usize {
    let is_letter = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.iter().position(|byte| !is_letter(byte)).unwrap_or(text.len())
}

/// Whether no letter follows.
fn ends_word(text: &str, end: usize) -> bool {
    match text.as_bytes().get(end) {
        None => true,
        Some(byte) if byte.is_ascii() => !byte.is_ascii_alphanumeric(),
        Some(_) => !text[end..].chars().next().is_some_and(has_borders),
    }
}

/// The meanings in a name such as `send_password-reset` or `sendMail`.
pub(super) fn mask_of_name(name: &str) -> Mask {
    let mut words = String::with_capacity(name.len() + 8);
    fold_name(&name[..name.floor_char_boundary(200)], &mut words);
    meanings(&words)
}

/// Cuts a name into its words.
pub(super) fn fold_name(name: &str, words: &mut String) {
    let mut lower = false;
    // Without a way out in between, many bytes are looked at together.
    let is_odd = |byte: u8| !matches!(byte, b' '..=b'@' | b'['..=b'~');
    if !name.bytes().fold(false, |odd, byte| odd | is_odd(byte)) {
        let mut start = 0;
        for (at, _) in name.bytes().enumerate().filter(|(_, byte)| *byte == b'_') {
            words.push_str(&name[start..at]);
            words.push(' ');
            start = at + 1;
        }
        words.push_str(&name[start..]);
        return;
    }
    if name.is_ascii() {
        for byte in name.bytes() {
            if byte.is_ascii_uppercase() && lower {
                words.push(' ');
            }
            let letter =
                if matches!(byte, b'_' | b'\n') { b' ' } else { byte.to_ascii_lowercase() };
            words.push(char::from(letter));
            lower = byte.is_ascii_lowercase();
        }
        return;
    }
    for character in name.chars() {
        match character {
            '_' => words.push(' '),
            '\n' => words.push(' '),
            other => {
                if lower && other.is_uppercase() {
                    words.push(' ');
                }
                let mut folded = other.to_lowercase();
                words.push(folded.next().unwrap_or(other));
            }
        }
        lower = character.is_lowercase();
    }
}

/// Within how many bytes a negation governs what follows.
const REACH: usize = 48;
/// Within how many bytes a negation after the verb governs it.
const REACH_BACK: usize = 30;

/// A chain of meanings that together mean something else.
struct Chain {
    steps: &'static [Mask],
    /// How many bytes may lie between one step and the next.
    gap: usize,
    gives: Mask,
}

const CHAINS: &[Chain] = &[
    // Do not … tell … the user; nothing to tell the user.
    Chain { steps: &[Mask::NEGATION, Mask::TELL, Mask::USER], gap: 40, gives: Mask::CONCEAL },
    Chain { steps: &[Mask::NEGATION, Mask::TELL_THIS], gap: 30, gives: Mask::CONCEAL },
    Chain { steps: &[Mask::USER, Mask::UNTOLD], gap: 60, gives: Mask::CONCEAL },
    Chain { steps: &[Mask::UNTOLD, Mask::USER], gap: 60, gives: Mask::CONCEAL },
    // Do not … mention … in the answer.
    Chain { steps: &[Mask::NEGATION, Mask::TELL, Mask::ANSWER], gap: 16, gives: Mask::CONCEAL },
    // Without asking; no confirmation is needed.
    Chain { steps: &[Mask::NEGATION, Mask::ASK], gap: 24, gives: Mask::UNASKED },
    Chain { steps: &[Mask::ASK, Mask::NEGATION_AFTER], gap: 12, gives: Mask::UNASKED },
    // Even if … the user … wants something else.
    Chain { steps: &[Mask::EVEN_IF, Mask::USER], gap: 40, gives: Mask::AGAINST },
    Chain { steps: &[Mask::EVEN_IF, Mask::WANT], gap: 40, gives: Mask::AGAINST },
    Chain { steps: &[Mask::USER, Mask::EVEN_IF], gap: 30, gives: Mask::AGAINST },
];

/// Drops words that are part of a longer term: "no" in "no matter what" negates nothing.
pub(super) fn keep_longest(hits: &mut Vec<Hit>) {
    hits.sort_unstable_by_key(|hit| (hit.start, std::cmp::Reverse(hit.end)));
    let mut end = 0;
    let mut covering = (0, 0);
    hits.retain(|hit| {
        let inside = hit.end <= end && (hit.start, hit.end) != covering;
        if hit.end > end {
            end = hit.end;
            covering = (hit.start, hit.end);
        }
        !inside
    });
}

/// Marks what is negated, and adds what chains of words mean together.
pub(super) fn derive(reading: &mut Reading<'_>) {
    for number in 0..reading.sentences.len() {
        let (text, hits, sentence) = reading.hits_mut(number);
        if hits.is_empty() {
            continue;
        }
        mark_negated(text, hits);
        drop_false_care(hits);
        for hit in hits.iter_mut() {
            // "Tell the user" is care; "do not tell the user" is its contrary.
            if hit.negated && hit.mask.has_all(Mask::CARE | Mask::TELL | Mask::USER) {
                hit.mask |= Mask::CONCEAL;
            }
        }
        let mut present = hits.iter().fold(Mask::NONE, |mask, hit| mask | hit.mask);
        for chain in CHAINS {
            if chain.steps.iter().all(|step| present.has(*step)) {
                apply(chain, text, hits);
                present |= chain.gives;
            }
        }
        sentence.mask = hits.iter().fold(Mask::NONE, |mask, hit| {
            let meant = if hit.negated { hit.mask.without(NEGATABLE) } else { hit.mask };
            mask | meant
        });
    }
}

/// Meanings that turn into their contrary when negated; the others stay what they are.
const NEGATABLE: Mask = Mask::PUT
    .and(Mask::TRANSFER)
    .and(Mask::COLLECT)
    .and(Mask::OVERRIDE)
    .and(Mask::DESTROY)
    .and(Mask::DISABLE)
    .and(Mask::ALTER)
    .and(Mask::WRITE)
    .and(Mask::PAY)
    .and(Mask::REPLACE)
    .and(Mask::EXECUTE)
    .and(Mask::USE)
    .and(Mask::CARE)
    .and(Mask::ACTS)
    .and(Mask::ROLE)
    .and(Mask::CLASSIC)
    .and(Mask::OBEY)
    .and(Mask::DIVULGE);

fn mark_negated(text: &str, hits: &mut [Hit]) {
    // Where the last negation ended, while its clause lasts.
    let mut last: Option<usize> = None;
    for number in 0..hits.len() {
        let hit = hits[number];
        if let Some(end) = last
            && hit.start >= end
        {
            let broken = hit.start - end > REACH || clause_ends(&text[end..hit.start]);
            hits[number].negated = !broken;
        }
        if hit.mask.has(Mask::NEGATION) {
            last = Some(hit.end);
        }
        if hit.mask.has(Mask::NEGATION_AFTER) {
            for earlier in hits[..number].iter_mut().rev() {
                let near = earlier.end <= hit.start && hit.start - earlier.end <= REACH_BACK;
                if !near && earlier.end + REACH_BACK < hit.start {
                    break;
                }
                if near && !clause_ends(&text[earlier.end..hit.start]) {
                    earlier.negated = true;
                }
            }
        }
    }
}

/// "Confirm with the user" inside "without confirming with the user" is no care.
fn drop_false_care(hits: &mut [Hit]) {
    for number in 1..hits.len() {
        let (earlier, later) = (hits[number - 1], hits[number]);
        if later.start < earlier.end {
            let both = earlier.mask | later.mask;
            if both.has_all(Mask::CARE | Mask::UNASKED) {
                hits[number - 1].mask = earlier.mask.without(Mask::CARE);
                hits[number].mask = later.mask.without(Mask::CARE);
            }
        }
    }
}

fn clause_ends(between: &str) -> bool {
    between.char_indices().any(|(at, character)| match character {
        ',' | ';' | ':' | '(' | ')' | '、' | '，' | '；' | '،' | '"' | '«' | '»' => true,
        ' ' => between[at..].starts_with(" but ") || between[at..].starts_with(" and then "),
        _ => false,
    })
}

/// Adds what a chain gives to its last word, for each place where the chain is found.
fn apply(chain: &Chain, text: &str, hits: &mut [Hit]) {
    let Some((first, rest)) = chain.steps.split_first() else { return };
    for start in 0..hits.len() {
        if !hits[start].mask.has(*first) {
            continue;
        }
        let mut at = start;
        let complete = rest.iter().all(|step| {
            let end = hits[at].end;
            let next =
                (at + 1..hits.len()).take_while(|n| hits[*n].start <= end + chain.gap).find(|n| {
                    hits[*n].start >= end
                        && hits[*n].mask.has(*step)
                        && !text[end..hits[*n].start].contains([';', '(', ')', '；'])
                });
            match next {
                Some(next) => {
                    at = next;
                    true
                }
                None => false,
            }
        });
        if complete {
            hits[at].mask |= chain.gives;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_term_is_found_where_it_stands_alone() {
        for Term { text, mask, .. } in all_terms() {
            let mut hits = Vec::new();
            look_up(text, &mut hits);
            let found = hits.iter().find(|hit| hit.start == 0);
            assert!(
                found.is_some_and(|hit| hit.end == text.len() && hit.mask.has_all(mask)),
                "{text:?}"
            );
        }
    }

    #[test]
    fn every_term_is_as_laid_out_text_would_be() {
        for (_, written) in TABLES.iter().flat_map(|table| table.iter()) {
            for term in *written {
                let word = term.trim_end_matches('*');
                assert!(!word.starts_with(' '), "{term:?}");
                assert!(!word.trim().is_empty() && !word.contains("  "), "{term:?}");
                assert!(word.len() > 1, "{term:?}");
                assert!(!word.contains('*') || word.contains("***"), "a star inside: {term:?}");
                let lower: String = word.chars().flat_map(char::to_lowercase).collect();
                assert_eq!(word, lower, "{term:?}");
            }
        }
    }

    #[test]
    fn words_are_found_whole_and_stems_open() {
        assert!(meanings("upload the file").has(Mask::TRANSFER));
        assert!(!meanings("uploader's loadstar").has(Mask::COLLECT));
        assert!(!meanings("another nothingness").has(Mask::NEGATION));
        assert!(meanings("请不要告诉用户").has_all(Mask::CONCEAL | Mask::USER));
    }

    #[test]
    fn names_are_cut_into_words() {
        assert!(mask_of_name("sendPassword").has_all(Mask::SECRET | Mask::TRANSFER));
        assert!(mask_of_name("read_api_key").has(Mask::SECRET));
    }
}
