//! The functions on offer and the possible answers of each item.

use std::collections::BTreeMap;

use karat_metrics::calls::bfcl::{Answer, Function, Language};
use karat_metrics::calls::{Value, json};

use super::category::{Category, Content};
use super::folders::is_below;
use crate::ImportError;
use crate::source::{File, Source};

/// One item.
pub(super) struct Question {
    pub(super) id: String,
    pub(super) functions: Vec<Function>,
    /// The same functions with underscores for the dots of their names.
    pub(super) underscored: Vec<Function>,
    /// The parameters that take tuples, with their functions.
    pub(super) tuples: Vec<(String, String)>,
    pub(super) answers: Vec<Answer<'static>>,
}

/// The files of a category: functions, and possible answers.
type Files<'a> = (Option<&'a File>, Option<&'a File>);

/// The files of items, by version and category.
pub(super) struct Questions<'a> {
    files: BTreeMap<(String, String), Files<'a>>,
}

impl<'a> Questions<'a> {
    pub(super) fn find(source: &'a Source) -> Questions<'a> {
        let mut files: BTreeMap<_, Files<'_>> = BTreeMap::new();
        for file in source.files() {
            let Some((category, "data")) = Category::of(file.base()) else { continue };
            if is_below(file, "result") || is_below(file, "score") {
                continue;
            }
            let known = files.entry((category.version, category.name)).or_default();
            if file.folder() == Some("possible_answer") {
                known.1 = known.1.or(Some(file));
            } else {
                known.0 = known.0.or(Some(file));
            }
        }
        Questions { files }
    }

    /// The categories whose items are here, by version and name.
    pub(super) fn categories(&self) -> impl Iterator<Item = (&str, &str)> {
        let with_items = self.files.iter().filter(|(_, (items, _))| items.is_some());
        with_items.map(|((version, name), _)| (version.as_str(), name.as_str()))
    }

    /// The error for a category without items and without verdicts.
    pub(super) fn missing(&self, result: &File, category: &Category) -> ImportError {
        let Category { version, name } = category;
        let other = self.files.keys().find(|(other, known)| known == name && other != version);
        let found = match other {
            Some((other, _)) => format!("the data of {other}: another version"),
            None => "neither; name the folder of the data too".to_owned(),
        };
        let expected = format!(
            "{version}_{name}.json with possible_answer/{version}_{name}.json, or the score file"
        );
        ImportError::unexpected(&result.path, expected, found)
    }

    /// The items of a category; none if the source does not have them.
    pub(super) fn read(
        &self,
        source: &Source,
        category: &Category,
    ) -> Result<Option<Vec<Question>>, ImportError> {
        let key = (category.version.clone(), category.name.clone());
        let Some((Some(questions), answers)) = self.files.get(&key) else { return Ok(None) };
        let content = category.content();
        let language = match content {
            Content::Calls(language) => language,
            _ => Language::Python,
        };
        let text = source.text(questions)?;
        let mut items = Vec::new();
        for (at, text) in lines(&text) {
            items.push(question(questions, at, &line(questions, at, text)?, category, language)?);
        }
        if !matches!(content, Content::Calls(_)) {
            return Ok(Some(items));
        }
        let Some(answers) = answers else { return Ok(None) };
        let text = source.text(answers)?;
        let lines: Vec<_> = lines(&text).collect();
        if lines.len() != items.len() {
            let expected = format!("{} possible answers", items.len());
            return Err(ImportError::unexpected(&answers.path, expected, lines.len().to_string()));
        }
        for ((at, text), item) in lines.into_iter().zip(&mut items) {
            let value = line(answers, at, text)?;
            if let Value::Object(object) = &value
                && let Some(Value::String(id)) = object.get("id")
                && *id != item.id
            {
                let expected = format!("the possible answers of {}", item.id);
                return Err(wrong(answers, at, &expected, &format!("those of {id}")));
            }
            item.answers = possible(answers, at, &value, &item.functions)?;
        }
        Ok(Some(items))
    }
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty())
}

fn wrong(file: &File, at: usize, expected: &str, found: &str) -> ImportError {
    ImportError::unexpected(&file.path, expected, format!("line {}: {found}", at + 1))
}

fn question(
    file: &File,
    at: usize,
    value: &Value<'_>,
    category: &Category,
    language: Language,
) -> Result<Question, ImportError> {
    let expected = "items with `function`";
    let Value::Object(item) = value else { return Err(wrong(file, at, expected, "not an object")) };
    let id = match item.get("id") {
        Some(Value::String(id)) => id.clone().into_owned(),
        _ => format!("{}_{at}", category.name),
    };
    let functions = match item.get("function") {
        Some(Value::List(functions)) => functions.as_slice(),
        Some(function @ Value::Object(_)) => std::slice::from_ref(function),
        _ => return Err(wrong(file, at, expected, "no `function`")),
    };
    let calls = matches!(category.content(), Content::Calls(_));
    let tuples = functions.iter().filter(|_| calls).flat_map(tuples).collect();
    let functions: Vec<Function> = functions
        .iter()
        .filter(|_| calls)
        .map(|function| Function::in_language(function, language))
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(file, at, expected, &error.to_string()))?;
    let underscored = functions.iter().cloned().map(Function::with_underscores).collect();
    Ok(Question { id, functions, underscored, tuples, answers: Vec::new() })
}

/// The parameters of a described function that take tuples, with its name.
fn tuples(function: &Value<'_>) -> Vec<(String, String)> {
    let field = |value: &Value<'_>, key: &str| match value {
        Value::Object(object) => object.get(key).cloned().map(Value::into_owned),
        _ => None,
    };
    let Some(Value::String(name)) = field(function, "name") else { return Vec::new() };
    let properties = field(function, "parameters").and_then(|all| field(&all, "properties"));
    let Some(Value::Object(properties)) = properties else { return Vec::new() };
    let is_tuple = |property: &Value<'_>| matches!(field(property, "type"), Some(Value::String(kind)) if kind == "tuple");
    let found = properties.iter().filter(|(_, property)| is_tuple(property));
    found.map(|(parameter, _)| (name.clone().into_owned(), parameter.to_owned())).collect()
}

/// The possible answers of a line: `{"id", "ground_truth": [{…}]}`, `[{…}]`, or `{function: …}` in the
/// first generation, where a number behind a name tells calls of one function apart.
fn possible(
    file: &File,
    at: usize,
    value: &Value<'_>,
    functions: &[Function],
) -> Result<Vec<Answer<'static>>, ImportError> {
    let expected =
        "possible answers: {\"id\", \"ground_truth\": [{function: {argument: [value]}}]}";
    let read = |value: &Value<'_>| {
        Answer::from_json(&value.clone().into_owned())
            .map_err(|error| wrong(file, at, expected, &error.to_string()))
    };
    let truth = match value {
        Value::Object(item) => item.get("ground_truth"),
        _ => None,
    };
    match (truth.unwrap_or(value), value) {
        (Value::List(answers), _) => answers.iter().map(read).collect(),
        (Value::Object(answers), _) => answers
            .iter()
            .map(|(name, arguments)| {
                let known = functions.iter().any(|function| function.name == name);
                let plain = name.trim_end_matches(|c: char| c.is_ascii_digit());
                let name = if known { name } else { plain.trim_end_matches(['_', ' ']) };
                let one = [(name.to_owned(), arguments.clone().into_owned())].into_iter().collect();
                read(&Value::Object(one))
            })
            .collect(),
        _ => Err(wrong(file, at, expected, "neither an object nor a list")),
    }
}

/// A line of a file as a value, with the line in messages.
pub(super) fn line<'t>(file: &File, at: usize, text: &'t str) -> Result<Value<'t>, ImportError> {
    json::parse(text).map_err(|error| {
        ImportError::unexpected(
            &file.path,
            "a JSON object on each line",
            format!("line {}: {error}", at + 1),
        )
    })
}
