//! Agent skills as a corpus: a folder with a `SKILL.md` for each skill.
//!
//! The front matter of a skill is what an agent reads to decide whether to load it: its name and its
//! description. Each is a tool of the server `skill`; the text below the front matter is not searched.

use std::path::{Path, PathBuf};

use karat_core::tool::{Corpus, Tool};
use karat_io::input::{self, Format, InputError, Limits};
use serde::Deserialize;

/// The server that all skills are on.
const SERVER: &str = "skill";
/// The file of a skill.
const FILE: &str = "SKILL.md";
/// The number of folders below the given one that are looked into.
const DEPTH: usize = 4;
/// The most skills of a folder.
const MAX_SKILLS: usize = 100_000;

#[derive(Deserialize)]
struct FrontMatter {
    name: String,
    description: Option<String>,
}

/// The id of a skill, which may be given with its server.
pub(crate) fn id(name: &str) -> String {
    match name.contains(':') {
        true => name.to_owned(),
        false => format!("{SERVER}:{name}"),
    }
}

/// Adds every skill below a folder.
///
/// # Errors
/// If there is none, or one has no front matter with a name.
pub(crate) fn add(folder: &Path, corpus: &mut Corpus) -> Result<(), InputError> {
    let mut files = Vec::new();
    find(folder, DEPTH, &mut files)?;
    files.sort();
    if files.is_empty() {
        return Err(InputError::invalid(folder, FILE, "no folder in it has one"));
    }
    for path in files {
        let text = input::read_text(&path, &Limits::default())?;
        let wrong = |message: &str| InputError::invalid(&path, "front matter", message);
        let matter = front_matter(&text).ok_or_else(|| {
            wrong("the file does not begin with a line `---`, name and description, and `---`")
        })?;
        let FrontMatter { name, description } = input::parse(&path, matter, Format::Yaml)?;
        if name.trim().is_empty() {
            return Err(wrong("the name is empty"));
        }
        let tool = Tool {
            tool_id: format!("{SERVER}:{name}"),
            server: SERVER.to_owned(),
            tool: name,
            description: description.unwrap_or_default(),
            ..Tool::default()
        };
        let id = tool.tool_id.clone();
        if corpus.tools.insert(id.clone(), tool).is_some() {
            return Err(InputError::invalid(&path, id, "another skill has this name"));
        }
    }
    Ok(())
}

/// The text between the first two lines of dashes.
fn front_matter(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("---")?;
    let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n'))?;
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some(&rest[..end]);
        }
        end += line.len();
    }
    None
}

/// Finds the files of skills. Links are not followed: a folder may hold itself.
fn find(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), InputError> {
    let unreadable = |error: std::io::Error| {
        InputError::invalid(folder, FILE, format!("cannot be read: {error}"))
    };
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_file() && entry.file_name() == FILE && files.len() < MAX_SKILLS {
            files.push(entry.path());
        } else if kind.is_dir() && depth > 0 {
            find(&entry.path(), depth - 1, files)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_dashes_is_front_matter() {
        for (text, expected) in [
            ("---\nname: a\n---\nBody --- here", Some("name: a\n")),
            ("---\r\nname: a\r\n---\r\n", Some("name: a\r\n")),
            ("name: a", None),
            ("--- name: a ---", None),
            ("---\nname: a\n", None),
            ("", None),
        ] {
            assert_eq!(front_matter(text), expected, "{text:?}");
        }
    }

    #[test]
    fn skills_of_a_folder_are_tools_of_one_server() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let mut corpus = Corpus::default();
        assert!(add(folder.path(), &mut corpus).is_err(), "an empty folder is not a corpus");
        write("pdf/SKILL.md", "---\nname: pdf\ndescription: Fill in forms.\n---\n# PDF\n");
        write("more/xlsx/SKILL.md", "---\nname: xlsx\n---\n");
        write("pdf/README.md", "no skill");
        add(folder.path(), &mut corpus).unwrap();
        let found: Vec<&str> = corpus.tools.keys().map(String::as_str).collect();
        assert_eq!(found, ["skill:pdf", "skill:xlsx"]);
        assert_eq!(corpus.tools["skill:pdf"].description, "Fill in forms.");
        assert!(add(folder.path(), &mut corpus).is_err(), "each name once");
    }
}
