//! The names of imported systems. An entry of karat.toml, and the files that are named after it, can have
//! few letters; tables show the name as the source writes it.

use std::borrow::Cow;

use crate::dataset::Digest;
use crate::kind::Kind;
use crate::report::{Property, Report};

/// The most letters of the name of an entry, and of one with digits of a digest behind it.
const MAX_LETTERS: usize = 120;
const MAX_LETTERS_BEFORE_DIGITS: usize = 100;
const DIGITS: usize = 8;
/// The end of the name of an entry about all goals of AgentDojo 1.2.
const LATER: &str = ".v1.2";

/// The name of a system of a source, as an entry can have it.
pub fn entry_name(source: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = source.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    let short: String = name.trim_start_matches('.').chars().take(MAX_LETTERS).collect();
    if short.is_empty() { "unnamed".to_owned() } else { short }
}

/// The same with digits of the digest of the source's name, where the letters alone would not tell it from
/// others.
pub fn numbered_entry_name(source: &str) -> String {
    let digest = Digest::of(source.as_bytes()).to_string();
    let digits = digest.rsplit(':').next().unwrap_or_default();
    let name = entry_name(source);
    // A name that starts with a dash would be read as an option.
    let name = name.trim_end_matches('_').trim_start_matches(['_', '-']);
    let short: String = name.chars().take(MAX_LETTERS_BEFORE_DIGITS).collect();
    let short: &str = if short.is_empty() { "system" } else { &short };
    format!("{short}-{}", digits.get(..DIGITS).unwrap_or(digits))
}

impl Report {
    /// The name as tables show it: that of the source where the entry was named after it by an import,
    /// else that of the entry.
    pub fn label(&self) -> Cow<'_, str> {
        let recorded = matches!(self.kind, Kind::Outcomes | Kind::Resilience);
        if !recorded || self.system.kind != "file" || self.system.name == self.name {
            return Cow::Borrowed(&self.name);
        }
        let (name, end) = match self.name.strip_suffix(LATER) {
            Some(name) => (name, LATER),
            None => (self.name.as_str(), ""),
        };
        let attack = self.items.iter().find_map(|item| item.tag(Property::Attack));
        let with_attack = attack.map(|attack| format!("{}.{attack}", self.system.name));
        let sources = [Some(self.system.name.clone()), with_attack];
        let is_named =
            |source: &String| entry_name(source) == name || numbered_entry_name(source) == name;
        match sources.into_iter().flatten().find(is_named) {
            Some(source) => Cow::Owned(source + end),
            None => Cow::Borrowed(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_plain_letters_stay_apart() {
        assert_eq!(entry_name("openai/gpt 4"), "openai_gpt_4");
        assert_eq!(entry_name("..."), "unnamed");
        let names = ["模型", "型模", "модель-1"].map(numbered_entry_name);
        assert!(names[0].starts_with("system-") && names[0].len() == 15, "{names:?}");
        assert_ne!(names[0], names[1]);
        assert!(names[2].starts_with("1-"), "{names:?}");
    }
}
