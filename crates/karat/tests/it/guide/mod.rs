//! The user guide, held to the program: what its pages show is run and compared, what they name
//! exists, and what exists is named. `KARAT_GUIDE=update` writes what came out into the pages
//! instead of comparing; look at the difference before you commit it.

mod pages;
mod session;

use std::collections::BTreeSet;
use std::num::NonZero;

use crate::common::{Scratch, live};
use pages::{Page, docs};
use session::Session;

/// The way pages are brought up to date.
const UPDATE: &str =
    "KARAT_GUIDE=update cargo test -p karat --test it guide:: writes what came out";

/// Returns whether pages are written instead of compared.
fn updating() -> bool {
    std::env::var("KARAT_GUIDE").is_ok_and(|value| value == "update")
}

/// Writes a page that differs, or fails with how to do so.
fn settle(page: &Page, now: &str) {
    if page.text == now {
        return;
    }
    if updating() {
        std::fs::write(&page.path, now).unwrap();
        return;
    }
    let differing = page.text.lines().zip(now.lines()).position(|(was, is)| was != is);
    panic!(
        "{} is out of date (line {}); {UPDATE}",
        page.name,
        differing.map_or(page.text.lines().count().min(now.lines().count()), |line| line) + 1
    );
}

/// Plays a page from its first command to its last, and says what is not as shown.
fn play(page: &Page) -> Option<String> {
    let played = Session::new().play(page);
    if updating() {
        settle(page, &played.text);
        return None;
    }
    let wrong = format!("{}:\n{}", page.name, played.wrong.join("\n"));
    (!played.wrong.is_empty()).then_some(wrong)
}

#[test]
#[cfg_attr(karat_portable, ignore = "no links are made, and the pages show them")]
fn every_session_on_a_page_goes_as_shown() {
    let mut pages = Page::all();
    pages.retain(|page| page.text.contains("```console"));
    assert!(pages.len() >= 7, "{}", pages.len());
    let at_once = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut wrong = Vec::new();
    for some in pages.chunks(at_once) {
        std::thread::scope(|scope| {
            let playing: Vec<_> =
                some.iter().map(|page| (&page.name, scope.spawn(move || play(page)))).collect();
            for (name, played) in playing {
                wrong.extend(played.join().unwrap_or_else(|_| panic!("{name} cannot be played")));
            }
        });
    }
    assert!(wrong.is_empty(), "{}\n{UPDATE}", wrong.join("\n"));
}

#[test]
fn every_benchmark_has_a_page_with_its_command() {
    let listed = Scratch::new().karat(&["import", "--list", "--json"]).expect(0).json();
    let benchmarks = listed["benchmarks"].as_array().unwrap();
    assert!(benchmarks.len() > 15, "{listed}");
    for benchmark in benchmarks {
        let name = benchmark["name"].as_str().unwrap();
        let page = Page::read(&format!("benchmarks/{name}.md"));
        assert!(page.text.contains(&format!("karat import {name} ")), "{}", page.name);
    }
}

#[test]
fn every_exit_code_is_shown() {
    let page = Page::read("exit-codes.md");
    let told: BTreeSet<String> = page
        .headings()
        .into_iter()
        .filter_map(|(_, title)| title.split_once(": ").map(|(code, _)| code.to_owned()))
        .filter(|word| word.chars().all(|c| c.is_ascii_digit()))
        .collect();
    let help = Scratch::new().karat(&["--help"]).expect(0).stdout;
    let known = help.split("Exit codes: ").nth(1).expect("the help lists the exit codes");
    let known: BTreeSet<String> = known
        .split(", ")
        .filter_map(|part| part.split_whitespace().next())
        .filter(|word| word.chars().all(|c| c.is_ascii_digit()))
        .map(str::to_owned)
        .collect();
    assert!(known.len() >= 5, "{known:?}");
    assert_eq!(told, known);
    for code in &known {
        assert!(page.text.contains(&format!("$ echo $?\n{code}\n")), "{code} is not shown");
    }
}

#[test]
fn every_link_leads_somewhere() {
    let mut wrong = Vec::new();
    for page in Page::all().iter().chain(&Page::at_the_root()) {
        for (line, link) in page.links() {
            if let Err(reason) = pages::follow(page, &link) {
                wrong.push(format!("{}:{line}: {link}: {reason}", page.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_summary_lists_every_page_once() {
    let mut listed: Vec<String> =
        Page::read("SUMMARY.md").links().into_iter().map(|(_, link)| link).collect();
    listed.sort();
    let pages: Vec<String> =
        Page::all().into_iter().map(|page| page.name).filter(|name| name != "SUMMARY.md").collect();
    assert_eq!(listed, pages);
}

/// A place in karat.toml where an unknown key is refused: the heading of its table in project.md,
/// and a project that has the key `?` there.
const PLACES: &[(&str, &str)] = &[
    ("The file", "? = 1\n"),
    ("`[history]`", "[history]\n? = 1\n"),
    ("`[[server]]`", "[[server]]\n? = 1\n"),
    ("`[[load]]`", "[[load]]\n? = 1\n"),
    ("`[[fuzz]]`", "[[fuzz]]\n? = 1\n"),
    ("`[[attack]]`", "[[attack]]\n? = 1\n"),
    ("`[[retrieval]]`", "[[retrieval]]\n? = 1\n"),
    ("`[[detection]]`", "[[detection]]\n? = 1\n"),
    ("`[[agent]]`", "[[agent]]\n? = 1\n"),
    ("`[[outcomes]]`", "[[outcomes]]\n? = 1\n"),
    ("`gate`", "[[agent]]\n[agent.gate]\n? = 1\n"),
    ("A rule of `gate.metrics`", "[[agent]]\n[agent.gate.metrics.x]\n? = 1\n"),
    ("`gate.protected`", "[[agent]]\n[agent.gate.protected]\n? = 1\n"),
    ("`ready` of `[[retrieval]]`", "[[retrieval]]\n[retrieval.ready]\n? = 1\n"),
    ("`system` of `[[retrieval]]`", "[[retrieval]]\n[retrieval.system]\n? = 1\n"),
    ("`system.http` of `[[retrieval]]`", "[[retrieval]]\n[retrieval.system.http]\n? = 1\n"),
    ("`system.mcp` of `[[retrieval]]`", "[[retrieval]]\n[retrieval.system.mcp]\n? = 1\n"),
    (
        "`answer` of a search",
        "[[retrieval]]\n[retrieval.system.http]\nurl = \"http://127.0.0.1\"\nanswer = { ? = 1 }\n",
    ),
    ("`system` of `[[detection]]`", "[[detection]]\n[detection.system]\n? = 1\n"),
    ("`system.decision` of `[[detection]]`", "[[detection]]\n[detection.system.decision]\n? = 1\n"),
    ("`system.batch` of `[[detection]]`", "[[detection]]\n[detection.system.batch]\n? = 1\n"),
    ("`system.http` of `[[detection]]`", "[[detection]]\n[detection.system.http]\n? = 1\n"),
    ("`system.mcp` of `[[detection]]`", "[[detection]]\n[detection.system.mcp]\n? = 1\n"),
    (
        "`answer` of a scanner",
        "[[detection]]\n[detection.system.http]\nurl = \"http://127.0.0.1\"\nanswer = { ? = 1 }\n",
    ),
    ("A server", "[[server]]\n[server.server]\n? = 1\n"),
    ("`policies` of a server", "[[server]]\n[server.server.policies]\n? = 1\n"),
    ("`isolate` of a server", "[[server]]\n[server.server.isolate]\n? = 1\n"),
];

#[test]
fn every_key_of_a_project_is_explained_and_no_other() {
    let page = Page::read("project.md");
    let scratch = Scratch::new();
    let mut wrong = Vec::new();
    for (heading, project) in PLACES {
        scratch.write("karat.toml", project.replace('?', "no-such-key"));
        let message = scratch.karat(&["baseline", "show"]).expect(2).stderr;
        let known: BTreeSet<String> = message
            .split_once("unknown key `no-such-key`; expected ")
            .unwrap_or_else(|| panic!("{heading}: {message}"))
            .1
            .trim()
            .split(", ")
            .map(str::to_owned)
            .collect();
        let told = page.keys_under(heading);
        if told != known {
            let missing: Vec<&String> = known.difference(&told).collect();
            let invented: Vec<&String> = told.difference(&known).collect();
            wrong.push(format!("{heading}: missing {missing:?}, no such key {invented:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_example_of_a_project_has_a_key_that_does_not_exist() {
    let scratch = Scratch::new();
    let mut tried = 0;
    for page in Page::all() {
        for (line, example) in page.blocks("toml") {
            if !example.starts_with("[[") {
                continue;
            }
            tried += 1;
            scratch.write("karat.toml", &example);
            let said = scratch.karat(&["baseline", "show"]).stderr;
            // With a line, it is the file that is wrong; without, what it names is not there.
            let line_named = said.strip_prefix("karat: karat.toml:");
            let broken =
                line_named.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            let broken = broken || said.contains("unknown metric");
            assert!(!broken, "{}:{line}: {said}", page.name);
        }
    }
    assert!(tried >= 5, "{tried} examples");
}

#[test]
fn every_message_that_is_explained_is_one_that_karat_gives() {
    let mut code = String::new();
    for folder in std::fs::read_dir(live::repository().join("crates")).unwrap() {
        pages::gather(&folder.unwrap().path().join("src"), &mut code);
    }
    // A message may go on in the next line of the code.
    let code: String = code.split('\\').map(str::trim_start).collect();
    let page = Page::read("trouble-shooting.md");
    let mut explained = 0;
    for line in page.text.lines().filter(|line| line.starts_with("| `")) {
        let first = line.trim_start_matches("| ").split(" | ").next().unwrap();
        for message in first.split('`').skip(1).step_by(2) {
            assert!(code.contains(message), "no message says {message:?}");
            explained += 1;
        }
    }
    assert!(explained > 20, "{explained}");
}

#[test]
fn the_command_reference_is_what_the_program_says() {
    let mut text = String::from(
        "# Commands\n\nEvery command as it explains itself with `--help`. A test makes this page from the \
         program.\n\n`karat man` prints the same as a manual page, `karat completions SHELL` completions for a \
         shell. A TIME is written as `500ms`, `30s` or `2m`; a plain number means seconds.\n",
    );
    describe(&Scratch::new(), &mut Vec::new(), &mut text);
    let path = docs().join("commands.md");
    if updating() && !path.exists() {
        std::fs::write(&path, "").unwrap();
    }
    settle(&Page::read("commands.md"), &text);
}

/// Adds the help of a command and of those below it.
fn describe(scratch: &Scratch, command: &mut Vec<String>, text: &mut String) {
    let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
    arguments.push("--help");
    let help = scratch.karat(&arguments).expect(0).stdout;
    let name = [&["karat".to_owned()], &command[..]].concat().join(" ");
    let level = if command.len() < 2 { "##" } else { "###" };
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    text.push_str(&format!("\n{level} {name}\n\n```text\n{}\n```\n", help.join("\n").trim_end()));

    let below = help.iter().skip_while(|line| **line != "Commands:").skip(1);
    for line in below.take_while(|line| !line.is_empty()) {
        let indent = line.len() - line.trim_start().len();
        let Some(sub) = line.split_whitespace().next().filter(|_| indent == 2) else { continue };
        if sub == "help" {
            continue;
        }
        command.push(sub.to_owned());
        describe(scratch, command, text);
        command.pop();
    }
}
