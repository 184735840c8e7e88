//! One self-contained page: it opens from disk, loads nothing, and its policy allows only the style
//! and the script in it, by their digests.
//!
//! The first screen is plain HTML, complete without a script. The script builds the tables below it
//! from a data block, as text nodes only. Control and direction-changing characters of text from
//! outside are made visible. The same report gives the same bytes.

mod data;
mod facet;
mod figures;
mod rules;
mod view;

pub use view::{Change, Flip, Tone};

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karat_core::report::CheckReport;
use karat_io::text::printable;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, UndefinedBehavior, context, escape_formatter};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

const TEMPLATE: &str = include_str!("../assets/page.html");
/// Macros that pages of the same look import.
const MACROS: &str = include_str!("../assets/macros.html");
const STYLE: &str = concat!(
    include_str!("../assets/style/base.css"),
    include_str!("../assets/style/cards.css"),
    include_str!("../assets/style/rules.css"),
    include_str!("../assets/style/figures.css"),
    include_str!("../assets/style/explore.css"),
    include_str!("../assets/style/inspector.css"),
);
const SCRIPT: &str = concat!(
    include_str!("../assets/script/text.js"),
    include_str!("../assets/script/data.js"),
    include_str!("../assets/script/slices.js"),
    include_str!("../assets/script/items.js"),
    include_str!("../assets/script/inspector.js"),
    include_str!("../assets/script/parts.js"),
    include_str!("../assets/script/retrieval.js"),
    include_str!("../assets/script/detection.js"),
    include_str!("../assets/script/server.js"),
    include_str!("../assets/script/agent.js"),
    include_str!("../assets/script/resilience.js"),
    include_str!("../assets/script/definitions.js"),
    include_str!("../assets/script/main.js"),
);

/// The style classes of verdicts, each with the path of its icon in a square of 16.
pub const ICONS: [(&str, &str); 5] = [
    ("pass", "M3 8.5l3.2 3.2L13 4.8"),
    ("fail", "M4 4l8 8M12 4l-8 8"),
    ("inconclusive", "M5.3 5.6a2.7 2.7 0 1 1 3.9 2.5c-.8.4-1.2.8-1.2 1.7M8 12.6v.1"),
    ("lost", "M8 3v6M8 12.4v.1"),
    ("open", "M4 8h8"),
];

/// The link from a served page back to the site.
#[derive(Serialize)]
pub struct Back {
    /// The text of the link.
    pub name: String,
    /// The address, on the same server.
    pub target: String,
}

/// The style of the page, for other pages that look like it.
pub fn style() -> &'static str {
    STYLE
}

/// The anchors of the reports: `#`, this, `/` and an item's id address an item.
pub fn anchors(check: &CheckReport) -> Vec<String> {
    view::slugs(check)
}

/// The page of a check as a file: every link in it stays in it.
///
/// # Errors
/// If the page cannot be rendered.
pub fn page(check: &CheckReport) -> Result<String, String> {
    page_with(check, None)
}

/// The page of a check as part of a site.
///
/// # Errors
/// If the page cannot be rendered.
pub fn served(check: &CheckReport, back: &Back) -> Result<String, String> {
    page_with(check, Some(back))
}

fn page_with(check: &CheckReport, back: Option<&Back>) -> Result<String, String> {
    let slugs = view::slugs(check);
    let data = data::block(check, &slugs)?;
    let page = view::page(check, &slugs);
    render(&page, data, back).map_err(|error| format!("cannot render the page: {error:#}"))
}

/// The environment of the templates: text from outside is made printable and escaped.
///
/// # Errors
/// If the template syntax is not valid.
pub fn environment<'source>() -> Result<Environment<'source>, minijinja::Error> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build()?;
    environment.set_syntax(syntax);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // Once here and not wherever text is shown, so that no place can be forgotten.
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() => match printable(text) {
            Cow::Borrowed(_) => escape_formatter(out, state, value),
            Cow::Owned(shown) => escape_formatter(out, state, &Value::from(shown)),
        },
        _ => escape_formatter(out, state, value),
    });
    // The extension of the name turns escaping on.
    environment.add_template("macros.html", MACROS)?;
    Ok(environment)
}

fn render(
    page: &view::Page,
    data: String,
    back: Option<&Back>,
) -> Result<String, minijinja::Error> {
    let mut environment = environment()?;
    environment.add_template("page.html", TEMPLATE)?;
    environment.get_template("page.html")?.render(context! {
        policy => Value::from_safe_string(policy()),
        style => Value::from_safe_string(STYLE.to_owned()),
        script => Value::from_safe_string(SCRIPT.to_owned()),
        data => Value::from_safe_string(data),
        icons => Value::from(Serde(&ICONS)),
        back => Value::from(Serde(&back)),
        page => Value::from(Serde(page)),
    })
}

/// The content security policy: the page may run what is in it, and nothing else.
fn policy() -> String {
    format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; img-src data:; base-uri 'none'; \
         form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        digest(STYLE),
        digest(SCRIPT)
    )
}

fn digest(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    use serde_json::Value as Json;

    /// The view model of a check, as JSON.
    fn view(check: &CheckReport) -> Json {
        serde_json::to_value(view::page(check, &view::slugs(check))).unwrap()
    }

    /// JSON as a short outline: plain fields share a line, what is empty is left out.
    fn outline(name: &str, value: &Json, indent: usize, text: &mut String) {
        let pad = "  ".repeat(indent);
        match value {
            Json::Null => {}
            Json::Array(list) if list.iter().all(|one| !one.is_array() && !one.is_object()) => {
                let list: Vec<String> = list.iter().map(short).collect();
                if !list.is_empty() {
                    text.push_str(&format!("{pad}{name}: {}\n", list.join(" | ")));
                }
            }
            Json::Array(list) => list.iter().for_each(|one| outline(name, one, indent, text)),
            Json::Object(fields) => {
                let nested = |value: &Json| value.is_array() || value.is_object();
                let plain = fields.iter().filter(|(_, value)| !nested(value) && !value.is_null());
                let plain: Vec<String> =
                    plain.map(|(key, value)| format!("{key}={}", short(value))).collect();
                text.push_str(format!("{pad}{name}: {}", plain.join(" ")).trim_end());
                text.push('\n');
                for (key, value) in fields.iter().filter(|(_, value)| nested(value)) {
                    outline(key, value, indent + 1, text);
                }
            }
            plain => text.push_str(&format!("{pad}{name}: {}\n", short(plain))),
        }
    }

    fn short(value: &Json) -> String {
        value.as_str().map_or_else(|| value.to_string(), |text| text.replace('\n', " "))
    }

    fn outlined(name: &str, value: &Json) -> String {
        let mut text = String::new();
        outline(name, value, 0, &mut text);
        text
    }

    #[test]
    fn the_view_of_a_check_has_every_part() {
        insta::assert_snapshot!(outlined("page", &view(&sample::small())));
    }

    #[test]
    fn each_kind_of_report_has_its_figures() {
        for report in sample::kinds::each() {
            let kind = format!("figures_of_{}", report.kind);
            let figures = view(&sample::single(report))["cards"][0]["figures"].take();
            insta::assert_snapshot!(kind, outlined("figure", &figures));
        }
    }

    /// The ranges of characters that the script makes visible, as written in text.js.
    fn script_ranges() -> Vec<(u32, u32)> {
        let line = SCRIPT.lines().find(|line| line.starts_with("const HIDDEN")).unwrap();
        let class = &line[line.find('[').unwrap() + 1..line.find(']').unwrap()];
        let code = |text: &str| {
            let hex = text.strip_prefix("\\u{").and_then(|rest| rest.strip_suffix('}'));
            u32::from_str_radix(hex.unwrap_or_else(|| panic!("{text}")), 16).unwrap()
        };
        class
            .replace("}\\u", "} \\u")
            .split(' ')
            .map(|range| range.split_once('-').unwrap_or((range, range)))
            .map(|(from, to)| (code(from), code(to)))
            .collect()
    }

    #[test]
    fn the_script_and_the_library_make_the_same_characters_visible() {
        let ranges = script_ranges();
        for character in '\0'..=char::MAX {
            let code = u32::from(character);
            let ours = ranges.iter().any(|(from, to)| (*from..=*to).contains(&code));
            let text = character.to_string();
            let library = matches!(printable(&text), Cow::Owned(_));
            assert_eq!(ours, library, "U+{code:04X}");
        }
    }

    #[test]
    fn style_and_script_cannot_end_their_elements() {
        assert!(!STYLE.contains("</") && !SCRIPT.to_lowercase().contains("</script"));
        assert!(!SCRIPT.contains("<!--"));
    }

    #[test]
    fn the_script_never_parses_text_as_html_or_code() {
        for word in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("]
        {
            assert!(!SCRIPT.contains(word), "{word}");
        }
    }
}
