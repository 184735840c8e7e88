//! The folders in which a release has answers and verdicts: `RUN/result/MODEL`, `RUN/score/MODEL`.

use crate::source::File;

/// Returns whether a file lies in a folder of answers or of verdicts.
pub(super) fn is_below(file: &File, kind: &str) -> bool {
    let parts = file.parts();
    run_of(&parts[..parts.len() - 1], kind).is_some()
}

/// The run that folders name, and the place of `result` or `score` among them.
pub(super) fn run_of(folders: &[&str], kind: &str) -> Option<(String, usize)> {
    let is_kind = |part: &&str| {
        let rest = part.strip_prefix(kind);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
    };
    let at = folders.iter().rposition(is_kind)?;
    let mut run: Vec<&str> = folders[..at].iter().copied().filter(|p| *p != "results").collect();
    let rest = folders[at].strip_prefix(kind).unwrap_or_default();
    run.extend(Some(rest.trim_start_matches(['-', '_'])).filter(|rest| !rest.is_empty()));
    Some((run.join("_"), at))
}
