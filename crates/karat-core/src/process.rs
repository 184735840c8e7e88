//! The one place that starts programs that are measured.
//!
//! A program speaks lines: one in, one out. It never goes through a shell, its output is bounded,
//! the end of its stderr is kept for messages, and it is killed with everything that it started as
//! soon as its handle is dropped.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// How much of stderr is kept.
const STDERR_KEPT: usize = 4 << 10;
/// How long the end of a program that closed its output is waited for.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// The longest line that a program may answer with.
pub const LONGEST_LINE: usize = 16 << 20;

/// A program to start: no shell, no interpolation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Program and arguments; never empty.
    pub command: Vec<String>,
    /// Variables set for it, beside those that Karat has.
    pub env: BTreeMap<String, String>,
    /// Where it runs.
    pub folder: Option<PathBuf>,
}

/// A running program, killed with its children on drop.
pub struct Process {
    child: Child,
    group: Option<rustix::process::Pid>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    stderr_reader: tokio::task::JoinHandle<()>,
}

/// What a program printed next.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A whole line, without its end.
    Text(String),
    /// A line that is not UTF-8.
    NotUtf8,
    /// A line beyond [`LONGEST_LINE`].
    TooLong,
    /// No more: the program closed its output.
    End,
}

impl Process {
    /// Starts the program with piped input and output.
    pub fn start(program: &Program) -> Result<(Process, ChildStdin, Lines), String> {
        let Some((name, arguments)) = program.command.split_first() else {
            return Err("the command is empty".to_owned());
        };
        let mut command = Command::new(name);
        command
            .args(arguments)
            .envs(&program.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(folder) = &program.folder {
            command.current_dir(folder);
        }
        let mut child =
            command.spawn().map_err(|error| format!("cannot start {name:?}: {error}"))?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(format!("cannot reach the input and output of {name:?}"));
        };
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let stderr_reader = tokio::spawn(keep_tail(stderr, Arc::clone(&kept)));
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(rustix::process::Pid::from_raw);
        Ok((Process { child, group, stderr: kept, stderr_reader }, stdin, Lines::new(stdout)))
    }

    /// Waits for the end that has already been seen coming and describes it: the exit status and
    /// what the program last said on stderr.
    pub async fn epitaph(&mut self) -> String {
        let waited = tokio::time::timeout(LAST_WORDS, self.child.wait()).await;
        let end = match waited {
            Ok(Ok(status)) => format!("it ended with {status}"),
            Ok(Err(error)) => format!("its end cannot be seen: {error}"),
            Err(_) => "it closed its output and did not end".to_owned(),
        };
        // Its last words may still be on their way; a grandchild may hold the pipe open for ever.
        let _ = tokio::time::timeout(LAST_WORDS, &mut self.stderr_reader).await;
        let tail = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = tail.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        match text.trim() {
            "" => end,
            said => format!("{end}; its stderr ends with: {said}"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The group outlives its leader while grandchildren run, and they must go too.
        if let Some(group) = self.group {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

async fn keep_tail(mut stderr: tokio::process::ChildStderr, kept: Arc<Mutex<VecDeque<u8>>>) {
    let mut block = [0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut block).await {
        let mut tail = kept.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&block[..read]);
        let excess = tail.len().saturating_sub(STDERR_KEPT);
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

    /// The next line. A failed read is an end: the program is not there any more.
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
            if self.buffer.len() + take > LONGEST_LINE {
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
            env: BTreeMap::new(),
            folder: None,
        }
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
    async fn the_end_is_described_with_what_stderr_said() {
        let script = "echo broken pipe dream >&2; exit 3";
        let (mut process, _stdin, mut lines) =
            Process::start(&program(&["sh", "-c", script])).unwrap();
        assert_eq!(lines.next().await, Line::End);
        let epitaph = process.epitaph().await;
        assert!(epitaph.contains("exit status: 3") && epitaph.contains("dream"), "{epitaph}");
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
