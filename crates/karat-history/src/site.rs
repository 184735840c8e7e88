//! A history as a folder of pages that any web server can show, or a browser from disk.
//!
//! The pages are those of the dashboard. Their addresses become relative paths of files, so the folder works
//! below any address. What needs a server is left out: forms that compare any two runs.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use karat_io::input::{WriteError, create_folder, write_atomic};

use crate::error::HistoryError;
use crate::pages::{PageError, Pages, SCRIPT, style};
use crate::store::{Selection, Store};

/// The file that marks a folder that this module wrote.
const MARKER: &str = ".karat-site";
/// The attributes that hold addresses.
const ATTRIBUTES: [&str; 3] = [" href=\"", " src=\"", " action=\""];
/// A slash as the templates write it where an address is filled in.
const SLASH: &str = "&#x2f;";
/// The names of pages, and of the reports that they show.
const PAGES: [&str; 2] = ["index.html", "report.json"];
/// The most runs that have a page: the latest.
const RUNS: usize = 500;

/// A site that was not written.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// The folder holds something else.
    #[error("{} is not empty and is not a site that Karat wrote; name a new folder", folder.display())]
    Occupied {
        /// The folder.
        folder: PathBuf,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A page cannot be made.
    #[error(transparent)]
    Page(#[from] PageError),
    /// The history cannot be read.
    #[error(transparent)]
    History(#[from] HistoryError),
}

/// Writes the site, with the whole reports of the latest runs. Returns the number of pages.
///
/// # Errors
/// If the folder holds something else, a file cannot be written, or the history cannot be read.
pub fn write(store: &Store, folder: &Path, reports: usize) -> Result<usize, SiteError> {
    let occupied = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if occupied && !folder.join(MARKER).is_file() {
        return Err(SiteError::Occupied { folder: folder.to_owned() });
    }
    create_folder(folder)?;
    write_atomic(&folder.join(MARKER), b"karat history site\n")?;
    let runs: Vec<i64> = store.runs()?.iter().map(|run| run.id).collect();
    let runs = &runs[runs.len().saturating_sub(RUNS)..];
    let detailed = &runs[runs.len().saturating_sub(reports)..];
    let pairs: Vec<(i64, i64)> = detailed.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let site = Site {
        folder,
        runs: runs.iter().copied().collect(),
        reports: detailed.iter().copied().collect(),
        pairs: pairs.iter().copied().collect(),
        written: RefCell::default(),
    };
    let pages = Pages::for_files()?;
    let mut count = 0;
    let mut page = |path: &str, html: String| -> Result<(), SiteError> {
        count += 1;
        site.page(path, &html)
    };
    page("index.html", pages.overview(store)?)?;
    page("runs/index.html", pages.runs(store)?)?;
    page("compare/index.html", pages.compare(store, pairs.last().copied())?)?;
    for subject in store.subjects()? {
        let id = subject.id;
        page(&format!("evaluations/{id}/index.html"), pages.subject(store, id)?)?;
        let entries = store.entries(Selection::Subject(id, 1))?;
        for value in entries.iter().flat_map(|entry| &entry.values) {
            let metric = value.metric_id;
            let path = format!("evaluations/{id}/metrics/{metric}/index.html");
            page(&path, pages.metric(store, id, metric)?)?;
        }
    }
    for id in runs {
        page(&format!("runs/{id}/index.html"), pages.run(store, *id)?)?;
    }
    for id in detailed {
        let document = store.document(*id)?;
        page(&format!("runs/{id}/report/index.html"), pages.report(*id, &document)?)?;
        site.file(&format!("runs/{id}/report.json"), &document)?;
    }
    for (before, after) in &pairs {
        let path = format!("compare/{before}-{after}/index.html");
        page(&path, pages.compare(store, Some((*before, *after)))?)?;
    }
    site.file("style.css", style().as_bytes())?;
    site.file("script.js", SCRIPT.as_bytes())?;
    site.remove_stale()?;
    Ok(count)
}

/// The files of a site.
struct Site<'a> {
    folder: &'a Path,
    runs: BTreeSet<i64>,
    /// The runs with a whole report.
    reports: BTreeSet<i64>,
    /// The runs that are compared.
    pairs: BTreeSet<(i64, i64)>,
    /// The files that were written.
    written: RefCell<BTreeSet<PathBuf>>,
}

impl Site<'_> {
    fn file(&self, path: &str, bytes: &[u8]) -> Result<(), SiteError> {
        let path = self.folder.join(path);
        if let Some(parent) = path.parent() {
            create_folder(parent)?;
        }
        write_atomic(&path, bytes)?;
        self.written.borrow_mut().insert(path);
        Ok(())
    }

    /// Removes pages that an earlier site had: a run that left the history is not to be published any longer.
    fn remove_stale(&self) -> Result<(), SiteError> {
        let written = self.written.borrow();
        for part in ["compare", "evaluations", "runs"] {
            let folder = self.folder.join(part);
            if !folder.is_dir() || folder.is_symlink() {
                continue;
            }
            remove_other_pages(&folder, &written).map_err(|source| WriteError {
                path: folder,
                action: "remove an earlier page",
                source,
            })?;
        }
        Ok(())
    }

    fn page(&self, path: &str, html: &str) -> Result<(), SiteError> {
        let up = "../".repeat(path.matches('/').count());
        // A report ends with its data and its script, in which nothing is an address.
        let end = html.find("<script type=\"application/gzip\"").unwrap_or(html.len());
        let (addressed, rest) = html.split_at(end);
        self.file(path, (self.relative(addressed, &up) + rest).as_bytes())
    }

    /// The page with the addresses of files.
    fn relative(&self, html: &str, up: &str) -> String {
        let mut text = String::with_capacity(html.len());
        let mut rest = html;
        loop {
            let next = ATTRIBUTES
                .iter()
                .filter_map(|attribute| Some((rest.find(attribute)?, attribute.len())))
                .min();
            let Some((at, length)) = next else { break };
            let (before, after) = rest.split_at(at + length);
            text.push_str(before);
            let end = after.find('"').unwrap_or(after.len());
            let (address, more) = after.split_at(end);
            let plain = address.replace(SLASH, "/");
            match plain.starts_with('/') {
                true => text.push_str(&format!("{up}{}", self.target(&plain))),
                false => text.push_str(address),
            }
            rest = more;
        }
        text.push_str(rest);
        text
    }

    /// The file of an address, from the folder of the site. What the site does not have leads to what is
    /// nearest to it.
    fn target(&self, address: &str) -> String {
        let (path, place) = match address.split_once('#') {
            Some((path, place)) => (path, format!("#{place}")),
            None => (address, String::new()),
        };
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let number = |text: &str| text.parse::<i64>().unwrap_or(-1);
        match parts.as_slice() {
            [""] => format!("index.html{place}"),
            ["style.css" | "script.js"] => parts.join("/"),
            ["compare"] => match pair(query).filter(|pair| self.pairs.contains(pair)) {
                Some((before, after)) => format!("compare/{before}-{after}/index.html{place}"),
                None => match pair(query) {
                    Some((_, after)) if self.runs.contains(&after) => {
                        format!("runs/{after}/index.html")
                    }
                    _ => "compare/index.html".to_owned(),
                },
            },
            ["runs", run, "report.json"] if self.reports.contains(&number(run)) => parts.join("/"),
            ["runs", run, "report"] if self.reports.contains(&number(run)) => {
                format!("runs/{run}/report/index.html{place}")
            }
            ["runs", run, ..] if self.runs.contains(&number(run)) => {
                format!("runs/{run}/index.html")
            }
            ["runs", ..] => "runs/index.html".to_owned(),
            _ => format!("{}/index.html{place}", parts.join("/")),
        }
    }
}

/// Removes the pages and reports below a folder that are not among these, and folders that become empty.
fn remove_other_pages(folder: &Path, written: &BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        if kind.is_dir() {
            remove_other_pages(&path, written)?;
            if std::fs::read_dir(&path)?.next().is_none() {
                std::fs::remove_dir(&path)?;
            }
        } else if PAGES.iter().any(|name| entry.file_name() == *name) && !written.contains(&path) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// The two runs of a query in HTML: `before=1&amp;after=2`.
fn pair(query: &str) -> Option<(i64, i64)> {
    let field = |name: &str| {
        let fields = query.split('&').map(|part| part.trim_start_matches("amp;"));
        fields.filter_map(|part| part.split_once('=')).find(|(key, _)| *key == name)
    };
    Some((field("before")?.1.parse().ok()?, field("after")?.1.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Site<'static> {
        Site {
            folder: Path::new(""),
            runs: [1, 2, 3].into(),
            reports: [2, 3].into(),
            pairs: [(2, 3)].into(),
            written: RefCell::default(),
        }
    }

    #[test]
    fn addresses_become_files() {
        for (address, file) in [
            ("/", "index.html"),
            ("/style.css", "style.css"),
            ("/runs", "runs/index.html"),
            ("/runs/1", "runs/1/index.html"),
            ("/runs/3/report#r/q-1", "runs/3/report/index.html#r/q-1"),
            ("/runs/1/report", "runs/1/index.html"),
            ("/runs/2/report.json", "runs/2/report.json"),
            ("/runs/9", "runs/index.html"),
            ("/evaluations/1/metrics/2", "evaluations/1/metrics/2/index.html"),
            ("/compare?before=2&amp;after=3", "compare/2-3/index.html"),
            ("/compare?before=1&amp;after=2", "runs/2/index.html"),
            ("/compare", "compare/index.html"),
        ] {
            assert_eq!(site().target(address), file, "{address}");
        }
    }

    #[test]
    fn only_addresses_of_the_site_are_changed() {
        let html = r##"<a href="&#x2f;runs/1">x</a> href=&quot;/etc <a href="#a"><a href="https://e.example/">"##;
        let expected = r##"<a href="../runs/1/index.html">x</a> href=&quot;/etc <a href="#a"><a href="https://e.example/">"##;
        assert_eq!(site().relative(html, "../"), expected);
    }
}
