//! A call as JavaScript source: `f(a=1, b="x")`. The value of an argument is its source, without the
//! quotes of a text.

use karat_metrics::calls::{Call, Object, Value};

use super::tokens::{Kind, Token, after_bracket, parts, tokenize};

/// The key of an argument without a name, which no parameter has.
const UNNAMED: &str = "\0unnamed";
const MAX_DEPTH: usize = 100;
const PREFIXES: [&str; 7] = ["!", "~", "+", "-", "++", "--", "..."];
const PREFIX_WORDS: [&str; 6] = ["typeof", "void", "delete", "await", "new", "async"];
const RESERVED: [&str; 21] = [
    "break", "case", "catch", "const", "continue", "debugger", "default", "do", "else", "enum",
    "export", "finally", "for", "if", "import", "return", "switch", "throw", "try", "var", "while",
];
const BETWEEN: [&str; 42] = [
    "=",
    "+=",
    "-=",
    "*=",
    "/=",
    "%=",
    "**=",
    "<<=",
    ">>=",
    ">>>=",
    "&=",
    "|=",
    "^=",
    "&&=",
    "||=",
    "??=",
    "??",
    "||",
    "&&",
    "|",
    "^",
    "&",
    "==",
    "!=",
    "===",
    "!==",
    "<",
    ">",
    "<=",
    ">=",
    "<<",
    ">>",
    ">>>",
    "+",
    "-",
    "*",
    "/",
    "%",
    "**",
    "in",
    "instanceof",
    ",",
];

/// Reads a call.
///
/// # Errors
/// If the source is anything else.
pub(super) fn call(source: &str) -> Result<Call<'static>, String> {
    let tokens = tokenize(source)?;
    let mut statements = statements(source, &tokens)?.into_iter();
    let tokens = statements.next().ok_or("nothing is called")?;
    statements.try_for_each(|statement| valid(statement, 0))?;
    // The last bracket of the statement is that of the arguments.
    let (mut open, mut at) = (None, 0);
    while let Some(token) = tokens.get(at) {
        open = token.is("(").then_some(at);
        at = after(tokens, at)?;
    }
    let Some(open) = open.filter(|open| *open > 0) else { return Err("not a call".to_owned()) };
    let callee = &tokens[..open];
    let starts = callee[0].kind == Kind::Word && !PREFIX_WORDS.contains(&callee[0].text);
    let joins = |token: &Token<'_>| BETWEEN.contains(&token.text) || token.is("?");
    if !starts || at_top(callee)?.into_iter().any(joins) {
        return Err("not a call".to_owned());
    }
    valid(callee, 0)?;
    let of = |tokens: &[Token<'_>]| {
        let (first, last) = (tokens.first()?, tokens.last()?);
        source.get(first.start..last.end())
    };
    let mut texts: Vec<(&str, &str)> = Vec::new();
    let arguments = parts(&tokens[open + 1..tokens.len() - 1])?;
    for argument in arguments.into_iter().filter(|argument| !argument.is_empty()) {
        valid(argument, 0)?;
        let (name, value) = match (assigned(argument)?, argument) {
            (Some(at), _) => match (of(&argument[..at]), of(&argument[at + 1..])) {
                (Some(name), Some(value)) => (name, unquoted(value)),
                _ => return Err("an argument has no value".to_owned()),
            },
            (None, [only])
                if only.kind == Kind::Word
                    && !["false", "null", "this", "undefined"].contains(&only.text) =>
            {
                (UNNAMED, only.text)
            }
            _ => continue,
        };
        if texts.iter().any(|(known, _)| *known == name) {
            return Err("an argument is given twice".to_owned());
        }
        texts.push((name, value));
    }
    let texts =
        texts.into_iter().map(|(name, text)| (name.to_owned(), Value::from(text.to_owned())));
    let name = of(callee).unwrap_or_default().to_owned();
    Ok(Call::new(name, texts.collect::<Object<'static>>()))
}

fn unquoted(value: &str) -> &str {
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

/// The place behind a token, or behind the brackets that it opens.
fn after(tokens: &[Token<'_>], at: usize) -> Result<usize, String> {
    match tokens[at].is("(") || tokens[at].is("[") || tokens[at].is("{") {
        true => after_bracket(tokens, at),
        false => Ok(at + 1),
    }
}

/// The statements: they end with a semicolon, or with a line where the next begins with a word.
fn statements<'a, 't>(
    source: &str,
    tokens: &'a [Token<'t>],
) -> Result<Vec<&'a [Token<'t>]>, String> {
    let (mut found, mut start, mut at) = (Vec::new(), 0, 0);
    while let Some(token) = tokens.get(at) {
        let follows = at > start && token.kind == Kind::Word && {
            let last = &tokens[at - 1];
            let ends = last.kind != Kind::Operator || [")", "]", "}"].contains(&last.text);
            ends && source[last.end()..token.start].contains('\n')
        };
        if token.is(";") || follows {
            found.push(&tokens[start..at]);
            start = at + usize::from(token.is(";"));
        }
        at = after(tokens, at)?;
    }
    found.push(&tokens[start..]);
    found.retain(|statement| !statement.is_empty());
    Ok(found)
}

/// The tokens outside of brackets.
fn at_top<'a, 't>(tokens: &'a [Token<'t>]) -> Result<Vec<&'a Token<'t>>, String> {
    let (mut top, mut at) = (Vec::new(), 0);
    while let Some(token) = tokens.get(at) {
        top.push(token);
        at = after(tokens, at)?;
    }
    Ok(top)
}

/// The place of the sign that gives an argument its name.
fn assigned(argument: &[Token<'_>]) -> Result<Option<usize>, String> {
    let mut at = 0;
    while let Some(token) = argument.get(at) {
        if token.is("=") {
            return Ok(Some(at));
        }
        let is_open = token.is("(") || token.is("[") || token.is("{");
        if !is_open && !token.is(".") && token.kind != Kind::Word {
            return Ok(None);
        }
        at = after(argument, at)?;
    }
    Ok(None)
}

/// Checks that tokens are an expression: values and operators in turn.
fn valid(tokens: &[Token<'_>], depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err("nested too deeply".to_owned());
    }
    let (mut at, mut has_value, mut conditions) = (0, false, 0_usize);
    while let Some(token) = tokens.get(at) {
        let wrong = || Err(format!("{:?} is unexpected", token.text));
        let text = token.text;
        match token.kind {
            Kind::Operator if matches!(text, "(" | "[" | "{") => {
                let end = after_bracket(tokens, at)?;
                let inner = &tokens[at + 1..end - 1];
                let arrow = tokens.get(end).is_some_and(|next| next.is("=>"));
                match (text, has_value) {
                    ("(", false) if !arrow && inner.is_empty() => return wrong(),
                    ("{", true) => return wrong(),
                    ("{", false) => object(inner, depth)?,
                    ("[", true) if inner.is_empty() => return wrong(),
                    _ => {
                        for part in parts(inner)?.into_iter().filter(|part| !part.is_empty()) {
                            valid(part, depth + 1)?;
                        }
                    }
                }
                (has_value, at) = (true, end);
                continue;
            }
            Kind::Operator if !has_value && PREFIXES.contains(&text) => {}
            Kind::Operator if !has_value => return wrong(),
            Kind::Operator => match text {
                "++" | "--" => {}
                "." | "?." => {
                    let next = tokens.get(at + 1);
                    let optional =
                        text == "?." && next.is_some_and(|next| next.is("(") || next.is("["));
                    match next {
                        Some(next) if next.kind == Kind::Word => at += 1,
                        _ if optional => {}
                        _ => return wrong(),
                    }
                }
                "=>" => {
                    if tokens.get(at + 1).is_some_and(|next| next.is("{")) {
                        at = after_bracket(tokens, at + 1)?;
                        continue;
                    }
                    has_value = false;
                }
                "?" => (conditions, has_value) = (conditions + 1, false),
                ":" if conditions > 0 => (conditions, has_value) = (conditions - 1, false),
                _ if BETWEEN.contains(&text) => has_value = false,
                _ => return wrong(),
            },
            Kind::Word if matches!(text, "in" | "instanceof") && has_value => has_value = false,
            Kind::Word if has_value => return wrong(),
            Kind::Word if matches!(text, "function" | "class") => {
                while tokens.get(at).is_some_and(|token| !token.is("{")) {
                    at = if tokens[at].is("(") { after_bracket(tokens, at)? } else { at + 1 };
                }
                at = after_bracket(tokens, at)?;
                has_value = true;
                continue;
            }
            Kind::Word if RESERVED.contains(&text) => return wrong(),
            Kind::Word => {
                let alone = tokens.get(at + 1).is_none_or(|next| {
                    next.kind == Kind::Operator && !matches!(next.text, "(" | "[" | "{")
                });
                has_value = !PREFIX_WORDS.contains(&text) || (text == "async" && alone);
            }
            // A template may follow a function.
            Kind::Literal if has_value && text.starts_with('`') => {}
            _ if has_value => return wrong(),
            _ => has_value = true,
        }
        at += 1;
    }
    match has_value && conditions == 0 {
        true => Ok(()),
        false => Err("an expression has no end".to_owned()),
    }
}

/// Checks the members of an object.
fn object(inner: &[Token<'_>], depth: usize) -> Result<(), String> {
    let members = parts(inner)?;
    let last = members.len().saturating_sub(1);
    for (number, member) in members.into_iter().enumerate() {
        let Some(first) = member.first() else {
            // A comma at the end is allowed.
            if number == last {
                continue;
            }
            return Err("a member of an object is missing".to_owned());
        };
        let key = if first.is("[") { after_bracket(member, 0)? } else { 1 };
        match member.get(key) {
            _ if first.is("...") => valid(&member[1..], depth + 1)?,
            None if first.kind == Kind::Word => {}
            Some(colon) if colon.is(":") => valid(&member[key + 1..], depth + 1)?,
            Some(next) if next.is("=") => valid(&member[key + 1..], depth + 1)?,
            // A method.
            Some(_) if member.last().is_some_and(|last| last.is("}")) => {}
            _ => return Err(format!("{:?} in an object", first.text)),
        }
    }
    Ok(())
}
