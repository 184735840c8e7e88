//! Programs that are measured, and their end.
//!
//! A program is never started through a shell, its output is bounded, the end of its stderr is kept for
//! messages, and it is killed with its children when its handle is dropped. Handles are not dropped if this
//! process is stopped by a signal or exits without unwinding, so every running group is also in a list, and
//! [`end_all`] kills them. Processes that left their group are found by their parents
//! ([`crate::platform`]), and if this process is killed, a watcher does that ([`crate::watcher`]).

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::text::last_lines;
use crate::{platform, watcher};

/// Bytes of stderr that are kept.
const MAX_STDERR_BYTES: usize = 4 << 10;
/// Columns of stderr that a message shows.
pub const SAID: usize = 240;
/// Time to wait for the exit of a program that closed its output.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum length of a line of a program.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// A program to start, without a shell and without interpolation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Program and arguments; never empty.
    pub command: Vec<String>,
    /// Its variables, in addition to those of this process.
    pub env: BTreeMap<String, String>,
    /// Its working folder.
    pub folder: Option<PathBuf>,
    /// Passes no variables but `env`.
    pub clean: bool,
    /// Clean-up after its end.
    pub cleanup: Option<Cleanup>,
}

/// Work to do when a program has ended or was killed, also if this process is stopped.
#[derive(Clone)]
pub struct Cleanup {
    work: Arc<dyn Fn() + Send + Sync>,
    command: Vec<String>,
}

impl Cleanup {
    /// The work should take little time, because others wait for it.
    pub fn new(work: impl Fn() + Send + Sync + 'static) -> Cleanup {
        Cleanup { work: Arc::new(work), command: Vec::new() }
    }

    /// A command that does the work if this process is killed.
    #[must_use]
    pub fn or_by(self, command: Vec<String>) -> Cleanup {
        Cleanup { command, ..self }
    }
}

impl std::fmt::Debug for Cleanup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cleanup")
    }
}

impl PartialEq for Cleanup {
    fn eq(&self, other: &Cleanup) -> bool {
        Arc::ptr_eq(&self.work, &other.work)
    }
}

impl Eq for Cleanup {}

/// A running program, killed with its children on drop.
///
/// ```
/// use karat_io::process::{Line, Process, Program, write_line};
///
/// # if !cfg!(unix) { return Ok(()); }
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let program = Program { command: vec!["cat".to_owned()], ..Program::default() };
/// let (mut process, mut stdin, mut lines) = Process::start(&program)?;
/// write_line(&mut stdin, "hello").await?;
/// assert_eq!(lines.next().await, Line::Text("hello".to_owned()));
/// drop(stdin);
/// assert_eq!(lines.next().await, Line::End);
/// assert!(process.ended().await?.success());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Process {
    child: Child,
    group: Arc<Group>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    stderr_reader: tokio::task::JoinHandle<()>,
}

/// The running process groups with their clean-up.
static RUNNING: Mutex<Running> = Mutex::new(Running::new());

type Running = BTreeMap<i32, Option<Cleanup>>;

fn running() -> MutexGuard<'static, Running> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills every running program with its children.
///
/// For exits on which nothing is dropped: a signal, an aborting panic, `std::process::exit`.
pub fn end_all() {
    let all = std::mem::take(&mut *running());
    for group in all.keys() {
        platform::kill_tree(*group);
        watcher::ended(*group);
    }
    platform::kill_orphans(|id| running().contains_key(&id));
    for cleanup in all.into_values().flatten() {
        (cleanup.work)();
    }
}

/// Starts a helper of this process, such as git, that must not be taken for a process that a started
/// program left behind.
///
/// # Errors
/// If it cannot be started.
pub fn spawn_helper(command: &mut std::process::Command) -> std::io::Result<std::process::Child> {
    // Locked until it is known as a helper.
    let _running = running();
    let child = command.spawn()?;
    platform::spare(child.id());
    Ok(child)
}

/// Starts a helper as [`spawn_helper`] does, for a runtime.
///
/// # Errors
/// If it cannot be started.
pub fn spawn_async_helper(command: &mut Command) -> std::io::Result<Child> {
    let _running = running();
    let child = command.spawn()?;
    child.id().into_iter().for_each(platform::spare);
    Ok(child)
}

/// Makes every panic kill the running programs before its message is shown.
///
/// This includes a panic in a task that the runtime catches: measurements after it are not trusted.
pub fn end_all_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        end_all();
        before(panic);
    }));
}

/// Waits for a signal to stop (interrupt, quit, terminate or hang-up) and returns the exit code that shells
/// use (128 plus the signal). The running programs go on.
///
/// # Errors
/// If signal handlers cannot be installed.
pub async fn stop_signal() -> std::io::Result<u8> {
    platform::stop_signal().await
}

/// Waits for a signal to stop (interrupt, quit, terminate or hang-up), kills the running programs, and
/// returns the exit code that shells use (128 plus the signal).
///
/// # Errors
/// If signal handlers cannot be installed.
pub async fn end_all_on_signal() -> std::io::Result<u8> {
    let code = platform::stop_signal().await?;
    end_all();
    Ok(code)
}

/// A process group: a program and those of its children that did not leave it.
#[derive(Debug)]
pub struct Group {
    id: i32,
}

impl Group {
    fn new(child: &Child, cleanup: Option<Cleanup>, running: &mut Running) -> Group {
        let id = child.id().and_then(|id| i32::try_from(id).ok()).unwrap_or(0);
        if id > 0 {
            watcher::started(id, cleanup.as_ref().map_or(&[], |cleanup| &cleanup.command));
            running.insert(id, cleanup);
        }
        Group { id }
    }

    /// Kills the whole group. This works once, because its number may then be reused.
    pub fn kill(&self) {
        // The list proves that the number still belongs to this group.
        let mut running = running();
        let Some(cleanup) = running.remove(&self.id) else { return };
        platform::kill_tree(self.id);
        // Orphans cannot be attributed to a group, so they are killed only when no other group runs.
        if running.is_empty() {
            platform::kill_orphans(|_| false);
        }
        drop(running);
        watcher::ended(self.id);
        if let Some(cleanup) = cleanup {
            (cleanup.work)();
        }
    }

    /// Asks the whole group to end (SIGTERM).
    pub fn terminate(&self) {
        if running().contains_key(&self.id) {
            platform::terminate_group(self.id);
        }
    }
}

/// The next output of a program.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A whole line, without its end.
    Text(String),
    /// A line that is not UTF-8.
    NotUtf8,
    /// A line longer than [`MAX_LINE_BYTES`].
    TooLong,
    /// The end: the program closed its output.
    End,
}

impl Process {
    /// Starts the program and reads its output line by line.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn start(program: &Program) -> Result<(Process, ChildStdin, Lines), String> {
        let (process, stdin, stdout) = Process::spawn(program)?;
        Ok((process, stdin, Lines::new(stdout)))
    }

    /// Starts the program with its stdin and stdout.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn spawn(program: &Program) -> Result<(Process, ChildStdin, ChildStdout), String> {
        let Some((name, arguments)) = program.command.split_first() else {
            return Err("the command is empty".to_owned());
        };
        let mut command = Command::new(platform::program(name));
        if program.clean {
            command.env_clear();
        } else if let Some(mark) = watcher::mark() {
            command.env(watcher::MARK, mark);
        }
        command
            .args(arguments)
            .envs(&program.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        platform::own_group(command.as_std_mut());
        if let Some(folder) = &program.folder {
            command.current_dir(folder);
        }
        // Locked until the child is in the list.
        let mut running = running();
        let mut child = command.spawn().map_err(|error| {
            if let Some(cleanup) = &program.cleanup {
                (cleanup.work)();
            }
            format!("cannot start {name:?}: {error}")
        })?;
        let group = Arc::new(Group::new(&child, program.cleanup.clone(), &mut running));
        drop(running);
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            group.kill();
            return Err(format!("cannot reach the input and output of {name:?}"));
        };
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let stderr_reader = tokio::spawn(keep_tail(stderr, Arc::clone(&kept)));
        Ok((Process { child, group, stderr: kept, stderr_reader }, stdin, stdout))
    }

    /// The process group, which can be killed while the process is waited for.
    pub fn group(&self) -> Arc<Group> {
        Arc::clone(&self.group)
    }

    /// Waits for the exit of the program. Its children may still run.
    ///
    /// # Errors
    /// If its status cannot be read.
    pub async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// The end of its stderr.
    pub fn stderr_tail(&self) -> StderrTail {
        StderrTail(Arc::clone(&self.stderr))
    }

    /// Waits for the exit of a program that has closed its output, and describes it: the exit status and the
    /// end of stderr.
    pub async fn describe_exit(&mut self) -> String {
        self.exit().await.description
    }

    /// As [`Process::describe_exit`], and says whether a signal ended the program.
    pub async fn exit(&mut self) -> Exit {
        let waited = tokio::time::timeout(EXIT_TIMEOUT, self.child.wait()).await;
        let by_signal = matches!(&waited, Ok(Ok(status)) if status.code().is_none());
        let end = match waited {
            Ok(Ok(status)) => format!("it ended with {status}"),
            Ok(Err(error)) => format!("its exit status cannot be read: {error}"),
            Err(_) => "it closed its output and did not exit".to_owned(),
        };
        // Its children may still run and hold the pipes open.
        self.group.kill();
        let _ = tokio::time::timeout(EXIT_TIMEOUT, &mut self.stderr_reader).await;
        let description = match last_lines(&self.stderr_tail().text(), SAID) {
            said if said.is_empty() => end,
            said => format!("{end}; its stderr ends with: {said}"),
        };
        Exit { description, by_signal }
    }
}

/// The end of a program.
#[derive(Clone, Debug)]
pub struct Exit {
    /// The exit status and the end of stderr, as text.
    pub description: String,
    /// True if a signal ended it, as after a crash, so that it has no exit code.
    pub by_signal: bool,
}

impl Drop for Process {
    fn drop(&mut self) {
        // The group outlives its leader while grandchildren run, and they must be killed too.
        self.group.kill();
    }
}

/// The current end of the stderr of a program.
#[derive(Clone, Debug)]
pub struct StderrTail(Arc<Mutex<VecDeque<u8>>>);

impl StderrTail {
    /// The text, with replacement characters for bytes that are not UTF-8.
    pub fn text(&self) -> String {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(tail.make_contiguous()).into_owned()
    }
}

async fn keep_tail(mut stderr: tokio::process::ChildStderr, kept: Arc<Mutex<VecDeque<u8>>>) {
    let mut block = [0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut block).await {
        let mut tail = kept.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&block[..read]);
        let excess = tail.len().saturating_sub(MAX_STDERR_BYTES);
        tail.drain(..excess);
    }
}

/// The output of a program, line by line.
pub struct Lines {
    reader: BufReader<ChildStdout>,
    buffer: Vec<u8>,
}

impl Lines {
    fn new(stdout: ChildStdout) -> Lines {
        Lines { reader: BufReader::new(stdout), buffer: Vec::new() }
    }

    /// The next line. A failed read is the end, because the program is gone.
    pub async fn next(&mut self) -> Line {
        self.buffer.clear();
        loop {
            let available = match self.reader.fill_buf().await {
                Ok(available) if !available.is_empty() => available,
                _ if self.buffer.is_empty() => return Line::End,
                _ => return self.line(),
            };
            let end = available.iter().position(|byte| *byte == b'\n');
            let take = end.map_or(available.len(), |at| at + 1);
            if self.buffer.len() + take > MAX_LINE_BYTES {
                return Line::TooLong;
            }
            self.buffer.extend_from_slice(&available[..take]);
            self.reader.consume(take);
            if end.is_some() {
                return self.line();
            }
        }
    }

    fn line(&self) -> Line {
        match std::str::from_utf8(&self.buffer) {
            Ok(text) => Line::Text(text.trim_end_matches(['\n', '\r']).to_owned()),
            Err(_) => Line::NotUtf8,
        }
    }
}

/// Writes one line to a program.
///
/// # Errors
/// If the program no longer reads its stdin.
pub async fn write_line(stdin: &mut ChildStdin, line: &str) -> std::io::Result<()> {
    stdin.write_all(line.as_bytes()).await?;
    stdin.write_all(b"\n").await?;
    stdin.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(words: &[&str]) -> Program {
        Program {
            command: words.iter().map(|word| (*word).to_owned()).collect(),
            ..Program::default()
        }
    }

    #[tokio::test]
    async fn the_clean_up_is_done_once() {
        let done = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counter = Arc::clone(&done);
        let count = move || {
            counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        };
        let cleanup = Some(Cleanup::new(count));
        let sleeping = Program { cleanup, ..program(&["sleep", "1000"]) };
        let (process, _stdin, _lines) = Process::start(&sleeping).unwrap();
        assert_eq!(done.load(std::sync::atomic::Ordering::SeqCst), 0);
        process.group().kill();
        drop(process);
        assert_eq!(done.load(std::sync::atomic::Ordering::SeqCst), 1);
        let missing = Program { command: vec!["no-such-program-karat".to_owned()], ..sleeping };
        assert!(Process::start(&missing).is_err());
        assert_eq!(done.load(std::sync::atomic::Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn a_clean_program_has_only_its_own_variables() {
        let env = BTreeMap::from([("ONLY".to_owned(), "this".to_owned())]);
        let clean = Program { clean: true, env, ..program(&["/usr/bin/env"]) };
        let (_process, _stdin, mut lines) = Process::start(&clean).unwrap();
        assert_eq!(lines.next().await, Line::Text("ONLY=this".to_owned()));
        assert_eq!(lines.next().await, Line::End);
    }

    #[tokio::test]
    async fn lines_go_in_and_come_out() {
        let (_process, mut stdin, mut lines) = Process::start(&program(&["cat"])).unwrap();
        write_line(&mut stdin, "one").await.unwrap();
        assert_eq!(lines.next().await, Line::Text("one".to_owned()));
        drop(stdin);
        assert_eq!(lines.next().await, Line::End);
    }

    #[tokio::test]
    async fn the_exit_is_described_with_the_end_of_stderr() {
        let script = "echo broken pipe dream >&2; exit 3";
        let (mut process, _stdin, mut lines) =
            Process::start(&program(&["sh", "-c", script])).unwrap();
        assert_eq!(lines.next().await, Line::End);
        let exit = process.describe_exit().await;
        assert!(exit.contains("exit status: 3") && exit.contains("dream"), "{exit}");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_program_that_a_signal_ended_has_no_exit_code() {
        for (script, by_signal) in [("exit 139", false), ("kill -s ABRT $$", true)] {
            let (mut process, _stdin, mut lines) =
                Process::start(&program(&["sh", "-c", script])).unwrap();
            assert_eq!(lines.next().await, Line::End);
            let exit = process.exit().await;
            assert_eq!(exit.by_signal, by_signal, "{script}: {}", exit.description);
        }
    }

    #[tokio::test]
    async fn a_program_that_does_not_exist_is_named() {
        let error = Process::start(&program(&["no-such-program-karat"])).err().unwrap();
        assert!(error.contains("no-such-program-karat"), "{error}");
    }

    #[tokio::test]
    async fn an_endless_line_is_cut_short() {
        let (_process, _stdin, mut lines) =
            Process::start(&program(&["sh", "-c", "yes | tr -d '\\n'"])).unwrap();
        assert_eq!(lines.next().await, Line::TooLong);
    }

    #[tokio::test]
    async fn grandchildren_die_with_the_handle() {
        let (process, _stdin, mut lines) =
            Process::start(&program(&["sh", "-c", "sleep 1000 & echo $!; wait"])).unwrap();
        let Line::Text(pid) = lines.next().await else { panic!("no pid") };
        drop(process);
        let gone = async {
            // A killed process stays visible as a zombie until its new parent reaps it.
            while std::fs::read_to_string(format!("/proc/{pid}/stat"))
                .is_ok_and(|stat| !stat.contains(") Z"))
            {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(10), gone).await.unwrap();
    }
}
