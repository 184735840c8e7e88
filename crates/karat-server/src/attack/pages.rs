//! The pages of the listener that attempts ask for, and the attempt that a request comes from.
//!
//! The number of an attempt is in the middle of the path. A tool that takes the folder of an address, or resolves the
//! name of another page against it, replaces only the end.

/// A group of pages with the same meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A page of this machine.
    Loopback,
    /// The credentials in the metadata of one cloud.
    Credentials,
    /// The service accounts in the metadata of another cloud.
    Accounts,
    /// A page that redirects.
    Moved,
    /// The page that a redirect leads to.
    Landed,
    /// A page with instructions.
    Orders,
    /// Any other page, which a tool chose itself.
    Other,
}

/// The places that attempts ask for, with the folders of their paths.
const PLACES: [(Place, &[&str]); 6] = [
    (Place::Loopback, &["loopback"]),
    (Place::Credentials, &["latest", "meta-data", "iam", "security-credentials"]),
    (Place::Accounts, &["computeMetadata", "v1", "instance", "service-accounts", "default"]),
    (Place::Moved, &["moved"]),
    (Place::Landed, &["landed"]),
    (Place::Orders, &["orders"]),
];

/// The last part of a path, after the number.
const LAST: &str = "page";

/// The page that an attempt asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) place: Place,
    /// The number of the attempt.
    pub(super) number: u64,
}

impl Page {
    pub(super) fn path(self) -> String {
        let folders = PLACES.iter().find(|(place, _)| *place == self.place);
        let folders = folders.map_or(String::new(), |(_, folders)| folders.join("/"));
        format!("/{folders}/{}/{LAST}", self.number)
    }
}

/// The page that a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Requested {
    pub(super) place: Place,
    /// The number of the attempt; none if the tool replaced it.
    pub(super) number: Option<u64>,
}

impl Requested {
    /// Reads the target of a request; none if it is not a page.
    pub(super) fn read(target: &str) -> Option<Requested> {
        let parts = parts(target)?;
        let is = |part: &&str, folder: &&str| part.eq_ignore_ascii_case(folder);
        let begins = |folders: &[&str]| {
            parts.len() >= folders.len() && parts.iter().zip(folders).all(|(a, b)| is(a, b))
        };
        if let Some((place, folders)) = PLACES.iter().find(|(_, folders)| begins(folders)) {
            let number = parts.get(folders.len()).and_then(|part| number(part));
            return Some(Requested { place: *place, number });
        }
        // The start of a path is enough: the tool may have left out the rest.
        let top = parts.first().and_then(|part| {
            PLACES.iter().find(|(_, folders)| folders.first().is_some_and(|one| is(part, one)))
        });
        let place = top.map_or(Place::Other, |(place, _)| *place);
        Some(Requested { place, number: None })
    }
}

/// The path that a redirect leads to, with the parts that a tool added; none if the page does not redirect.
pub(super) fn landing(target: &str) -> Option<String> {
    let Requested { place: Place::Moved, .. } = Requested::read(target)? else { return None };
    let rest = parts(target)?.get(1..)?.join("/");
    Some(format!("/landed/{rest}"))
}

/// The parts of a path. Requests to a proxy name the host too.
fn parts(target: &str) -> Option<Vec<&str>> {
    let path = match target.split_once("://") {
        Some((scheme, rest)) if scheme.chars().all(|c| c.is_ascii_alphabetic()) => {
            rest.find('/').map_or("/", |at| &rest[at..])
        }
        _ => target,
    };
    let path = path.split(['?', '#']).next().filter(|path| path.starts_with('/'))?;
    Some(path.split('/').filter(|part| !part.is_empty()).collect())
}

/// The number at the start of a part; a tool may have added an extension.
fn number(part: &str) -> Option<u64> {
    let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
    part[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_in_every_page_that_a_tool_derives_from_an_address() {
        for place in PLACES.map(|(place, _)| place) {
            let path = Page { place, number: 12 }.path();
            let folder = path.trim_end_matches("/page");
            for target in [
                path.clone(),
                folder.to_owned(),
                format!("{folder}/"),
                format!("{folder}/openapi.json"),
                format!("{folder}.git/info/refs?service=git"),
                format!("{path}/status"),
                format!("{path}1/x"),
                format!("/{path}"),
                format!("{path}?page=3"),
                format!("http://127.0.0.1:99{path}"),
                path.to_lowercase(),
            ] {
                let expected = Requested { place, number: Some(12) };
                assert_eq!(Requested::read(&target), Some(expected), "{target}");
            }
        }
    }

    #[test]
    fn a_page_without_the_number_belongs_to_no_attempt() {
        for (target, place) in [
            ("/", Place::Other),
            ("/?next=/loopback/7", Place::Other),
            ("/rest/api/2/serverInfo", Place::Other),
            ("/loopbacks/7", Place::Other),
            ("http://127.0.0.1:99", Place::Other),
            ("/loopback/", Place::Loopback),
            ("/loopback/openapi.json", Place::Loopback),
            ("/latest/meta-data/7", Place::Credentials),
            ("/landed/openapi.json", Place::Landed),
        ] {
            assert_eq!(
                Requested::read(target),
                Some(Requested { place, number: None }),
                "{target}"
            );
        }
        for target in ["*", "127.0.0.1:99", ""] {
            assert_eq!(Requested::read(target), None, "{target}");
        }
    }

    #[test]
    fn a_redirect_leads_to_the_page_of_the_same_attempt() {
        let page = Page { place: Place::Moved, number: 7 }.path();
        assert_eq!(landing(&page).as_deref(), Some("/landed/7/page"));
        assert_eq!(landing("/moved/7").as_deref(), Some("/landed/7"));
        assert_eq!(landing("/moved").as_deref(), Some("/landed/"));
        assert_eq!(landing("/loopback/7"), None);
    }
}
