//! A page as one session: its commands are run in order in a folder of their own, its changes of
//! files are made, and what comes out is put in the place of what the page shows. No shell runs.
//!
//! ```` ```console ```` blocks hold commands (`$ …`) and their output; in that, `[..]` is for any
//! part of a line and a line `...` for any lines. ```` ```diff ```` blocks, headed by `--- FILE`, are
//! changes. A block after a line that is only a name, `` `NAME`: ``, is a new file.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::Command;

use super::pages::Page;
use crate::common::{self, Scratch};

/// The programs that a session may run.
const PROGRAMS: &[&str] = &["karat", "git", "cat", "cp", "ls", "mkdir", "mv", "python3", "rm"];
/// The place where the karat of a page was installed from.
const SOURCE: &str =
    "git+https://git.example.com/tools/karat#8c4f5b7e2a9d1036c7e84b5f0d2a6913e8b7c45f";
/// Any lines.
const LINES: &str = "...";
/// Any part of a line.
const PART: &str = "[..]";

/// A folder in which a page is played.
pub(crate) struct Session {
    scratch: Scratch,
    /// The folder of karat, as cargo installs it from a repository.
    installed: Scratch,
    folder: PathBuf,
    code: i32,
}

/// The result of replaying a page.
pub(crate) struct Replay {
    /// The page with what really came out.
    pub(crate) text: String,
    /// The differences from what it showed.
    pub(crate) wrong: Vec<String>,
}

/// A block that does something.
enum Block {
    Console,
    Change,
    File(String),
    Shown,
}

impl Session {
    pub(crate) fn new() -> Session {
        let (scratch, installed) = (Scratch::new(), Scratch::new());
        common::install(&installed, "bin/karat");
        installed
            .write(".crates.toml", format!("[v1]\n\"karat 0.1.0 ({SOURCE})\" = [\"karat\"]\n"));
        let folder = scratch.path("");
        Session { scratch, installed, folder, code: 0 }
    }

    /// Plays a page from its first line to its last.
    pub(crate) fn play(&mut self, page: &Page) -> Replay {
        let mut played = Replay { text: String::new(), wrong: Vec::new() };
        let mut lines = page.text.lines();
        let mut before = "";
        while let Some(line) = lines.next() {
            played.text.push_str(line);
            played.text.push('\n');
            if let Some(language) = line.strip_prefix("```") {
                let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
                match kind(language, before) {
                    Block::Console => self.console(&body, &mut played),
                    Block::Change => {
                        self.change(&body);
                        played.add(&body);
                    }
                    Block::File(name) => {
                        std::fs::write(self.folder.join(name), body.join("\n") + "\n").unwrap();
                        played.add(&body);
                    }
                    Block::Shown => played.add(&body),
                }
                played.text.push_str("```\n");
            }
            before = if line.is_empty() { before } else { line };
        }
        played
    }

    fn console(&mut self, body: &[&str], played: &mut Replay) {
        let mut lines = body.iter().copied().peekable();
        while let Some(line) = lines.next() {
            let mut command = vec![line];
            while command.last().is_some_and(|line| line.ends_with(" \\")) {
                command.push(lines.next().expect("a command goes on"));
            }
            played.add(&command);
            let words = command.join("\n").replace("\\\n", "");
            let words = words.strip_prefix("$ ").unwrap_or_else(|| {
                panic!("a console block begins with a command: {words}");
            });
            let mut shown = Vec::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
                shown.push(line);
            }
            let came = self.run(words);
            let came: Vec<&str> = came.lines().map(str::trim_end).collect();
            if matches(&shown, &came) {
                played.add(&shown);
                continue;
            }
            played.wrong.push(format!(
                "$ {words}\nshows:\n{}\nprinted:\n{}\n",
                shown.join("\n"),
                came.join("\n")
            ));
            played.add(&renewed(&shown, &came));
        }
    }

    /// Runs one command and gives all that it prints.
    fn run(&mut self, line: &str) -> String {
        if line == "echo $?" {
            return format!("{}\n", self.code);
        }
        let words = split(line);
        let (program, arguments) = words.split_first().expect("a command has a name");
        if program == "cd" {
            self.folder = self.folder.join(&arguments[0]).canonicalize().unwrap();
            return String::new();
        }
        assert!(PROGRAMS.contains(&program.as_str()), "{program} is not run by the guide: {line}");
        let karat = self.installed.path("bin/karat");
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", karat.parent().unwrap().display());
        let mut command =
            if program == "karat" { Command::new(karat) } else { Command::new(program) };
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env("PATH", path)
            .env("HOME", self.scratch.path(""))
            .env("SOURCE_DATE_EPOCH", "1794711845")
            .env("NO_COLOR", "1")
            .env("LC_ALL", "C.UTF-8")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1");
        for variable in ["CI", "GITHUB_STEP_SUMMARY", "COLUMNS"] {
            command.env_remove(variable);
        }
        // One pipe for both, so that the lines come in the order in which a terminal shows them.
        let (mut reader, writer) = std::io::pipe().unwrap();
        command.stdin(std::process::Stdio::null());
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{line}: {error}"));
        drop(command);
        let mut printed = Vec::new();
        reader.read_to_end(&mut printed).unwrap();
        self.code = child.wait().unwrap().code().unwrap_or(-1);
        let printed = String::from_utf8_lossy(&printed);
        printed.lines().filter(|line| !is_progress(line)).map(|line| format!("{line}\n")).collect()
    }

    /// Makes a change: the old lines, which must are in the file exactly once, become the new ones.
    fn change(&self, body: &[&str]) {
        let name = body[0].strip_prefix("--- ").expect("a change names its file: --- FILE");
        let changed = |sign: char| -> String {
            let kept = body[1..].iter().filter(|line| line.starts_with([sign, ' ']));
            kept.map(|line| format!("{}\n", &line[1..])).collect()
        };
        let (old, new) = (changed('-'), changed('+'));
        let path = self.folder.join(name);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(text.matches(&old).count(), 1, "{name} has these lines once:\n{old}\n{text}");
        std::fs::write(path, text.replacen(&old, &new, 1)).unwrap();
    }
}

impl Replay {
    fn add(&mut self, lines: &[&str]) {
        for line in lines {
            self.text.push_str(line);
            self.text.push('\n');
        }
    }
}

fn kind(language: &str, before: &str) -> Block {
    let name = before.strip_prefix('`').and_then(|rest| rest.strip_suffix("`:"));
    if let Some(name) = name.filter(|name| !name.contains('`')) {
        return Block::File(name.to_owned());
    }
    match language {
        "console" => Block::Console,
        "diff" => Block::Change,
        _ => Block::Shown,
    }
}

/// Returns whether a line reports how far a run has come. In a terminal it is a bar that vanishes, and what it
/// says depends on the machine.
fn is_progress(line: &str) -> bool {
    let Some((_, state)) = line.rsplit_once(": ") else { return false };
    let number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    state.split_once('/').is_some_and(|(done, all)| number(done) && number(all))
}

/// The words of a command line: quotes group, and anything that would need a shell is refused.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (None, c) => {
                assert!(!"|&;<>$*`\\".contains(c), "this needs a shell: {line}");
                word.get_or_insert_default().push(c);
            }
        }
    }
    assert!(quote.is_none(), "a quote is left open: {line}");
    words.extend(word);
    words
}

/// Returns whether what is shown is for what came.
fn matches(shown: &[&str], came: &[&str]) -> bool {
    match shown.split_first() {
        None => came.is_empty(),
        Some((&LINES, rest)) => (0..=came.len()).any(|skipped| matches(rest, &came[skipped..])),
        Some((first, rest)) => came
            .split_first()
            .is_some_and(|(line, others)| line_matches(first, line) && matches(rest, others)),
    }
}

fn line_matches(shown: &str, came: &str) -> bool {
    let Some((head, rest)) = shown.split_once(PART) else { return shown == came };
    let Some(tail) = came.strip_prefix(head) else { return false };
    let ends = tail.char_indices().map(|(index, _)| index).chain([tail.len()]);
    ends.into_iter().any(|end| line_matches(rest, &tail[end..]))
}

/// The new text of the session: the actual output, with gaps kept open where they still match. Between two
/// gaps are as many lines as before, from the line that begins with the same word.
fn renewed<'a>(shown: &[&'a str], came: &[&'a str]) -> Vec<&'a str> {
    let open = |line: &'a str| -> &'a str {
        let kept = shown.iter().find(|old| old.contains(PART) && line_matches(old, line));
        kept.copied().unwrap_or(line)
    };
    let all: Vec<&str> = came.iter().map(|line| open(line)).collect();
    let word = |line: &&str| line.split_whitespace().next().map(str::to_owned);
    let pieces: Vec<&[&str]> = shown.split(|line| *line == LINES).collect();
    let mut lines = Vec::new();
    let mut next = 0;
    for (index, piece) in pieces.iter().enumerate() {
        let start = match piece.first() {
            _ if index == 0 => 0,
            _ if index + 1 == pieces.len() => came.len().saturating_sub(piece.len()),
            Some(first) => {
                let found = came.iter().skip(next).position(|line| word(line) == word(first));
                next + found.unwrap_or_default()
            }
            None => next,
        };
        let Some(kept) = all.get(start..start + piece.len()) else { return all };
        lines.extend((index > 0).then_some(LINES));
        lines.extend(kept);
        next = start + piece.len();
    }
    if matches(&lines, came) { lines } else { all }
}

#[test]
fn gaps_stand_for_what_they_leave_out_and_for_nothing_else() {
    assert!(matches(&["a", LINES, "z"], &["a", "b", "c", "z"]));
    assert!(matches(&["took [..] s", LINES], &["took 1.5 s"]));
    assert!(!matches(&["a", LINES, "z"], &["a", "b"]));
    assert!(!matches(&["a"], &["a", "b"]));
    assert!(!matches(&["took [..] s"], &["took 1.5 ms or so"]));
    assert_eq!(renewed(&["a", LINES, "z"], &["A", "b", "Z"]), ["A", LINES, "Z"]);
    assert_eq!(
        renewed(&["a", LINES, "m 1", LINES, "z"], &["a", "b", "m 2", "n", "z"]),
        ["a", LINES, "m 2", LINES, "z"]
    );
    assert_eq!(renewed(&["a", LINES], &["b"]), ["b", LINES]);
    assert_eq!(renewed(&["a", "b", LINES], &["c"]), ["c"]);
    assert_eq!(split("karat x 'a b' \"\""), ["karat", "x", "a b", ""]);
}
