//! The categories of BFCL, by the names of files.

use karat_metrics::calls::bfcl::Language;

/// The prefix of the files of the first generation.
const FIRST: &str = "gorilla_openfunctions_v1_test_";

/// A category of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Category {
    /// The version, such as `BFCL_v4`.
    pub(super) version: String,
    /// The name, such as `simple_python`.
    pub(super) name: String,
}

/// The content of a right answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The expected calls.
    Calls(Language),
    /// No call.
    NoCall,
    /// Any call.
    AnyCall,
    /// Whatever a simulated world says.
    World,
}

impl Category {
    /// The category of a file, and `result`, `score` or `data`.
    pub(super) fn of(base: &str) -> Option<(Category, &'static str)> {
        let stem = base.strip_suffix(".json").or_else(|| base.strip_suffix(".jsonl"))?;
        let (stem, kind) = match stem.strip_suffix("_result") {
            Some(stem) => (stem, "result"),
            None => match stem.strip_suffix("_score") {
                Some(stem) => (stem, "score"),
                None => (stem, "data"),
            },
        };
        let (version, name) = if let Some(name) = stem.strip_prefix(FIRST) {
            ("gorilla_openfunctions_v1".to_owned(), name)
        } else if let Some(rest) = stem.strip_prefix("BFCL_v") {
            let (number, name) = rest.split_once('_')?;
            (format!("BFCL_v{number}"), name)
        } else if kind == "score" {
            // Score files of the first generation have the name of the category alone.
            ("gorilla_openfunctions_v1".to_owned(), stem)
        } else {
            return None;
        };
        Some((Category { version, name: name.to_owned() }, kind))
    }

    pub(super) fn content(&self) -> Content {
        let name = self.name.as_str();
        let world = ["multi_turn", "memory", "web_search", "format_sensitivity", "exec", "rest"];
        if world.iter().any(|start| name.starts_with(start)) || matches!(name, "sql" | "chatable") {
            return Content::World;
        }
        // The first generation calls relevance what is irrelevance since.
        if name.contains("irrelevance") || name == "relevance" {
            return Content::NoCall;
        }
        if name.contains("relevance") {
            return Content::AnyCall;
        }
        Content::Calls(match name {
            name if name.ends_with("javascript") => Language::JavaScript,
            name if name.ends_with("java") => Language::Java,
            _ => Language::Python,
        })
    }

    /// The part of the leaderboard.
    pub(super) fn section(&self) -> &'static str {
        match self.name.as_str() {
            name if name.starts_with("live_") => "live",
            name if name.starts_with("multi_turn") => "multi_turn",
            name if name.starts_with("memory") || name.starts_with("web_search") => "agentic",
            _ => "non_live",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_gives_version_category_and_kind() {
        let of = |base: &str| {
            Category::of(base).map(|(category, kind)| (category.version, category.name, kind))
        };
        let found =
            |version: &str, name: &str, kind| Some((version.to_owned(), name.to_owned(), kind));
        let v4 = of("BFCL_v4_live_multiple_result.json");
        assert_eq!(v4, found("BFCL_v4", "live_multiple", "result"));
        assert_eq!(of("BFCL_v3_simple.json"), found("BFCL_v3", "simple", "data"));
        let first = of("gorilla_openfunctions_v1_test_relevance_result.json");
        assert_eq!(first, found("gorilla_openfunctions_v1", "relevance", "result"));
        assert_eq!(of("java_score.json"), found("gorilla_openfunctions_v1", "java", "score"));
        assert_eq!(of("README.md"), None);
    }
}
