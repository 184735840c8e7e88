//! `karat corpus`: freeze a dataset, and check a frozen one.

use karat_core::dataset::{DatasetFiles, IfFrozen, Manifest, Meta, Version};
use karat_core::report::DatasetRef;
use karat_core::text::printable;
use karat_detection::dataset::Sample;
use serde_json::{Value, json};

use crate::cli::{FreezeArgs, VerifyArgs};
use crate::exit::{Exit, Stop};
use crate::face::Terminal;

/// Writes the manifest. A folder that is frozen with other content is refused: that is a new version.
pub(crate) fn freeze(arguments: &FreezeArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let folder = &arguments.folder;
    let part = |path: Option<&std::path::Path>| {
        path.and_then(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned())
    };
    let (Some(version), Some(name)) = (part(Some(folder)), part(folder.parent())) else {
        return Err(Stop::bad_input(format!(
            "{}: a dataset lies in a folder NAME/vN, such as datasets/tools/v1",
            folder.display()
        )));
    };
    let version: Version = version.parse().map_err(|_| {
        Stop::bad_input(format!("{}: the last folder is the version, v1, v2 …", folder.display()))
    })?;
    let meta =
        Meta { name, version, licence: arguments.licence.clone(), made: arguments.made.clone() };
    let manifest = Manifest::freeze(folder, meta, IfFrozen::Refuse).map_err(Stop::bad_input)?;
    terminal.print(&format!(
        "{} {}: {} files, {}\n",
        manifest.name,
        manifest.version,
        manifest.files.len(),
        manifest.digest()
    ))?;
    Ok(Exit::Pass)
}

/// What was found in a dataset, of whichever kind it is.
struct Checked {
    dataset: DatasetRef,
    /// How many of what it holds.
    holds: Vec<(&'static str, usize)>,
    /// The id of an entry, and what is wrong with it.
    findings: Vec<(String, String)>,
}

/// Verifies digests and labels, then the rules of the audit.
pub(crate) fn verify(arguments: &VerifyArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let files = DatasetFiles::Folder(arguments.folder.clone());
    let checked =
        if arguments.folder.join("entries").is_dir() { threats(files)? } else { tools(files)? };
    let Checked { dataset, holds, findings } = checked;
    if terminal.json() {
        let holds: serde_json::Map<String, Value> =
            holds.iter().map(|(what, count)| ((*what).to_owned(), json!(count))).collect();
        let findings: Vec<Value> =
            findings.iter().map(|(id, message)| json!({"id": id, "message": message})).collect();
        terminal.print_json(&json!({
            "schema": "karat.verify/1",
            "dataset": dataset,
            "holds": holds,
            "findings": findings,
        }))?;
    } else {
        let holds: Vec<String> =
            holds.iter().map(|(what, count)| format!("{count} {what}")).collect();
        let mut text = format!(
            "{} {}: {}; digests and labels are right\n",
            dataset.id,
            dataset.version,
            holds.join(", ")
        );
        for (id, message) in &findings {
            text.push_str(&format!("{}: {}\n", printable(id), printable(message)));
        }
        terminal.print(&text)?;
    }
    if findings.is_empty() {
        return Ok(Exit::Pass);
    }
    Err(Stop::bad_input(format!("{} rules are broken", findings.len())))
}

fn tools(files: DatasetFiles) -> Result<Checked, Stop> {
    let dataset = karat_retrieval::dataset::Dataset::open(files)?;
    let findings = karat_retrieval::audit::audit(&dataset);
    Ok(Checked {
        holds: vec![
            ("tools", dataset.tools.len()),
            ("queries", dataset.queries.len()),
            ("groups", dataset.groups.len()),
        ],
        findings: findings.into_iter().map(|finding| (finding.id, finding.message)).collect(),
        dataset: dataset.reference,
    })
}

fn threats(files: DatasetFiles) -> Result<Checked, Stop> {
    let dataset = karat_detection::dataset::Dataset::open_for_audit(files)?;
    let findings = karat_detection::audit::audit(&dataset);
    let count = |wanted: fn(&Sample) -> bool| dataset.samples.iter().filter(|s| wanted(s)).count();
    Ok(Checked {
        holds: vec![
            ("attacks", count(Sample::is_malicious)),
            ("hard negatives", count(Sample::is_hard_negative)),
        ],
        findings: findings.into_iter().map(|finding| (finding.id, finding.message)).collect(),
        dataset: dataset.reference,
    })
}
