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

pub use words::{bound, number, signed};

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use karat_core::report::CheckReport;
use karat_core::text::printable;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, UndefinedBehavior, context, escape_formatter};
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

/// The style of the page, for pages of the same look.
pub fn style() -> &'static str {
    STYLE
}

/// Where the page has the items of each report: `#` and this, `/` and the item's id.
pub fn anchors(check: &CheckReport) -> Vec<String> {
    view::slugs(check)
}

/// The page of a check.
pub fn page(check: &CheckReport) -> Result<String, String> {
    let slugs = view::slugs(check);
    let data = data::block(check, &slugs)?;
    render(check, &slugs, data).map_err(|error| format!("the page could not be made: {error:#}"))
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

fn render(check: &CheckReport, slugs: &[String], data: String) -> Result<String, minijinja::Error> {
    let mut environment = environment()?;
    // The ending of the name turns escaping on.
    environment.add_template("page.html", TEMPLATE)?;
    environment.get_template("page.html")?.render(context! {
        policy => Value::from_safe_string(policy()),
        style => Value::from_safe_string(STYLE.to_owned()),
        script => Value::from_safe_string(SCRIPT.to_owned()),
        data => Value::from_safe_string(data),
        page => Value::from(Serde(&view::page(check, slugs))),
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
