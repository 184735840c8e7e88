//! Judges the outcome of an attempt: proven, held, refused before the tool used it, or neither.

use std::collections::BTreeSet;

use serde_json::Value;

use super::attempts::{Attempt, Proof};
use super::canary_site::CanarySite;
use crate::observation::Outcome;
use crate::probe::encodings::find_encoded;
use crate::probe::live::CallResult;
use crate::probe::reaction::{self, INVALID_PARAMS, Reaction};

/// Words of a server that refuses to go there, whether the file exists or not.
const DENIALS: [&str; 16] = [
    "outside",
    "denied",
    "not allowed",
    "disallowed",
    "not permitted",
    "permission",
    "forbidden",
    "escape",
    "traversal",
    "restricted",
    "unauthorized",
    "within",
    "beyond",
    "relative",
    "invalid path",
    "security",
];

/// Returns whether the answers for a file that exists and for one that does not differ in more than the path,
/// without being a refusal.
pub(super) fn looks_at_files(there: (&Attempt, &Outcome), missing: (&Attempt, &Outcome)) -> bool {
    if !there.1.is_answer() || !missing.1.is_answer() {
        return false;
    }
    let said = without_paths(there);
    let words = |text: &str| {
        let words = text.split(|c: char| !c.is_alphabetic()).filter(|word| word.len() > 1);
        words.map(str::to_owned).collect::<BTreeSet<String>>()
    };
    !DENIALS.iter().any(|denial| said.contains(denial))
        && words(&said) != words(&without_paths(missing))
}

/// Returns whether a call with a path that leads outside succeeded, without a word of refusal.
pub(super) fn goes_there(attempt: &Attempt, outcome: &Outcome) -> bool {
    let said = || without_paths((attempt, outcome));
    Reaction::from(outcome) == Reaction::Accepted
        && !DENIALS.iter().any(|denial| said().contains(denial))
}

/// An answer in lower case, without the texts that were sent.
fn without_paths((attempt, outcome): (&Attempt, &Outcome)) -> String {
    let mut sent = Vec::new();
    attempt.arguments.values().for_each(|value| strings(value, &mut sent));
    let mut text = reaction::text(outcome).to_lowercase();
    for value in sent {
        let name = value.rsplit('/').next().unwrap_or_default();
        for part in [value.as_str(), value.trim_start_matches(['.', '/']), name] {
            if !part.is_empty() {
                text = text.replace(part, " ");
            }
        }
    }
    text
}

/// Collects every text in a value, in lower case.
fn strings(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.to_lowercase()),
        Value::Array(list) => list.iter().for_each(|value| strings(value, into)),
        Value::Object(fields) => fields.values().for_each(|value| strings(value, into)),
        _ => {}
    }
}

/// Returns whether the server withstood an attempt that proved nothing: it answered or refused it, or, if that is
/// the only question, it still runs.
pub(super) fn is_held(attempt: &Attempt, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Transport { why } => is_refused_by_http(why) || is_overload(attempt),
        // An answer that cannot be read, such as a deep value that comes back, is one of a server that runs.
        Outcome::Invalid { .. } => is_overload(attempt),
        outcome => outcome.is_answer(),
    }
}

/// Returns whether an attempt is to end or block the server.
pub(super) fn is_overload(attempt: &Attempt) -> bool {
    attempt.proofs.iter().any(|proof| matches!(proof, Proof::Overrun | Proof::Ended))
}

/// The way in which a call that came to its end had no answer that can be read; none if it had one.
pub(super) fn unanswered(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Invalid { .. } => Some("unreadable"),
        Outcome::Transport { why } => match reaction::http_status(why) {
            None => Some("failed connection"),
            Some(status) if status.starts_with('4') => None,
            // Those in front of a server that is down differ from one request to the next.
            Some(status) if status.starts_with('5') => Some("HTTP status 5xx"),
            Some(_) => Some("HTTP status without an answer"),
        },
        _ => None,
    }
}

/// The failure of a call, so that two of them can be compared; none if it did not fail, or was not ended.
pub(super) fn failure_of(outcome: &Outcome) -> Option<BTreeSet<String>> {
    let unanswered = || Some(BTreeSet::from([unanswered(outcome)?.to_owned()]));
    reaction::failure_of(outcome).or_else(unanswered)
}

/// The HTTP status of firewalls and servers that detect an attack. It may be about the sender too, so it is not a refusal
/// of arguments ([`Reaction::Refused`]); of an attack it says that nothing was carried out.
const FORBIDDEN: &str = "403";

/// Returns whether an HTTP status says that a request was not carried out, and not for its frequency.
fn is_refused_by_http(why: &str) -> bool {
    reaction::http_status(why)
        .is_some_and(|status| reaction::refuses_content(status) || status.starts_with(FORBIDDEN))
}

/// Returns whether the arguments were refused as invalid, before the tool used them.
pub(super) fn is_refused_as_invalid(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::ProtocolError { code, .. } => *code == INVALID_PARAMS,
        other => other.is_tool_error() && Reaction::from(other) == Reaction::Refused,
    }
}

/// The proof that an attempt worked. Contacts with the listener that no number connects with it are judged elsewhere.
pub(super) fn proven(attempt: &Attempt, called: &CallResult, site: &CanarySite) -> Option<String> {
    let outcome = &called.outcome;
    let text = reaction::text(outcome);
    attempt.proofs.iter().find_map(|proof| match proof {
        Proof::Mark(_) | Proof::Called(_) => side_effect(proof, site),
        Proof::Product => {
            text.contains(&site.product()).then(|| "the product was computed".to_owned())
        }
        Proof::Token(what, token) => {
            find_encoded(&text, token).map(|how| format!("{what} is in the answer, {how}"))
        }
        Proof::Changed => site.change(),
        Proof::Visited(_) => None,
        Proof::Overrun => overrun(outcome).or_else(|| ended(outcome)),
        Proof::Ended => ended(outcome),
    })
}

/// The evidence of a request to the listener.
pub(super) const CALLED: &str = "the listener on 127.0.0.1 was called";

/// A side effect that only this attempt can have had, whatever the answer is.
pub(super) fn side_effect(proof: &Proof, site: &CanarySite) -> Option<String> {
    match proof {
        Proof::Mark(path) => path.exists().then(|| "the command made its file".to_owned()),
        Proof::Called(page) => site.listener.was_called(*page).then(|| CALLED.to_owned()),
        _ => None,
    }
}

fn overrun(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Invalid { why } if why.starts_with("the answer has more than") => {
            Some(why.clone())
        }
        _ => None,
    }
}

fn ended(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Timeout => Some("no answer in time".to_owned()),
        Outcome::Crash { .. } => Some("the server ended".to_owned()),
        Outcome::Transport { why }
            if reaction::http_status(why).is_some_and(|status| status.starts_with('5')) =>
        {
            Some(why.clone())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::probe::reaction::words_of;

    fn answered(path: &str, text: &str) -> (Attempt, Outcome) {
        let arguments = json!({"path": path}).as_object().unwrap().clone();
        let attempt = Attempt { about: String::new(), arguments, proofs: Vec::new() };
        let content = json!([{"type": "text", "text": text}]);
        (attempt, Outcome::Result { result: json!({"content": content, "isError": true}) })
    }

    #[test]
    fn a_file_that_cannot_be_used_was_looked_at_and_a_refusal_was_not() {
        let looks = |there: &str, missing: &str| {
            let (there, missing) = (answered("/o/a.txt", there), answered("/o/b-7.txt", missing));
            looks_at_files((&there.0, &there.1), (&missing.0, &missing.1))
        };
        assert!(looks("zip: not a valid zip file", "open /o/b-7.txt: no such file"));
        assert!(!looks("not found: /o/a.txt", "not found: /o/b-7.txt"));
        assert!(looks("/o/a.txt: 3 lines", "there is no b-7.txt"));
        assert!(!looks("/o/a.txt is outside the root", "there is no b-7.txt"));
    }

    #[test]
    fn the_order_of_complaints_does_not_matter() {
        let (_, one) = answered("a", "path: not absolute\nname: too long");
        let (_, other) = answered("b", "name: too long\npath: not absolute");
        assert_eq!(words_of(&one), words_of(&other));
        assert_ne!(words_of(&one), words_of(&answered("c", "name: too long").1));
    }

    #[test]
    fn a_forbidden_attack_is_held_and_forbidden_arguments_are_not_refused() {
        let (attempt, _) = answered("a", "");
        for (status, is_held_by_it, reaction) in [
            ("400 Bad Request", true, Reaction::Refused),
            ("403 Forbidden", true, Reaction::Failed),
            ("401 Unauthorized", false, Reaction::Failed),
            ("429 Too Many Requests", false, Reaction::Failed),
            ("500", false, Reaction::NoAnswer),
        ] {
            let outcome = Outcome::Transport { why: format!("HTTP status {status}") };
            assert_eq!(is_held(&attempt, &outcome), is_held_by_it, "{status}");
            assert_eq!(Reaction::from(&outcome), reaction, "{status}");
        }
    }

    #[test]
    fn an_unreadable_answer_to_an_overload_is_one_of_a_server_that_runs() {
        let (mut attempt, _) = answered("a", "");
        let invalid = Outcome::Invalid { why: "the answer has more than 64 levels".to_owned() };
        assert!(!is_held(&attempt, &invalid));
        attempt.proofs.push(Proof::Ended);
        assert!(is_held(&attempt, &invalid));
    }
}
