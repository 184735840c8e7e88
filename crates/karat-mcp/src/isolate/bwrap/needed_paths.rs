//! The paths that a server needs in order to run, beyond the system's own.
//!
//! An isolated server sees the folders of the system with programs and libraries, and nothing else of the
//! machine. Its program is often elsewhere: in a virtual environment, in `node_modules`, in the working
//! folder, below `/opt`. The paths that the command names are found here, as narrowly as programs allow. A home is never
//! opened because a command runs in it; it has to be mounted explicitly.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use super::super::launch::{docker_path, find_program, home};

/// Maximum depth of interpreters of interpreters.
const MAX_DEPTH: usize = 4;
/// Maximum number of links in one path, as in the kernel.
const MAX_LINKS: usize = 40;
/// Files that mark the root of a package.
const MARKS: &[&str] =
    &["package.json", "pyproject.toml", "setup.py", "go.mod", "Cargo.toml", "Gemfile", "deno.json"];

/// Folders with programs and libraries of the system. What is in them comes from packages.
const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];
/// Folders that hold the data of many programs and users, so that none of them is opened whole.
const SHARED: &[&str] = &[
    "/", "/boot", "/etc", "/home", "/media", "/mnt", "/opt", "/root", "/run", "/srv", "/tmp",
    "/var", "/var/lib", "/var/tmp",
];
/// File systems of the kernel, which are not mounted from the machine.
const KERNEL: &[&str] = &["/dev", "/proc", "/sys"];
/// Maximum number of entries of named folders that are searched for sockets and pipes.
const MAX_SEARCHED: usize = 20_000;

/// The folders of the machine as an isolated server sees them.
#[derive(Debug)]
pub(super) struct Machine {
    /// Visible as they are.
    pub(super) system: Vec<PathBuf>,
    /// Not opened whole because a command names them or runs in them.
    shared: Vec<PathBuf>,
}

impl Machine {
    pub(super) fn here() -> Machine {
        let system = SYSTEM.iter().map(PathBuf::from).filter(|folder| folder.is_dir()).collect();
        let mut shared: BTreeSet<PathBuf> = SHARED.iter().map(PathBuf::from).collect();
        shared.extend(home());
        shared.extend(homes());
        Machine { system, shared: shared.into_iter().collect() }
    }

    /// True if the path is not visible yet and may be opened.
    fn can_open(&self, path: &Path) -> bool {
        let is_kernel = KERNEL.iter().any(|folder| path.starts_with(folder));
        let is_visible = self.system.iter().any(|folder| path.starts_with(folder));
        !is_kernel && !is_visible && !self.is_too_much(path)
    }

    /// True for a shared folder, a parent of one, and a whole home.
    fn is_too_much(&self, path: &Path) -> bool {
        let whole_home = path.parent() == Some(Path::new("/home"));
        whole_home || self.shared.iter().any(|folder| folder.starts_with(path))
    }

    /// The folders of programs in `PATH` that are not the system's, with the libraries next to them.
    pub(super) fn program_folders(&self) -> Vec<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_private = |folder: &Path| {
            let private = ["/home", "/root", "/tmp", "/var/tmp", "/run"].map(PathBuf::from);
            private.into_iter().chain(home()).any(|private| folder.starts_with(private))
        };
        let programs = std::env::split_paths(&path)
            .filter(|folder| folder.is_absolute() && folder.ends_with("bin"))
            .filter_map(|folder| folder.canonicalize().ok());
        let with_libraries = programs.flat_map(|bin| {
            let prefix = bin.parent().unwrap_or(Path::new("/")).to_owned();
            [bin, prefix.join("lib"), prefix.join("lib64")]
        });
        with_libraries
            .filter(|folder| folder.is_dir() && self.can_open(folder) && !is_private(folder))
            .collect()
    }
}

/// The homes of all users of the machine, but for those of the system's own users.
fn homes() -> Vec<PathBuf> {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let homes = users.lines().filter_map(|line| line.split(':').nth(5)).map(PathBuf::from);
    homes.filter(|home| home.parent().is_some() && !home.starts_with("/usr")).collect()
}

/// The sockets and pipes below paths: a mount that cannot be written to does not keep a server from
/// talking to the programs behind them. False if there was too much to search.
pub(super) fn sockets_below<'a>(paths: impl Iterator<Item = &'a Path>) -> (Vec<PathBuf>, bool) {
    use std::os::unix::fs::FileTypeExt as _;
    let mut found = Vec::new();
    let mut left: Vec<PathBuf> = paths.map(Path::to_owned).collect();
    let mut searched = 0;
    while let Some(path) = left.pop() {
        let Ok(kind) = std::fs::symlink_metadata(&path).map(|found| found.file_type()) else {
            continue;
        };
        if kind.is_socket() || kind.is_fifo() {
            found.push(path);
            continue;
        }
        if !kind.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            searched += 1;
            if searched > MAX_SEARCHED {
                return (found, false);
            }
            let is_plain = entry.file_type().is_ok_and(|kind| kind.is_file() || kind.is_symlink());
            if !is_plain {
                left.push(entry.path());
            }
        }
    }
    (found, true)
}

/// The paths outside the system's folders that must be visible.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// Readable paths without links.
    pub(super) paths: BTreeSet<PathBuf>,
    /// The links to them with their targets.
    pub(super) links: BTreeMap<PathBuf, PathBuf>,
    /// Folders that a path with `..` leads through; their content is not needed.
    pub(super) parent_folders: BTreeSet<PathBuf>,
}

/// The paths that the command and its working folder name, parents first.
pub(super) fn named_by(command: &[String], folder: &Path, machine: &Machine) -> Named {
    let folder = &lexically(folder);
    let mut needs = Needs { machine, named: Named::default() };
    needs.add(folder);
    let Some((program, arguments)) = command.split_first() else { return needs.named };
    if let Some(program) = find_program(program, Some(folder)) {
        needs.program(&program, MAX_DEPTH);
    }
    let mut script_seen = false;
    for argument in arguments {
        let text = argument.split_once('=').map_or(argument.as_str(), |(flag, value)| {
            if flag.starts_with('-') { value } else { argument }
        });
        let Some(path) = existing(text, folder) else { continue };
        needs.steps_to(&folder.join(text));
        if path.is_file() && !script_seen {
            script_seen = true;
            needs.script(&path, MAX_DEPTH);
        }
        needs.add(&path);
    }
    needs.named
}

fn existing(text: &str, folder: &Path) -> Option<PathBuf> {
    let text = text.strip_prefix("file://").unwrap_or(text);
    if text.is_empty() || text.starts_with('-') {
        return None;
    }
    let path = lexically(&folder.join(text));
    path.exists().then_some(path)
}

/// The path without `.` and `..`; links are not resolved.
fn lexically(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

struct Needs<'a> {
    machine: &'a Machine,
    named: Named,
}

impl Needs<'_> {
    fn add(&mut self, path: &Path) {
        let Ok(real) = path.canonicalize() else { return };
        self.links_to(path);
        if self.machine.can_open(&real) && docker_path(&real).is_none() {
            self.named.paths.insert(real);
        }
    }

    /// Adds the links in a path. They are created again rather than mounted: a mount over a link is not at
    /// the target of the link, and relative links inside it would break.
    fn links_to(&mut self, path: &Path) {
        let mut path = path.to_owned();
        for _ in 0..MAX_LINKS {
            let mut passed = PathBuf::new();
            let mut rest = path.components();
            let link = rest.by_ref().find_map(|part| {
                passed.push(part);
                std::fs::read_link(&passed).ok()
            });
            let Some(target) = link else { return };
            let parent = passed.parent().unwrap_or(Path::new("/"));
            path = lexically(&parent.join(&target)).join(rest.as_path());
            if self.machine.can_open(&passed) {
                self.named.links.insert(passed, target);
            }
        }
    }

    /// Adds the folders that `a/b/../c` needs: `a/b` must exist.
    fn steps_to(&mut self, path: &Path) {
        let mut passed = PathBuf::new();
        for part in path.components() {
            if part == Component::ParentDir {
                let folder = lexically(&passed);
                if self.machine.can_open(&folder) {
                    self.named.parent_folders.insert(folder);
                }
            }
            passed.push(part);
        }
    }

    /// Adds a program, the files that were installed with it, and its interpreter.
    fn program(&mut self, path: &Path, deep: usize) {
        if deep == 0 {
            return;
        }
        self.add(path);
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        for path in [path, &real] {
            self.prefix(path, deep);
        }
        match first_line(&real) {
            // A compiled program needs only the libraries next to it.
            None => {}
            Some(line) => {
                self.package(&real);
                self.interpreter(&line, deep);
            }
        }
    }

    /// Adds a script that is passed to an interpreter.
    fn script(&mut self, path: &Path, deep: usize) {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if is_compiled(&real) {
            return;
        }
        for path in [path, &real] {
            self.prefix(path, deep);
            self.package(path);
        }
    }

    /// Adds `prefix/bin` and `prefix/lib` for `prefix/bin/program`, and for a virtual environment all of it
    /// and the interpreter that it was made from.
    fn prefix(&mut self, path: &Path, deep: usize) {
        let Some(bin) = path.parent() else { return };
        let Some(prefix) = bin.parent() else { return };
        // The shims of version managers look the program up below their root.
        if bin.ends_with("shims") {
            self.add(prefix);
        }
        if !bin.ends_with("bin") {
            return;
        }
        self.add(bin);
        for library in ["lib", "lib64"] {
            self.add(&prefix.join(library));
        }
        let Ok(settings) = std::fs::read_to_string(prefix.join("pyvenv.cfg")) else { return };
        self.add(prefix);
        let python = settings.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == "home").then(|| PathBuf::from(value.trim()).join("python3"))
        });
        if let Some(python) = python.filter(|python| python.is_file()) {
            self.program(&python, deep - 1);
        }
    }

    /// Adds the root of the package of a script, and the modules that it may load.
    fn package(&mut self, script: &Path) {
        let outermost = script
            .ancestors()
            .filter(|folder| folder.ends_with("node_modules") && self.machine.can_open(folder))
            .last();
        if let Some(modules) = outermost {
            self.add(modules);
            return;
        }
        let inside: Vec<&Path> =
            script.ancestors().skip(1).take_while(|folder| self.machine.can_open(folder)).collect();
        let marked =
            inside.iter().find(|folder| MARKS.iter().any(|mark| folder.join(mark).is_file()));
        if let Some(root) = marked.or_else(|| inside.first()) {
            self.add(root);
        }
        for folder in inside {
            let modules = folder.join("node_modules");
            if modules.is_dir() {
                self.add(&modules);
            }
        }
    }

    fn interpreter(&mut self, line: &str, deep: usize) {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { return };
        let by_name = first.ends_with("/env");
        let name = match by_name {
            true => words.find(|word| !word.starts_with('-') && !word.contains('=')),
            false => Some(first),
        };
        if let Some(found) = name.and_then(|name| find_program(name, None)) {
            self.program(&found, deep - 1);
        }
    }
}

fn is_compiled(path: &Path) -> bool {
    start(path).starts_with(b"\x7fELF")
}

/// The text after `#!`, if the file begins with it.
fn first_line(path: &Path) -> Option<String> {
    let start = start(path);
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    String::from_utf8(line.to_vec()).ok()
}

fn start(path: &Path) -> Vec<u8> {
    let mut start = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        let _ = file.take(512).read_to_end(&mut start);
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Home {
        folder: tempfile::TempDir,
    }

    impl Home {
        fn new(files: &[&str]) -> Home {
            let home = Home { folder: tempfile::tempdir().unwrap() };
            for file in files {
                let (path, text) = file.split_once('=').unwrap_or((file, ""));
                let path = home.path(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            home
        }

        fn path(&self, path: &str) -> PathBuf {
            self.folder.path().join(path)
        }

        /// A machine on which this is the home.
        fn machine(&self) -> Machine {
            let mut machine = Machine::here();
            machine.shared.push(self.folder.path().to_owned());
            machine
        }

        fn needs(&self, command: &[&str], folder: &Path) -> Vec<String> {
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            let found = named_by(&command, folder, &self.machine()).paths;
            let relative = |path: &PathBuf| {
                path.strip_prefix(self.folder.path()).unwrap().display().to_string()
            };
            found.iter().map(relative).collect()
        }
    }

    #[test]
    fn a_command_that_runs_in_a_home_does_not_expose_it() {
        let home = Home::new(&[".ssh/id_ed25519"]);
        assert_eq!(home.needs(&["cat", "."], home.folder.path()), [""; 0]);
        assert_eq!(home.needs(&["cat"], &home.path(".ssh/..")), [""; 0]);
    }

    #[test]
    fn the_working_folder_and_named_data_are_visible() {
        let home = Home::new(&["work/a", "data/b", "other/c"]);
        let data = home.path("data").display().to_string();
        let root = format!("--root={data}");
        assert_eq!(home.needs(&["cat", &data], &home.path("work")), ["data", "work"]);
        assert_eq!(home.needs(&["cat", &root], &home.path("work")), ["data", "work"]);
        assert_eq!(home.needs(&["cat", "../data"], &home.path("work")), ["data", "work"]);
    }

    #[test]
    fn a_script_exposes_its_package_and_its_modules() {
        let home = Home::new(&[
            "p/package.json",
            "p/node_modules/x/index.js",
            "p/packages/a/package.json",
            "p/packages/a/dist/index.js",
            "secret/key",
        ]);
        let script = home.path("p/packages/a/dist/index.js").display().to_string();
        assert_eq!(
            home.needs(&["node", &script], Path::new("/usr")),
            ["p/node_modules", "p/packages/a", "p/packages/a/dist/index.js"]
        );
        let module = home.path("p/node_modules/x/index.js").display().to_string();
        assert_eq!(
            home.needs(&["node", &module], Path::new("/usr")),
            ["p/node_modules", "p/node_modules/x/index.js"]
        );
    }

    #[test]
    fn an_installed_program_exposes_its_libraries_and_not_their_siblings() {
        let home = Home::new(&[
            ".cargo/bin/server",
            ".cargo/credentials.toml",
            ".local/bin/tool=#!/bin/sh\n",
            ".local/lib/python/x.py",
            ".local/share/keyrings/k",
        ]);
        let server = home.path(".cargo/bin/server").display().to_string();
        assert_eq!(home.needs(&[&server], Path::new("/usr")), [".cargo/bin", ".cargo/bin/server"]);
        let tool = home.path(".local/bin/tool").display().to_string();
        assert_eq!(
            home.needs(&[&tool], Path::new("/usr")),
            [".local/bin", ".local/bin/tool", ".local/lib"]
        );
    }

    #[test]
    fn a_shim_of_a_version_manager_exposes_its_root() {
        let home = Home::new(&[".pyenv/shims/python=#!/bin/sh\n", ".pyenv/libexec/pyenv"]);
        let shim = home.path(".pyenv/shims/python").display().to_string();
        assert_eq!(home.needs(&[&shim], Path::new("/usr"))[0], ".pyenv");
    }

    #[test]
    fn a_virtual_environment_exposes_its_base_python() {
        let home = Home::new(&["pythons/3/bin/python3", "pythons/3/lib/os.py", "venv/lib/x.py"]);
        let settings = format!("home = {}\nversion = 3\n", home.path("pythons/3/bin").display());
        std::fs::write(home.path("venv/pyvenv.cfg"), settings).unwrap();
        std::fs::create_dir(home.path("venv/bin")).unwrap();
        let interpreter = home.path("venv/bin/python");
        std::os::unix::fs::symlink(home.path("pythons/3/bin/python3"), &interpreter).unwrap();
        let server = home.path("venv/bin/server");
        std::fs::write(&server, format!("#!{}\n", interpreter.display())).unwrap();
        let needs = home.needs(&[&server.display().to_string()], Path::new("/usr"));
        for needed in ["venv", "pythons/3/bin", "pythons/3/lib"] {
            assert!(needs.iter().any(|path| path == needed), "{needed}: {needs:?}");
        }
    }

    #[test]
    fn links_stay_links_and_only_their_targets_are_exposed() {
        let home = Home::new(&["p/node_modules/pkg/dist/index.js=#!/bin/sh\n"]);
        std::fs::create_dir(home.path("p/node_modules/.bin")).unwrap();
        let link = std::os::unix::fs::symlink::<&str, PathBuf>;
        link("../pkg/dist/index.js", home.path("p/node_modules/.bin/server")).unwrap();
        link("node_modules/.bin", home.path("p/bin")).unwrap();
        let server = home.path("p/bin/server").display().to_string();
        let named = named_by(&[server], Path::new("/usr"), &home.machine());
        assert!(named.paths.contains(&home.path("p/node_modules")), "{named:?}");
        assert!(named.paths.iter().all(|path| path.canonicalize().unwrap() == *path), "{named:?}");
        assert_eq!(named.links[&home.path("p/bin")], Path::new("node_modules/.bin"));
        let inner = &named.links[&home.path("p/node_modules/.bin/server")];
        assert_eq!(inner, Path::new("../pkg/dist/index.js"));
    }

    #[test]
    fn sockets_and_pipes_in_named_folders_are_found() {
        let home = Home::new(&["work/a", "work/deep/b"]);
        let pipe = home.path("work/deep/pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
        let socket = home.path("work/socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let (mut found, whole) = sockets_below([home.path("work").as_path()].into_iter());
        found.sort();
        assert_eq!((found, whole), (vec![pipe, socket], true));
    }

    #[test]
    fn folders_of_the_system_and_whole_homes_are_not_opened() {
        let machine = Machine::here();
        for path in
            ["/", "/home", "/home/someone", "/etc", "/var/lib", "/proc/1", "/usr/bin", "/opt"]
        {
            assert!(!machine.can_open(Path::new(path)), "{path}");
        }
        for path in ["/opt/tool/bin", "/srv/project", "/app", "/home/someone/project"] {
            assert!(machine.can_open(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn circular_links_are_ignored() {
        let home = Home::new(&["work/a"]);
        std::os::unix::fs::symlink("two", home.path("one")).unwrap();
        std::os::unix::fs::symlink("one", home.path("two")).unwrap();
        let one = home.path("one").display().to_string();
        assert_eq!(home.needs(&["cat", &one], &home.path("work")), ["work"]);
    }
}
