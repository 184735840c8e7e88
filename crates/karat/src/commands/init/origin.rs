//! The source of Karat for CI: an address that git can clone, and a commit, tag or branch. It comes from
//! the user, or from where the running program was installed from. An address that only this machine
//! knows does not count, and credentials are never written down.

use std::path::{Path, PathBuf};

use karat_core::provenance::git;
use karat_io::input::{Limits, load};
use karat_io::text::printable;

/// The kind of an address, for a message.
const FORMS: &str = "https://…, ssh://… or git@HOST:PATH, with #REF for a tag, branch or commit";
/// The longest address, and the longest name of a ref, that is written into a file.
const MAX_BYTES: usize = 1_000;

/// A Karat that git can clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) address: String,
    /// A commit, tag or branch; without it, the default branch.
    pub(super) reference: Option<String>,
}

impl Origin {
    /// Parses `URL` or `URL#REF`.
    ///
    /// # Errors
    /// The problem, without parts that could be a secret.
    pub(super) fn parse(text: &str) -> Result<Origin, String> {
        let (address, reference) = match text.split_once('#') {
            Some((address, reference)) => (address, Some(reference)),
            None => (text, None),
        };
        let found = Address::parse(address)?;
        if found.secret {
            return Err(format!(
                "a URL with a password or token must not be written to a file; use {} and let CI log in \
                 by other means",
                found.without_secret
            ));
        }
        let reference = reference.map(checked_reference).transpose()?;
        Ok(Origin { address: found.without_secret, reference })
    }

    /// The origin of the running program, if it is known and others can reach it.
    pub(super) fn of_this_program() -> Option<Origin> {
        installed(&std::env::current_exe().ok()?).or_else(|| {
            Some(Origin { address: usable(env!("CARGO_PKG_REPOSITORY"))?, reference: None })
        })
    }

    /// Returns whether CI needs a key to clone it.
    pub(super) fn needs_key(&self) -> bool {
        !self.address.starts_with("https://")
    }

    /// As the user would write it.
    pub(super) fn text(&self) -> String {
        match &self.reference {
            Some(reference) => format!("{}#{reference}", self.address),
            None => self.address.clone(),
        }
    }
}

/// An address that has one of the known forms.
struct Address {
    /// True if there was a password, or a name that may be a token.
    secret: bool,
    without_secret: String,
}

impl Address {
    fn parse(address: &str) -> Result<Address, String> {
        let shown = printable(&without_user(address)).into_owned();
        let wrong = |why: &str| Err(format!("{shown:?} {why}: {FORMS}"));
        // None of these means anything to a shell, to YAML in quotes or to an expression.
        let known = |c: char| c.is_ascii_alphanumeric() || "-._~/:@%+=,[]".contains(c);
        if !address.chars().all(known) || address.len() > MAX_BYTES {
            return wrong("is too long or has invalid characters");
        }
        let (scheme, rest) = if let Some(rest) = address.strip_prefix("https://") {
            ("https://", rest)
        } else if let Some(rest) = address.strip_prefix("ssh://") {
            ("ssh://", rest)
        } else if !address.contains("://") && address.contains('@') {
            ("", address)
        } else {
            return wrong("is not a URL that CI can clone");
        };
        let end = if scheme.is_empty() { ':' } else { '/' };
        let Some((at, path)) = rest.split_once(end) else { return wrong("names no repository") };
        let (user, host) =
            at.rsplit_once('@').map_or((None, at), |(user, host)| (Some(user), host));
        let named = |text: &str| text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[');
        let nowhere = path.trim_matches('/').is_empty() || path.contains('@');
        if nowhere || !named(host) || user.is_some_and(|user| !named(user)) {
            return wrong("names no repository");
        }
        // Over HTTPS the name alone may be a token; over SSH it is the account that has the key.
        let (account, secret) = match user {
            None => (None, false),
            Some(_) if scheme == "https://" => (None, true),
            Some(user) => match user.split_once(':') {
                Some((account, _)) => (Some(account), true),
                None => (Some(user), false),
            },
        };
        let account = account.map(|account| format!("{account}@")).unwrap_or_default();
        let without_secret = format!("{scheme}{account}{host}{end}{path}");
        Ok(Address { secret, without_secret })
    }
}

/// An address without the part before an `@`, for a message.
fn without_user(address: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), address),
    };
    let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
    // A token may be in a query too.
    format!("{scheme}{}", rest.split('?').next().unwrap_or_default())
}

fn checked_reference(reference: &str) -> Result<String, String> {
    let known = |c: char| c.is_ascii_alphanumeric() || "-._/+".contains(c);
    let named = reference.starts_with(|c: char| c.is_ascii_alphanumeric());
    if named && reference.chars().all(known) && reference.len() <= MAX_BYTES {
        return Ok(reference.to_owned());
    }
    Err(format!("#{} is not the name of a tag, branch or commit", printable(reference)))
}

/// An address that was found, without its credentials.
fn usable(address: &str) -> Option<String> {
    Address::parse(address).ok().map(|found| found.without_secret)
}

/// The origin of an installed program. Cargo keeps that in `.crates.toml` above the folder `bin` of
/// what it installed; a program in another place was not installed by it.
fn installed(program: &Path) -> Option<Origin> {
    let folder = program.parent().filter(|folder| folder.ends_with("bin"))?;
    let list = folder.parent()?.join(".crates.toml");
    if !list.is_file() {
        return None;
    }
    let list: toml::Table = load(&list, &Limits::default()).ok()?;
    let name = program.file_stem()?.to_str()?;
    let installs = |programs: &toml::Value| {
        let mut programs =
            programs.as_array().into_iter().flatten().filter_map(toml::Value::as_str);
        programs.any(|one| one.trim_end_matches(".exe") == name)
    };
    let packages = list.get("v1")?.as_table()?;
    let (package, _) = packages.iter().find(|(_, programs)| installs(programs))?;
    let source = package.split_once(" (")?.1.strip_suffix(')')?;
    match source.split_once('+')? {
        ("git", address) => from_git(address),
        ("path", address) => from_checkout(&path_of(address)?),
        _ => None,
    }
}

/// `URL?branch=NAME#COMMIT`, where the query may be missing.
fn from_git(source: &str) -> Option<Origin> {
    let (address, commit) = source.split_once('#')?;
    let address = match address.split_once('?') {
        Some((address, query)) => {
            let of_cargo = ["rev=", "branch=", "tag="].iter().any(|key| query.starts_with(key));
            (of_cargo && !query.contains('&')).then_some(address)?
        }
        None => address,
    };
    Some(Origin { address: usable(address)?, reference: checked_reference(commit).ok() })
}

/// `file:///FOLDER`, with odd characters as %XX.
fn path_of(address: &str) -> Option<PathBuf> {
    let mut rest = address.strip_prefix("file://")?.as_bytes();
    let mut path = Vec::new();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after) {
            (b'%', [high, low, after @ ..]) => {
                let digits = [*high, *low];
                path.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
                rest = after;
            }
            _ => path.push(byte),
        }
    }
    Some(PathBuf::from(String::from_utf8(path).ok()?))
}

/// The origin of a checkout, at its commit if others can have it.
fn from_checkout(folder: &Path) -> Option<Origin> {
    // As in the settings of the checkout first: rewriting belongs to this machine.
    let asked: [&[&str]; 2] =
        [&["config", "--get", "remote.origin.url"], &["remote", "get-url", "origin"]];
    let address = asked.iter().find_map(|words| usable(git(folder, words)?.trim()))?;
    let known = git(
        folder,
        &["for-each-ref", "--count=1", "--contains=HEAD", "refs/remotes/origin", "refs/tags"],
    );
    let published = known.is_some_and(|refs| !refs.trim().is_empty());
    let commit = published.then(|| git(folder, &["rev-parse", "HEAD"])).flatten();
    let reference = commit.and_then(|commit| checked_reference(commit.trim()).ok());
    Some(Origin { address, reference })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_a_ci_can_clone_are_taken_as_they_are() {
        for address in [
            "https://example.com/tools/karat.git",
            "https://example.com:8443/~me/karat",
            "https://[::1]/karat",
            "ssh://git@example.com:2222/tools/karat.git",
            "git@example.com:tools/karat.git",
        ] {
            let origin = Origin::parse(address).unwrap();
            assert_eq!(origin, Origin { address: address.to_owned(), reference: None });
            let pinned = Origin::parse(&format!("{address}#release/v1.2+3")).unwrap();
            assert_eq!(pinned.reference.as_deref(), Some("release/v1.2+3"));
            assert_eq!(pinned.text(), format!("{address}#release/v1.2+3"));
        }
    }

    #[test]
    fn what_no_ci_could_clone_or_what_could_mean_something_else_is_refused() {
        for address in [
            "",
            "karat",
            "/srv/karat",
            "../karat",
            "file:///srv/karat",
            "http://example.com/karat",
            "git://example.com/karat",
            "ext::sh -c id",
            "https://",
            "https://example.com",
            "https://example.com/",
            "https:///karat",
            "ssh://-oProxyCommand=id/karat",
            "git@-oProxyCommand=id:karat",
            "-u@example.com:karat",
            "git@example.com",
            "https://me:half/geheim@example.com/karat",
            "https://example.com/a b",
            "https://example.com/a\nb",
            "https://example.com/a'b",
            "https://example.com/${{ secrets.KEY }}",
            "https://example.com/$(id)",
            "https://example.com/karat?token=geheim",
            "https://example.com/kärat",
        ] {
            let error = Origin::parse(address).unwrap_err();
            assert!(error.contains(FORMS) && !error.contains("geheim"), "{error}");
        }
        for reference in ["", "-q", "a b", "a'b", "$(id)", "a\nb", "é"] {
            let error = Origin::parse(&format!("https://example.com/karat#{reference}"));
            assert!(error.unwrap_err().contains("tag, branch or commit"), "{reference}");
        }
    }

    #[test]
    fn credentials_are_refused_and_not_repeated() {
        for address in [
            "https://me:geheim@example.com/karat",
            "https://geheim@example.com/karat",
            "ssh://git:geheim@example.com/karat",
        ] {
            let error = Origin::parse(address).unwrap_err();
            assert!(error.contains("example.com/karat") && !error.contains("geheim"), "{error}");
            assert!(!usable(address).unwrap().contains("geheim"));
        }
        let error = Origin::parse("http://me:geheim@example.com/karat").unwrap_err();
        assert!(!error.contains("geheim"), "{error}");
    }

    #[test]
    fn what_cargo_notes_of_a_repository_is_read() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let found = |source: String| from_git(&source).map(|origin| origin.text());
        let plain = format!("https://example.com/karat#{commit}");
        for query in ["", "?rev=0123", "?branch=main", "?tag=v1"] {
            let source = format!("https://example.com/karat{query}#{commit}");
            assert_eq!(found(source), Some(plain.clone()));
        }
        let secret = format!("https://me:geheim@example.com/karat#{commit}");
        assert_eq!(found(secret), Some(plain));
        for source in ["file:///srv/karat", "https://example.com/karat?a=b", "http://example.com/k"]
        {
            assert_eq!(found(format!("{source}#{commit}")), None);
        }
        assert_eq!(path_of("file:///a%20b/c"), Some(PathBuf::from("/a b/c")));
        assert_eq!(path_of("https://example.com"), None);
        assert_eq!(path_of("file:///a%zz"), None);
    }
}
