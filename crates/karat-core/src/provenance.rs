//! The place where and when a report was made.
//!
//! The one place that reads the wall clock. With `SOURCE_DATE_EPOCH` set, as reproducible builds do,
//! start time is that moment and every duration is left out, so that whole files can be compared
//! byte by byte.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use karat_io::process::spawn_helper;

use crate::report::{Bin, Environment, Latency, Source};

/// A started stopwatch that becomes the `environment` of a report.
pub struct Stopwatch {
    started: SystemTime,
    clock: Instant,
    frozen: bool,
}

impl Stopwatch {
    /// Starts now, or at `SOURCE_DATE_EPOCH`.
    pub fn start() -> Stopwatch {
        let frozen = std::env::var("SOURCE_DATE_EPOCH")
            .ok()
            .and_then(|seconds| seconds.parse().ok())
            .and_then(|seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
        Stopwatch {
            started: frozen.unwrap_or_else(SystemTime::now),
            clock: Instant::now(),
            frozen: frozen.is_some(),
        }
    }

    /// The `environment` of the report. `project` is the folder whose commit is recorded.
    pub fn environment(&self, latencies: &[Duration], project: Option<&Path>) -> Environment {
        let seconds = self.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Environment {
            karat: env!("CARGO_PKG_VERSION").to_owned(),
            os: format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
            started: utc(seconds),
            duration_ms: if self.frozen { 0 } else { millis(self.clock.elapsed()) },
            latency_ms: if self.frozen { None } else { quantiles(latencies) },
            latency_bins: match self.frozen {
                true => Vec::new(),
                false => bins(latencies.iter().map(|time| (time.as_secs_f64() * 1e3, 1))),
            },
            commit: project.and_then(commit),
            isolation: Vec::new(),
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Quantiles of the times, each one that was measured.
pub fn quantiles(times: &[Duration]) -> Option<Latency> {
    let mut sorted: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
    sorted.sort_by(f64::total_cmp);
    let last = *sorted.last()?;
    let at = |share: f64| {
        // inverted_cdf: the smallest value with at least this share at or below it.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a length is a small non-negative number"
        )]
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or(last)
    };
    Some(Latency { n: sorted.len() as u64, p50: at(0.5), p90: at(0.9), p99: at(0.99), max: last })
}

/// Milliseconds, each with how often it was measured, by size: eight bins for each doubling.
pub fn bins(times: impl Iterator<Item = (f64, u64)>) -> Vec<Bin> {
    const EACH_DOUBLING: f64 = 8.0;
    let mut found: BTreeMap<i64, u64> = BTreeMap::new();
    for (ms, count) in times.filter(|(ms, _)| ms.is_finite()) {
        #[expect(clippy::cast_possible_truncation, reason = "a logarithm of a time is small")]
        let place = (ms.max(1e-6).log2() * EACH_DOUBLING).ceil() as i64;
        *found.entry(place).or_default() += count;
    }
    let up_to = |place: i64| {
        let end = (place as f64 / EACH_DOUBLING).exp2();
        // Four digits are more than a bin is wide.
        format!("{end:.3e}").parse().unwrap_or(end)
    };
    found.into_iter().map(|(place, count)| Bin { up_to: up_to(place), count }).collect()
}

/// Today as `2026-11-15`, by the clock of all reports.
pub fn today() -> String {
    let started = Stopwatch::start().started;
    let mut day = utc(started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs());
    day.truncate("2026-11-15".len());
    day
}

/// Returns whether the text is a day of the calendar, written as `2026-11-15`.
pub fn is_day(text: &str) -> bool {
    let digits = |part: &str, length: usize| {
        let only = part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
        only.then(|| part.parse::<u32>().ok()).flatten()
    };
    let mut parts = text.split('-');
    let (Some(year), Some(month), Some(day), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4), digits(month, 2), digits(day, 2))
    else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=last).contains(&day)
}

/// Seconds since 1970 as `2026-11-15T03:04:05Z`.
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days to a civil date, counting from 1 March of year 0 so that leap days come last.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        rest / 3600,
        rest % 3600 / 60,
        rest % 60
    )
}

/// The time git may take: a folder on a dead network drive must not hold up a report.
const GIT_TIME: Duration = Duration::from_secs(20);

/// Returns the output of git in a folder; none if it fails, does not end or is not installed.
pub fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    ask_git(folder, arguments).ok()
}

/// Returns whether git tracks a file, by the name that it has without links; no where there is no repository.
///
/// # Errors
/// With what git said, if it cannot be asked: then it is unknown.
pub fn is_tracked(file: &Path) -> Result<bool, String> {
    // The folder of a tracked file may be gone.
    let folder = file.ancestors().skip(1).find(|folder| may_be_repository(folder));
    let Some((folder, name)) = folder.and_then(|it| Some((it, file.strip_prefix(it).ok()?))) else {
        return Ok(false);
    };
    let name = name.to_str().ok_or("its name is not text")?;
    // A name is a name, whatever it would mean as a pattern.
    ask_git(folder, &["--literal-pathspecs", "ls-files", "-z", "--", name])
        .map(|listed| !listed.is_empty())
}

/// Returns the output of git in a folder, or the reason there is none.
fn ask_git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command
        // A repository must not make git run programs of its own choosing.
        .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"])
        .arg("-C")
        .arg(folder)
        .args(arguments)
        .stdin(Stdio::null());
    output_within(&mut command, GIT_TIME)
}

/// Returns the output of a program if it succeeds in time; otherwise it is killed. Its stderr is
/// the reason if it does not end well.
fn output_within(command: &mut Command, limit: Duration) -> Result<String, String> {
    let child = spawn_helper(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut child = child.map_err(|error| format!("it cannot be started: {error}"))?;
    let printed = child.stdout.take().map(read_aside);
    let said = child.stderr.take().map(read_aside);
    let Some(Ok(Ok(bytes))) = printed.map(|printed| printed.recv_timeout(limit)) else {
        // Not waited for: what hangs in the kernel does not even die at once.
        let _ = child.kill();
        return Err(format!("it did not end within {} s", limit.as_secs()));
    };
    let ended = child.wait().map_err(|error| error.to_string())?;
    if !ended.success() {
        let said = said.and_then(|said| said.recv_timeout(limit).ok()?.ok()).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let first = said.lines().map(str::trim).find(|line| !line.is_empty());
        return Err(first.map_or_else(|| ended.to_string(), ToOwned::to_owned));
    }
    String::from_utf8(bytes).map_err(|_| "its output is not text".to_owned())
}

/// Reads a stream to its end in a thread of its own: a program that hangs must not hold up the caller.
fn read_aside(mut stream: impl Read + Send + 'static) -> Receiver<std::io::Result<Vec<u8>>> {
    let (send, received) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        // No one is listening once the time is over.
        let _ = send.send(read.map(|_| bytes));
    });
    received
}

/// The project in a folder with its branch and commit, and the CI job that measures it.
pub fn source(folder: &Path, project: Option<String>) -> Source {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let repository = may_be_repository(folder);
    let ask = |arguments: &[&str]| {
        let line = repository.then(|| git(folder, arguments))??.trim().to_owned();
        Some(line).filter(|line| !line.is_empty() && line != "HEAD")
    };
    Source {
        project,
        // CI checks out a commit, not a branch.
        branch: ["GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME"]
            .iter()
            .find_map(|name| variable(name))
            .or_else(|| ask(&["rev-parse", "--abbrev-ref", "HEAD"])),
        commit: commit(folder),
        subject: ask(&["log", "-1", "--format=%s"]),
        job: job(variable),
    }
}

/// The address of the CI job, on GitHub, GitLab and those that name it themselves.
fn job(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let github = || {
        let part = |name| variable(name);
        let (server, repository) = (part("GITHUB_SERVER_URL")?, part("GITHUB_REPOSITORY")?);
        Some(format!("{server}/{repository}/actions/runs/{}", part("GITHUB_RUN_ID")?))
    };
    let named = ["CI_JOB_URL", "BUILD_URL"].iter().find_map(|name| variable(name));
    let address = github().or(named)?;
    (address.starts_with("https://") || address.starts_with("http://")).then_some(address)
}

/// The commit of the folder, with `+changes` where the work tree differs from it.
fn commit(folder: &Path) -> Option<String> {
    if !may_be_repository(folder) {
        return None;
    }
    let head = git(folder, &["rev-parse", "HEAD"])?.trim().to_owned();
    let changed = git(folder, &["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.trim().is_empty() { head } else { format!("{head}+changes") })
}

/// Returns whether git could know the folder: starting it only to hear that it does not takes longer than all else
/// that a small report needs.
fn may_be_repository(folder: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    std::env::var_os("GIT_DIR").is_some()
        || folder.ancestors().any(|above| above.join(".git").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_is_asked_about_folders_below_a_repository_alone() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        assert!(!may_be_repository(&below));
        assert!(!may_be_repository(&folder.path().join("missing")));
        // A worktree has a file of that name.
        std::fs::write(folder.path().join("a/.git"), "gitdir: elsewhere").unwrap();
        assert!(may_be_repository(&below));
    }

    #[test]
    fn a_program_that_does_not_end_in_time_says_nothing() {
        let limit = Duration::from_millis(50);
        assert!(output_within(Command::new("sleep").arg("600"), limit).is_err());
        let long = Duration::from_secs(600);
        let notes = output_within(Command::new("echo").arg("word"), long);
        assert_eq!(notes.as_deref(), Ok("word\n"));
        assert!(output_within(&mut Command::new("false"), long).is_err());
    }

    #[test]
    fn a_program_that_fails_gives_its_own_reason() {
        let mut failing = Command::new("ls");
        let why = output_within(failing.arg("/no/such/place"), Duration::from_secs(600));
        assert!(why.as_ref().is_err_and(|why| why.contains("/no/such/place")), "{why:?}");
    }

    #[test]
    fn a_day_is_one_of_the_calendar() {
        for day in ["2026-11-15", "2024-02-29", "2000-02-29", "2026-12-31"] {
            assert!(is_day(day), "{day}");
        }
        for text in
            ["2026-99-99", "2026-02-30", "2026-02-29", "1900-02-29", "2026-04-31", "2026-00-01"]
        {
            assert!(!is_day(text), "{text}");
        }
        for text in ["", "soon", "2026-1-1", "2026-+1-01", "2026-11-15T00:00:00Z", "2026-11-15-1"] {
            assert!(!is_day(text), "{text}");
        }
    }

    #[test]
    fn dates_are_civil() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_794_711_845), "2026-11-15T03:04:05Z");
        assert_eq!(utc(4_107_542_399), "2100-02-28T23:59:59Z");
    }

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let times: Vec<_> = (1..=10).map(Duration::from_millis).collect();
        let latency = quantiles(&times).unwrap();
        assert_eq!((latency.p50, latency.p90, latency.p99, latency.max), (5.0, 9.0, 10.0, 10.0));
        assert_eq!(quantiles(&[]), None);
    }

    #[test]
    fn times_of_about_one_size_share_a_bin() {
        let found = bins([(1.0, 2), (0.98, 1), (0.0, 1), (1000.0, 3), (f64::NAN, 9)].into_iter());
        let counts: Vec<u64> = found.iter().map(|bin| bin.count).collect();
        assert_eq!(counts, [1, 3, 3]);
        assert_eq!(found[1].up_to, 1.0);
        assert!((1000.0..1100.0).contains(&found[2].up_to), "{found:?}");
        assert_eq!(bins(std::iter::empty()), []);
    }
}
