//! The pages of the guide as Markdown: their blocks, links, headings and tables. It reads what the
//! guide uses of Markdown and no more.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::common::live::repository;

/// The folder of the guide.
pub(crate) fn docs() -> PathBuf {
    repository().join("docs")
}

/// One page.
pub(crate) struct Page {
    /// Its path within the guide, or next to it.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// The block that a line of a page belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Prose,
    Fence,
    Code,
}

impl Page {
    /// The page of this name in the guide.
    pub(crate) fn read(name: &str) -> Page {
        Page::at(&docs(), name)
    }

    fn at(folder: &Path, name: &str) -> Page {
        let path = folder.join(name);
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Page { name: name.to_owned(), path, text }
    }

    /// Every page of the guide, sorted by name.
    pub(crate) fn all() -> Vec<Page> {
        let mut names = Vec::new();
        for folder in ["", "benchmarks", "coming-from", "tutorials"] {
            for entry in std::fs::read_dir(docs().join(folder)).unwrap() {
                let name = Path::new(folder).join(entry.unwrap().file_name());
                if name.extension().is_some_and(|ending| ending == "md") {
                    names.push(name.to_string_lossy().into_owned());
                }
            }
        }
        names.sort();
        names.iter().map(|name| Page::read(name)).collect()
    }

    /// The pages at the root of the repository.
    pub(crate) fn at_the_root() -> Vec<Page> {
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
            .map(|name| Page::at(&repository(), name))
            .into()
    }

    fn lines(&self) -> Vec<(usize, Part, &str)> {
        let mut inside = false;
        let mut lines = Vec::new();
        for (index, line) in self.text.lines().enumerate() {
            let fence = line.trim_start().starts_with("```");
            let part = match (fence, inside) {
                (true, _) => Part::Fence,
                (false, true) => Part::Code,
                (false, false) => Part::Prose,
            };
            inside ^= fence;
            lines.push((index + 1, part, line));
        }
        lines
    }

    /// The targets of links, with their lines.
    pub(crate) fn links(&self) -> Vec<(usize, String)> {
        let mut links = Vec::new();
        for (number, _, line) in self.lines().iter().filter(|(_, part, _)| *part == Part::Prose) {
            // What is between backticks is not a link.
            let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
            for rest in prose.split("](").skip(1) {
                if let Some((target, _)) = rest.split_once(')') {
                    links.push((*number, target.to_owned()));
                }
            }
        }
        links
    }

    /// Levels and titles of the headings.
    pub(crate) fn headings(&self) -> Vec<(usize, String)> {
        let prose = self.lines().into_iter().filter(|(_, part, _)| *part == Part::Prose);
        prose
            .filter_map(|(_, _, line)| {
                let title = line.trim_start_matches('#');
                let level = line.len() - title.len();
                (level > 0 && title.starts_with(' ')).then(|| (level, title.trim().to_owned()))
            })
            .collect()
    }

    /// The anchors that the headings have, in the book and on a forge.
    fn anchors(&self) -> BTreeSet<String> {
        let mut anchors = BTreeSet::new();
        for (_, title) in self.headings() {
            let plain = anchor(&title);
            let numbered = (1..).map(|number| format!("{plain}-{number}"));
            let free = std::iter::once(plain.clone())
                .chain(numbered)
                .find(|candidate| !anchors.contains(candidate));
            anchors.extend(free);
        }
        anchors
    }

    /// The code blocks of a language, with the line on which they begin.
    pub(crate) fn blocks(&self, language: &str) -> Vec<(usize, String)> {
        let opening = format!("```{language}");
        let mut blocks: Vec<(usize, String)> = Vec::new();
        let mut wanted = false;
        for (number, part, line) in self.lines() {
            match part {
                Part::Fence => {
                    wanted = line.trim() == opening;
                    if wanted {
                        blocks.push((number, String::new()));
                    }
                }
                Part::Code if wanted => {
                    let block = &mut blocks.last_mut().unwrap().1;
                    block.push_str(line);
                    block.push('\n');
                }
                Part::Code | Part::Prose => {}
            }
        }
        blocks
    }

    /// The keys in the first column of the tables under a heading, up to the next heading.
    pub(crate) fn keys_under(&self, heading: &str) -> BTreeSet<String> {
        let lines = self.lines();
        let is_heading = |line: &str| line.starts_with('#');
        let start = lines
            .iter()
            .position(|(_, part, line)| {
                *part == Part::Prose
                    && is_heading(line)
                    && line.trim_start_matches('#').trim() == heading
            })
            .unwrap_or_else(|| panic!("{} has no heading {heading:?}", self.name));
        let mut keys = BTreeSet::new();
        let below = lines[start + 1..].iter();
        for (_, _, line) in
            below.take_while(|(_, part, line)| *part != Part::Prose || !is_heading(line))
        {
            let Some(row) = line.strip_prefix("| ") else { continue };
            let first = row.split(" | ").next().unwrap_or_default();
            keys.extend(first.split('`').skip(1).step_by(2).map(str::to_owned));
        }
        keys
    }
}

/// The anchor of a heading: lower case, hyphens for blanks, letters, digits, `-` and `_` kept.
fn anchor(title: &str) -> String {
    title
        .chars()
        .filter_map(|c| match c {
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            c if c.is_whitespace() => Some('-'),
            _ => None,
        })
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns whether a link of a page leads somewhere. A page of the guide links nothing outside of it, since
/// the book does not hold that.
pub(crate) fn follow(page: &Page, link: &str) -> Result<(), String> {
    if link.starts_with("https://") || link.starts_with("http://") {
        return Ok(());
    }
    let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
    let folder = page.path.parent().unwrap();
    let target = if file.is_empty() { page.path.clone() } else { plain(&folder.join(file)) };
    if !target.exists() {
        return Err("there is no such file".to_owned());
    }
    if page.path.starts_with(docs()) && !target.starts_with(docs()) {
        return Err("leaves the guide".to_owned());
    }
    if fragment.is_empty() {
        return Ok(());
    }
    let name = target.strip_prefix(repository()).unwrap().to_string_lossy().into_owned();
    let anchors = Page::at(&repository(), &name).anchors();
    if anchors.contains(fragment) { Ok(()) } else { Err(format!("{name} has no such heading")) }
}

/// Adds the text of every Rust file below a folder.
pub(crate) fn gather(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            gather(&path, text);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}
