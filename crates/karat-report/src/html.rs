//! One self-contained page: it opens from disk, loads nothing, and its policy allows nothing but the
//! style and the script that it carries, by their digests.
//!
//! The first screen is plain HTML, complete without a script. The tables below it are built from a
//! data block, and only as text. Everything shown that came from outside has its control and
//! direction-changing characters made visible. The same report gives the same bytes.

mod chart;
mod data;
mod figures;
mod kind;
mod pack;
mod plot;
mod view;
pub(crate) mod words;

pub use words::{bound, count, encoded, moment, number, optional, signed};

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
const STYLE: &str = concat!(
    include_str!("../assets/style/base.css"),
    include_str!("../assets/style/cards.css"),
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
    include_str!("../assets/script/detection.js"),
    include_str!("../assets/script/server.js"),
    include_str!("../assets/script/agent.js"),
    include_str!("../assets/script/main.js"),
);

/// The looks of verdicts, each with its icon in a square of 16.
pub const ICONS: [(&str, &str); 5] = [
    ("pass", "M3 8.5l3.2 3.2L13 4.8"),
    ("fail", "M4 4l8 8M12 4l-8 8"),
    ("inconclusive", "M5.3 5.6a2.7 2.7 0 1 1 3.9 2.5c-.8.4-1.2.8-1.2 1.7M8 12.6v.1"),
    ("lost", "M8 3v6M8 12.4v.1"),
    ("open", "M4 8h8"),
];

/// Where a page that is served leads back to.
#[derive(Serialize)]
pub struct Back {
    /// What the link says.
    pub name: String,
    /// The address, on the same server.
    pub target: String,
}

/// The style of the page, for pages of the same look.
pub fn style() -> &'static str {
    STYLE
}

/// Where the page has the items of each report: `#` and this, `/` and the item's id.
pub fn anchors(check: &CheckReport) -> Vec<String> {
    view::slugs(check)
}

/// The page of a check, as a file: every link in it leads to a place in it.
pub fn page(check: &CheckReport) -> Result<String, String> {
    made(check, None)
}

/// The page of a check, as part of a site.
pub fn served(check: &CheckReport, back: &Back) -> Result<String, String> {
    made(check, Some(back))
}

fn made(check: &CheckReport, back: Option<&Back>) -> Result<String, String> {
    let slugs = view::slugs(check);
    let data = data::block(check, &slugs)?;
    let page = view::page(check, &slugs);
    render(&page, data, back).map_err(|error| format!("the page could not be made: {error:#}"))
}

/// Where templates are filled in: whatever came from outside is made printable and escaped.
pub fn environment<'source>() -> Result<Environment<'source>, minijinja::Error> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build()?;
    environment.set_syntax(syntax);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // Here rather than at each place that shows something, so that none can be forgotten.
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() => match printable(text) {
            Cow::Borrowed(_) => escape_formatter(out, state, value),
            Cow::Owned(shown) => escape_formatter(out, state, &Value::from(shown)),
        },
        _ => escape_formatter(out, state, value),
    });
    Ok(environment)
}

fn render(
    page: &view::Page,
    data: String,
    back: Option<&Back>,
) -> Result<String, minijinja::Error> {
    let mut environment = environment()?;
    // The ending of the name turns escaping on.
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

/// What the browser may do with the page: nothing beyond running what is in it.
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
    fn the_script_makes_the_same_characters_visible_as_the_library() {
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
