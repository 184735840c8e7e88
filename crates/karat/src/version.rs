//! `karat --version --verbose`: the build, for a bug report.

use std::ffi::OsString;

/// The commit, if the build knew it.
const COMMIT: Option<&str> = option_env!("KARAT_BUILT_FROM");
/// The optional features that this build has.
const FEATURES: [(&str, bool); 2] =
    [("embeddings", cfg!(feature = "embeddings")), ("yara", cfg!(feature = "yara"))];

/// Returns whether the arguments ask for the version and for all about it, in either order. clap would
/// print the version alone as soon as it reads that flag.
pub(crate) fn is_asked_for(arguments: impl Iterator<Item = OsString>) -> bool {
    let arguments: Vec<OsString> = arguments.skip(1).collect();
    let [one, two] = &*arguments else { return false };
    let version = |word: &OsString| word == "--version" || word == "-V";
    let verbose = |word: &OsString| word == "--verbose" || word == "-v";
    version(one) && verbose(two) || verbose(one) && version(two)
}

/// The version, commit, target and features of this build.
pub(crate) fn verbose() -> String {
    let features: Vec<&str> =
        FEATURES.iter().filter(|(_, present)| *present).map(|(name, _)| *name).collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    format!(
        "karat {}\ncommit: {}\ntarget: {}\nfeatures: {features}\n",
        env!("CARGO_PKG_VERSION"),
        COMMIT.unwrap_or("unknown"),
        env!("KARAT_TARGET"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_flags_are_needed_in_either_order_and_spelling() {
        let asked =
            |words: &[&str]| is_asked_for(["karat"].iter().chain(words).map(OsString::from));
        for words in [["--version", "--verbose"], ["--verbose", "--version"], ["-V", "-v"]] {
            assert!(asked(&words), "{words:?}");
        }
        assert!(asked(&["-V", "--verbose"]) && asked(&["--version", "-v"]));
        for words in
            [&["--version"][..], &["-v"], &["-V", "-V"], &["-v", "--verbose"], &["check", "-v"]]
        {
            assert!(!asked(words), "{words:?}");
        }
    }
}
