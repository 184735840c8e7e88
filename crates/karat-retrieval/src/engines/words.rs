//! Text to words, the way tool names need it.
//!
//! `createIssue`, `create_issue` and `create-issue` all become `create issue`, and an acronym stays
//! in one piece (`parseHTMLPage` is `parse html page`). Letters of other scripts are words too.

/// The words of a text, lower-cased, in order.
pub(crate) fn tokenize(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for_each_word(text, |word| found.push(word.to_owned()));
    found
}

/// Calls `found` with each word of a text, lower-cased, in order.
pub(crate) fn for_each_word(text: &str, mut found: impl FnMut(&str)) {
    let mut word = String::new();
    let mut previous = Class::Other;
    let mut letters = text.chars().map(|letter| (letter, Class::of(letter)));
    let mut upcoming = letters.next();
    while let Some((letter, class)) = upcoming {
        upcoming = letters.next();
        let next = upcoming.map_or(Class::Other, |(_, class)| class);
        let starts = match (previous, class) {
            (_, Class::Other) | (Class::Other, _) => true,
            (Class::Lower | Class::Digit, Class::Upper) => true,
            // The last capital of an acronym belongs to the word that follows it.
            (Class::Upper, Class::Upper) => next == Class::Lower,
            _ => false,
        };
        if starts && !word.is_empty() {
            found(&word);
            word.clear();
        }
        if class != Class::Other {
            word.extend(letter.to_lowercase());
        }
        previous = class;
    }
    if !word.is_empty() {
        found(&word);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Upper,
    Lower,
    Digit,
    Other,
}

impl Class {
    fn of(letter: char) -> Class {
        match letter {
            letter if letter.is_uppercase() => Class::Upper,
            letter if letter.is_numeric() => Class::Digit,
            letter if letter.is_alphabetic() => Class::Lower,
            _ => Class::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::tokenize;

    #[test]
    fn names_of_every_style_give_the_same_words() {
        for name in ["createIssue", "create_issue", "create-issue", "CreateIssue", "create issue"] {
            assert_eq!(tokenize(name), ["create", "issue"], "{name}");
        }
    }

    #[test]
    fn acronyms_digits_and_other_scripts_are_words() {
        assert_eq!(tokenize("parseHTMLPage"), ["parse", "html", "page"]);
        assert_eq!(tokenize("s3GetObject"), ["s3", "get", "object"]);
        assert_eq!(tokenize("поиск файла 東京"), ["поиск", "файла", "東京"]);
        assert!(tokenize(" -- _ ").is_empty());
    }
}
