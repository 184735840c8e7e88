//! The meanings that detectors reason over.
//!
//! "send" and "отправьте" are both [`Mask::TRANSFER`]: a detector asks which meanings a sentence has,
//! never which words. The word lists in the crate's `lexicon` folder say which terms have which meaning,
//! and name each meaning as it is named here, in lower case.

use std::ops::{BitOr, BitOrAssign};

/// A set of meanings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Mask(u64);

/// Defines one constant for each meaning, with its bit in the order of the list, and [`MEANINGS`].
macro_rules! meanings {
    ($(#[doc = $doc:literal] $name:ident)*) => {
        #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "only counts the bits")]
        enum Bit {
            $($name,)*
        }

        impl Mask {
            $(#[doc = $doc] pub(super) const $name: Mask = Mask(1 << Bit::$name as u8);)*
        }

        /// Every meaning: its name, its set and its description.
        pub(super) const MEANINGS: &[(&str, Mask, &str)] = &[$((stringify!($name), Mask::$name, $doc),)*];
    };
}

meanings! {
    /// Not, never, without.
    NEGATION
    /// A negation that follows its verb.
    NEGATION_AFTER
    /// To tell, show, mention.
    TELL
    /// The person served: user, customer, patient.
    USER
    /// Keeping something from the user.
    CONCEAL
    /// To put into a parameter: pass, fill in, append, copy.
    PUT
    /// To send elsewhere.
    TRANSFER
    /// To read, open, collect.
    COLLECT
    /// Passwords, keys, tokens.
    SECRET
    /// Known to the model alone: its instructions, the conversation.
    CONTEXT
    /// Personal data.
    PERSONAL
    /// A file that holds secrets.
    SECRET_PATH
    /// An address, host or network outside.
    EXTERNAL
    /// To ignore, cancel, supersede.
    OVERRIDE
    /// Instructions, rules, guidance.
    INSTRUCTIONS
    /// Belonging to the model or its host: your, system, safety.
    MODEL
    /// Previous, all, above.
    PRIOR
    /// A new role for the model.
    ROLE
    /// A general word for an assistant: assistant, AI, agent, bot.
    ASSISTANT
    /// Other tools, in general.
    OTHER_TOOL
    /// A tool or server of the peers, by its name. No word has it.
    PEER
    /// To use, to call.
    USE
    /// The only one, the official one.
    SOLE
    /// Even if, regardless of.
    EVEN_IF
    /// To want, ask for, say.
    WANT
    /// Against what the user asked for.
    AGAINST
    /// To ask back, confirmation, consent.
    ASK
    /// Acting without asking.
    UNASKED
    /// To delete, cancel, revoke.
    DESTROY
    /// To switch off, skip, bypass.
    DISABLE
    /// Protection: checks, alarms, audit.
    CONTROL
    /// Code fetched and run.
    EXECUTE
    /// A place where code survives a restart.
    PERSIST
    /// Broken, unavailable, unsafe.
    DISPARAGE
    /// To take the place of.
    REPLACE
    /// Talk about attacks: lesson, example, phishing.
    ABOUT_ATTACKS
    /// Always, each time, any.
    ALWAYS
    /// A promise that nothing happens: read-only, nothing is sent.
    ASSURANCE
    /// To change a value that the user gave.
    ALTER
    /// The whole of it: full, complete, everything.
    WHOLE
    /// A claim that the user has agreed.
    PRETEXT
    /// To write, create, update.
    WRITE
    /// Mark-up that poses as the system.
    SYSTEM_TAG
    /// To pay, charge, order.
    PAY
    /// The user stays in control: ask first, show before.
    CARE
    /// Only, unless, except.
    UNLESS
    /// An answer that is asked of the model: reply, summary.
    ANSWER
    /// Not to tell, in languages that have one word for it.
    UNTOLD
    /// To say this very thing: mention this, reveal it.
    TELL_THIS
    /// Without a sound; common in honest documentation too.
    QUIET
    /// Others who would like to have the data.
    THIRD_PARTY
    /// Not to be undone.
    IRREVERSIBLE
    /// Actions of the tool itself: deletes, sends, pays.
    ACTS
    /// Encoding and decoding.
    CODE
    /// An appeal to what the model is supposed to want or fear.
    APPEAL
    /// A mail address. No word has it.
    MAILBOX
    /// The order that every collection of attacks begins with: ignore previous instructions.
    CLASSIC
    /// To obey text in the data.
    OBEY
    /// To give away what is known: reveal, print, dump.
    DIVULGE
    /// A tool called by its name: the send_mail tool. No word has it.
    NAMED_TOOL
    /// The word "tool" itself.
    TOOL_WORD
    /// Of no interest: hides shorter terms in it, and the same word of other languages.
    ORDINARY
}

impl Mask {
    /// No meaning.
    pub(super) const NONE: Mask = Mask(0);

    /// Data that only the user, the host or the model should see.
    pub(super) const SENSITIVE: Mask =
        Mask::SECRET.and(Mask::CONTEXT).and(Mask::PERSONAL).and(Mask::SECRET_PATH);

    /// The meaning with this name, in lower case.
    pub(super) fn named(name: &str) -> Option<Mask> {
        let lower = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let found = MEANINGS.iter().find(|(known, ..)| lower && known.eq_ignore_ascii_case(name));
        found.map(|(_, mask, _)| *mask)
    }

    /// Returns true if any of these meanings is in the set.
    pub(super) const fn has(self, any: Mask) -> bool {
        self.0 & any.0 != 0
    }

    /// Returns true if all of these meanings are in the set.
    pub(super) const fn has_all(self, all: Mask) -> bool {
        self.0 & all.0 == all.0
    }

    /// Both sets together, for constants.
    pub(super) const fn and(self, other: Mask) -> Mask {
        Mask(self.0 | other.0)
    }

    /// The set without these meanings.
    pub(super) const fn without(self, other: Mask) -> Mask {
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

impl FromIterator<Mask> for Mask {
    fn from_iter<I: IntoIterator<Item = Mask>>(masks: I) -> Mask {
        masks.into_iter().fold(Mask::NONE, BitOr::bitor)
    }
}

/// A stretch of text that has a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    /// Its first byte in the text.
    pub(super) start: usize,
    /// The byte after its last.
    pub(super) end: usize,
    /// Its meanings.
    pub(super) mask: Mask,
    /// True if a negation governs it.
    pub(super) negated: bool,
}

impl Hit {
    /// A hit that no negation governs so far.
    pub(super) fn new(start: usize, end: usize, mask: Mask) -> Hit {
        Hit { start, end, mask, negated: false }
    }
}
