//! AgentDojo: recorded runs, `runs/<pipeline>/<suite>/<task>/<attack>/<goal>.json`.
//!
//! The reader is that of the resilience evaluation. Runs of an attacker's goal as a user's task are not
//! part of the published table and are left out.

use karat_io::input::Member;
use karat_recordings::{Filter, Format, Reader};

use crate::runs::{Report, Runs};
use crate::source::Source;
use crate::writer::Writer;
use crate::{Benchmark, ImportError};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "agentdojo",
    title: "AgentDojo",
    needs: "runs/<pipeline>/<suite>/<task>/<attack>/<goal>.json, a folder or an archive",
    licence: "MIT",
    restricted: false,
    becomes: "resilience: one entry per pipeline and attack",
    checked_by: "the published table: utility, utility under attack and targeted ASR; 97 tasks and 629 \
                 pairs in v1.1.2",
    import,
};

const EXPECTED: &str = "a run of AgentDojo: {\"suite_name\", \"user_task_id\", \"messages\", \"utility\", \
                        \"security\", …}";

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    let filter = Filter::default();
    let mut reader = Reader::new(source.place(), Format::AgentDojo, &filter)?;
    let mut runs = Runs::new(Report::Attack);
    for file in source.files() {
        if !Format::AgentDojo.reads(&file.name) {
            writer.skip("a file that is not JSON");
            continue;
        }
        let bytes = source.bytes(file)?;
        writer.reading(&file.path);
        let member = Member { name: &file.name, bytes: &bytes };
        reader
            .member(&member)
            .map_err(|error| ImportError::Other(format!("{error}; expected {EXPECTED}")))?;
        let read = reader.take();
        if read.is_empty() {
            let is_goal = file.parts().iter().rev().nth(2).is_some_and(|task| {
                // The folder of the task, above those of the attack and the file.
                task.starts_with("injection_task_")
            });
            writer.skip(match is_goal {
                true => "a run of an attacker's goal as a user's task",
                false => "a JSON file that is not a run",
            });
        }
        for run in read {
            if run.failure().is_some() {
                writer.count("failed runs", 1);
            }
            runs.add(writer, &run)?;
        }
    }
    if runs.is_empty() {
        return Err(source.nothing(BENCHMARK.needs));
    }
    let versions = reader.finish()?.benchmarks;
    if !versions.is_empty() {
        let versions: Vec<String> = versions.into_iter().collect();
        writer.note(format!("runs that state a version of the benchmark: {}", versions.join(", ")));
    }
    runs.finish(writer)
}
