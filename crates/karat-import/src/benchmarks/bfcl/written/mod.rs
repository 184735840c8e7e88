//! Calls that are written as text, as models do whose interface has no calls of its own (prompting):
//! `[f(a=1), g.h(b="x")]`, in the syntax of the functions' language.
//!
//! The rules are those of bfcl-eval 2026.3.23 (`default_decode_ast_prompting`). Calls in Java are not
//! read: the original looks for them with a parser that adds missing semicolons, and which of them
//! it finds depends on how it weighs errors. Nor are the notations of single models.

mod javascript;
mod python;
mod python_values;
mod tokens;

use karat_metrics::calls::bfcl::Language;
use karat_metrics::calls::{Call, Object, Value};

/// A longer text is not read.
const MAX_BYTES: usize = 1 << 20;

/// Reads the calls of a text.
///
/// # Errors
/// If it is not a list of calls, the reason.
pub(super) fn calls(text: &str, language: Language) -> Result<Vec<Call<'static>>, String> {
    if text.len() > MAX_BYTES {
        return Err("the text is too long to be calls".to_owned());
    }
    let text = text.trim_matches(['`', '\n', ' ']);
    let start = if text.starts_with('[') { "" } else { "[" };
    let end = if text.ends_with(']') { "" } else { "]" };
    let text = [start, text, end].concat();
    let inner = || text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
    match language {
        Language::Python => python::calls(&text),
        Language::JavaScript => javascript::call(inner()).map(|call| vec![call]),
        Language::Java => Err("calls written in Java are not read".to_owned()),
    }
}

/// The call with tuples as lists where the parameter takes tuples.
pub(super) fn with_tuples(call: &Call<'static>, takes: impl Fn(&str) -> bool) -> Call<'static> {
    let argument = |(name, value): (&str, &Value<'static>)| {
        let list = if takes(name) { python_values::as_list(value) } else { None };
        (name.to_owned(), list.unwrap_or_else(|| value.clone()))
    };
    let arguments: Object<'static> = call.arguments().iter().map(argument).collect();
    Call::new(call.name.clone().into_owned(), arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls as text; none if there are none to be read.
    fn read(text: &str, language: Language) -> Option<String> {
        let call = |call: &Call<'static>| {
            let arguments = Value::Object(call.arguments().clone());
            format!("{}{arguments}", call.name)
        };
        let calls = calls(text, language).ok()?;
        Some(calls.iter().map(call).collect::<Vec<_>>().join(" ").replace("\\u0000", "!"))
    }

    /// The answers are those of bfcl-eval's own decoder.
    #[test]
    fn calls_in_python_are_read_as_python_reads_them() {
        for (text, expected) in [
            ("[f(a=1), g.h(b='x')]", r#"f{"a":1} g.h{"b":"x"}"#),
            ("```\n[f(a=[1, 2.5, None, True])]\n```", r#"f{"a":[1,2.5,null,true]}"#),
            ("f(a='it''s', b=\"\\u00e4\\n\")", r#"f{"a":"its","b":"ä\n"}"#),
            ("f(a=-1, b=+1, c=not True)", r#"f{"a":-1,"b":-1,"c":-1}"#),
            (
                "f(a=60 * 60 - 1, b=7 // -2, c='x' + 'y', d=1 / 4)",
                r#"f{"a":3599,"b":-4,"c":"xy","d":0.25}"#,
            ),
            (
                "f(a=x, b=g(1,'y'), c=g(z=1), d=x [ 0 : 1 ])",
                r#"f{"a":"x","b":"g(1, 'y')","c":{"g":{"z":1}},"d":"x[0:1]"}"#,
            ),
            ("f(5, *x, a=1, a=2)", r#"f{"a":2}"#),
            ("f(a=(1, 2), b={'k': [1], 2: 3})", r#"f{"a":{"!tuple":[1,2]},"b":{"k":[1],"!2":3}}"#),
            (
                "[f(a=0x1F, b=1_000, c=1e3,\n  d=.5)] # done]",
                r#"f{"a":31,"b":1000,"c":1000.0,"d":0.5}"#,
            ),
            ("[]", ""),
            ("", ""),
        ] {
            assert_eq!(read(text, Language::Python).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "I cannot do that.",
            "[1, 2]",
            "[f(a=1), 5]",
            "f(a=x.y)",
            "f(a=-x)",
            "f(a=lambda: 1)",
            "f(a={1, 2})",
            "f(a=f'x')",
            "f(a=1 b=2)",
            "f(class=1)",
            "f(a='x",
            "f(a=01)",
            "f(a=5km)",
            "[f(a=1)][0]",
            "[f(x) for x in y]",
            "f(a=1, 2)",
            "f(a=1)]]",
            "f(a=1)\ng(b=2) and",
            "f(a={**x})",
        ] {
            assert_eq!(read(text, Language::Python), None, "{text}");
        }
        assert_eq!(read(&"(".repeat(100_000), Language::Python), None);
        assert_eq!(read(&format!("f(a={}1)", "-".repeat(100_000)), Language::Python), None);
    }

    #[test]
    fn a_call_in_javascript_is_read_as_source() {
        for (text, expected) in [
            ("a.b(x=1, y=\"s\", z='t')", r#"a.b{"x":"1","y":"s","z":"t"}"#),
            (
                "[f(a=[1,2], b={k: [2], ...x}, c=(x) => x+1);]",
                r#"f{"a":"[1,2]","b":"{k: [2], ...x}","c":"(x) => x+1"}"#,
            ),
            (
                "f(a=function(x){return x}, b=/[/]/g, c=`t`)",
                r#"f{"a":"function(x){return x}","b":"/[/]/g","c":"`t`"}"#,
            ),
            (
                "f(a=x ? 1 : 2, b=new Map([[\"a\",1]]), c=async () => {})",
                r#"f{"a":"x ? 1 : 2","b":"new Map([[\"a\",1]])","c":"async () => {}"}"#,
            ),
            ("f(x, \"p\", a=1,)", r#"f{"!unnamed":"x","a":"1"}"#),
            ("f(a=1)\ng(b=2)", r#"f{"a":"1"}"#),
            ("f(a=\"x\" + \"y\", b=c=d)", r#"f{"a":"x\" + \"y","b":"c=d"}"#),
            ("// note\nx.f(a=1).g(b=2)", r#"x.f(a=1).g{"b":"2"}"#),
            ("f()", "f{}"),
        ] {
            assert_eq!(read(text, Language::JavaScript).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "f",
            "f(a=1), g(b=2)",
            "f(a=1",
            "f(a:1)",
            "f(a=)",
            "f(a=1 b=2)",
            "await f(a=1)",
            "new F(a=1)",
            "x=f(a=1)",
            "f(a=1)+1",
            "(f(a=1))",
            "f(a=1, a=2)",
            "f(a='x\ny')",
            "I would call f(a=1)",
        ] {
            assert_eq!(read(text, Language::JavaScript), None, "{text}");
        }
        let deep = format!("f(a={}{})", "[".repeat(1_000), "]".repeat(1_000));
        assert_eq!(read(&deep, Language::JavaScript), None);
        assert_eq!(read("f(a=1)", Language::Java), None);
    }
}
