//! `karat corpus`: freeze a dataset, and check a frozen one.

use karat_core::dataset::{DatasetFiles, IfFrozen, Manifest, Meta, Version};
use karat_core::text::printable;
use karat_retrieval::audit::audit;
use karat_retrieval::dataset::Dataset;
use serde_json::json;

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

/// Verifies digests and labels, then the rules of the audit.
pub(crate) fn verify(arguments: &VerifyArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let dataset = Dataset::open(DatasetFiles::Folder(arguments.folder.clone()))?;
    let findings = audit(&dataset);
    if terminal.json() {
        terminal.print_json(&json!({
            "schema": "karat.verify/1",
            "dataset": dataset.reference,
            "tools": dataset.tools.len(),
            "queries": dataset.queries.len(),
            "groups": dataset.groups.len(),
            "findings": findings
                .iter()
                .map(|finding| json!({"id": finding.id, "message": finding.message}))
                .collect::<Vec<_>>(),
        }))?;
    } else {
        let mut text = format!(
            "{} {}: {} tools, {} queries, {} groups; digests and labels are right\n",
            dataset.reference.id,
            dataset.reference.version,
            dataset.tools.len(),
            dataset.queries.len(),
            dataset.groups.len()
        );
        for finding in &findings {
            text.push_str(&format!(
                "{}: {}\n",
                printable(&finding.id),
                printable(&finding.message)
            ));
        }
        terminal.print(&text)?;
    }
    if findings.is_empty() {
        return Ok(Exit::Pass);
    }
    Err(Stop::bad_input(format!("{} rules are broken", findings.len())))
}
