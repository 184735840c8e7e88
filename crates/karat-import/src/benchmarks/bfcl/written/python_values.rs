//! The values of Python expressions, as bfcl-eval makes them of the syntax tree: a variable is its name, `+1` is
//! -1, a call without named arguments is its text, and positional arguments are passed over. What bfcl-eval
//! cannot make a value of is an error here too.

use karat_metrics::calls::{Object, Value, json, python};

/// Begins the key of an object in place of a value that JSON does not have, and which therefore
/// equals no possible answer.
const STRANGE: char = '\0';
const TUPLE: &str = "\0tuple";

/// A tuple as a list, for a parameter that takes tuples.
pub(super) fn as_list(value: &Value<'static>) -> Option<Value<'static>> {
    match value {
        Value::Object(object) => object.get(TUPLE).cloned(),
        _ => None,
    }
}

/// A literal; numbers and strings as Python has them.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Constant {
    Int(i128),
    /// Decimal digits of an integer that is too large to compute with.
    Large(String),
    Float(f64),
    Text(String),
    Bool(bool),
    None,
    Ellipsis,
    /// Bytes or an imaginary number.
    Strange,
}

#[derive(Clone, Debug)]
pub(super) enum Expression {
    Constant(Constant),
    Name(String),
    Attribute(Box<Expression>, String),
    Call {
        function: Box<Expression>,
        positional: Vec<Expression>,
        named: Vec<(Option<String>, Expression)>,
    },
    Subscript(Box<Expression>, Box<Expression>),
    Unary(&'static str, Box<Expression>),
    Binary(Box<Expression>, &'static str, Box<Expression>),
    List(Vec<Expression>),
    Tuple(Vec<Expression>),
    Dict(Vec<(Option<Expression>, Expression)>),
    /// Bounds and a step in an index.
    Slice(Vec<Option<Expression>>),
    /// An unpacked value.
    Starred,
    /// Anything that is valid and has no value here.
    Other,
}

/// The level of an operator between two operands: higher ones bind more closely.
pub(super) fn level(operator: &str) -> Option<u8> {
    Some(match operator {
        "<" | ">" | "<=" | ">=" | "==" | "!=" => 4,
        "|" => 5,
        "^" => 6,
        "&" => 7,
        "<<" | ">>" => 8,
        "+" | "-" => 9,
        "*" | "/" | "//" | "%" | "@" => 10,
        _ => return None,
    })
}

/// The dotted name of a function; what is not a name at its start is left out.
pub(super) fn name_of(function: &Expression) -> String {
    let (mut parts, mut rest) = (Vec::new(), function);
    while let Expression::Attribute(value, name) = rest {
        parts.push(name.as_str());
        rest = value;
    }
    if let Expression::Name(name) = rest {
        parts.push(name);
    }
    parts.reverse();
    parts.join(".")
}

pub(super) fn arguments(named: &[(Option<String>, Expression)]) -> Result<Object<'static>, String> {
    let mut arguments: Vec<(String, Value<'static>)> = Vec::new();
    for (name, value) in named {
        // No parameter has the name of an unpacked object.
        let name = name.clone().unwrap_or_else(|| format!("{STRANGE}**"));
        insert(&mut arguments, name, resolve(value)?);
    }
    Ok(arguments.into_iter().collect())
}

/// The last value of a key counts, at its first place.
fn insert(entries: &mut Vec<(String, Value<'static>)>, key: String, value: Value<'static>) {
    match entries.iter_mut().find(|(known, _)| *known == key) {
        Some((_, known)) => *known = value,
        None => entries.push((key, value)),
    }
}

fn strange(kind: &str, value: Value<'static>) -> Value<'static> {
    let kind = match kind {
        TUPLE => TUPLE.to_owned(),
        other => format!("{STRANGE}{other}"),
    };
    Value::Object([(kind, value)].into_iter().collect())
}

fn integer(digits: &str) -> Value<'static> {
    json::parse(digits).map_or(Value::Null, Value::into_owned)
}

fn constant(constant: &Constant) -> Value<'static> {
    match constant {
        Constant::Int(int) => integer(&int.to_string()),
        Constant::Large(digits) => integer(digits),
        Constant::Float(float) => Value::Float(*float),
        Constant::Text(text) => Value::from(text.clone()),
        Constant::Bool(value) => Value::Bool(*value),
        Constant::None => Value::Null,
        Constant::Ellipsis => Value::from("...".to_owned()),
        Constant::Strange => strange("constant", Value::Null),
    }
}

/// The value that bfcl-eval makes of an expression.
fn resolve(expression: &Expression) -> Result<Value<'static>, String> {
    let all = |elements: &[Expression]| -> Result<Vec<Value<'static>>, String> {
        elements.iter().map(resolve).collect()
    };
    Ok(match expression {
        Expression::Constant(value) => constant(value),
        Expression::Name(name) => Value::from(name.clone()),
        // Whatever the operator, the operand is negated.
        Expression::Unary(_, operand) => match &**operand {
            Expression::Constant(Constant::Int(int)) => constant(&Constant::Int(-int)),
            Expression::Constant(Constant::Large(digits)) => integer(&format!("-{digits}")),
            Expression::Constant(Constant::Float(float)) => Value::Float(-float),
            Expression::Constant(Constant::Bool(value)) => Value::Int(-i64::from(*value)),
            _ => return Err("the sign of something that is not a number".to_owned()),
        },
        Expression::Binary(..) => constant(&computed(expression)?),
        Expression::List(elements) => Value::List(all(elements)?),
        Expression::Tuple(elements) => strange(TUPLE, Value::List(all(elements)?)),
        Expression::Dict(pairs) => {
            let mut entries = Vec::new();
            for (key, value) in pairs {
                let Some(key) = key else { return Err("an unpacked dictionary".to_owned()) };
                insert(&mut entries, key_of(&resolve(key)?)?, resolve(value)?);
            }
            Value::Object(entries.into_iter().collect())
        }
        Expression::Call { named, .. } if named.is_empty() => {
            Value::from(unparse(expression, 0).ok_or("a call that cannot be written")?)
        }
        Expression::Call { function, named, .. } => {
            let arguments = Value::Object(arguments(named)?);
            Value::Object([(name_of(function), arguments)].into_iter().collect())
        }
        Expression::Subscript(..) => {
            Value::from(unparse(expression, 0).ok_or("an index that cannot be written")?)
        }
        Expression::Attribute(..)
        | Expression::Slice(_)
        | Expression::Starred
        | Expression::Other => {
            return Err("an expression that has no value".to_owned());
        }
    })
}

/// The key of a dictionary. Keys of possible answers are texts, so others equal none.
fn key_of(key: &Value<'static>) -> Result<String, String> {
    match key {
        Value::String(text) => Ok(text.clone().into_owned()),
        Value::List(_) => Err("a list as a key".to_owned()),
        Value::Object(object) if object.iter().all(|(key, _)| !key.starts_with(STRANGE)) => {
            Err("a dictionary as a key".to_owned())
        }
        other => Ok(format!("{STRANGE}{}", python::repr(other))),
    }
}

/// The value of arithmetic on constants, as Python computes it.
fn computed(expression: &Expression) -> Result<Constant, String> {
    use Constant::{Bool, Float, Int, Text};
    let unknown = || Err("arithmetic that is not computed".to_owned());
    let number = |value: Constant| match value {
        Bool(value) => Int(i128::from(value)),
        other => other,
    };
    Ok(match expression {
        Expression::Constant(value) => value.clone(),
        Expression::Unary(operator, operand) => match (*operator, number(computed(operand)?)) {
            ("-", Int(int)) => Int(-int),
            ("-", Float(float)) => Float(-float),
            ("+", value @ (Int(_) | Float(_))) => value,
            ("~", Int(int)) => Int(!int),
            _ => return unknown(),
        },
        Expression::Binary(left, operator, right) => {
            let (left, right) = (number(computed(left)?), number(computed(right)?));
            match (left, *operator, right) {
                (Text(left), "+", Text(right)) => Text(left + &right),
                (Text(text), "*", Int(times)) | (Int(times), "*", Text(text)) => {
                    let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
                    if text.len().saturating_mul(times) > 1 << 20 {
                        return unknown();
                    }
                    Text(text.repeat(times))
                }
                (Int(left), operator, Int(right)) => match integers(left, operator, right) {
                    Some(value) => value,
                    None => return unknown(),
                },
                (Int(left), operator, Float(right)) => floats(left as f64, operator, right)?,
                (Float(left), operator, Int(right)) => floats(left, operator, right as f64)?,
                (Float(left), operator, Float(right)) => floats(left, operator, right)?,
                _ => return unknown(),
            }
        }
        _ => return unknown(),
    })
}

fn integers(left: i128, operator: &str, right: i128) -> Option<Constant> {
    let int = match operator {
        "+" => left.checked_add(right)?,
        "-" => left.checked_sub(right)?,
        "*" => left.checked_mul(right)?,
        "//" | "%" if right == 0 => return None,
        "//" => floor(left, right)?,
        "%" => left.checked_sub(floor(left, right)?.checked_mul(right)?)?,
        "|" => left | right,
        "&" => left & right,
        "^" => left ^ right,
        "<<" => {
            let shift = u32::try_from(right).ok().filter(|shift| *shift < 64)?;
            left.checked_mul(1_i128.checked_shl(shift)?)?
        }
        ">>" => left >> u32::try_from(right).ok()?.min(127),
        "**" if right >= 0 => left.checked_pow(u32::try_from(right).ok()?)?,
        "**" | "/" => return floats(left as f64, operator, right as f64).ok(),
        _ => return None,
    };
    Some(Constant::Int(int))
}

/// The quotient, rounded down.
fn floor(left: i128, right: i128) -> Option<i128> {
    let (quotient, rest) = (left.checked_div(right)?, left.checked_rem(right)?);
    Some(quotient - i128::from(rest != 0 && (rest < 0) != (right < 0)))
}

fn floats(left: f64, operator: &str, right: f64) -> Result<Constant, String> {
    let value = match operator {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        "/" | "//" | "%" if right == 0.0 => return Err("a division by zero".to_owned()),
        "/" => left / right,
        "//" => (left / right).floor(),
        "%" => left - right * (left / right).floor(),
        "**" if left > 0.0 || right.fract() == 0.0 => left.powf(right),
        _ => return Err("arithmetic that is not computed".to_owned()),
    };
    Ok(Constant::Float(value))
}

/// The text of an expression as `ast.unparse` writes it, in brackets if it binds less closely than
/// `least`; none if it has parts that are not kept.
fn unparse(expression: &Expression, least: u8) -> Option<String> {
    const SIGN: u8 = 11;
    const POWER: u8 = 12;
    const ATOM: u8 = 14;
    let list = |elements: &[Expression]| -> Option<String> {
        let texts: Option<Vec<String>> = elements.iter().map(|one| unparse(one, 0)).collect();
        Some(texts?.join(", "))
    };
    let (text, level) = match expression {
        Expression::Constant(Constant::Strange) => return None,
        Expression::Constant(Constant::Ellipsis) => ("...".to_owned(), ATOM),
        Expression::Constant(value) => (python::repr(&constant(value)), ATOM),
        Expression::Name(name) => (name.clone(), ATOM),
        Expression::Attribute(value, name) => (format!("{}.{name}", unparse(value, ATOM)?), ATOM),
        Expression::Call { function, positional, named } => {
            let mut arguments = vec![list(positional)?];
            arguments.retain(|text| !text.is_empty());
            for (name, value) in named {
                let value = unparse(value, 0)?;
                arguments.push(match name {
                    Some(name) => format!("{name}={value}"),
                    None => format!("**{value}"),
                });
            }
            (format!("{}({})", unparse(function, ATOM)?, arguments.join(", ")), ATOM)
        }
        Expression::Subscript(value, index) => {
            let index = match &**index {
                Expression::Tuple(parts) if parts.len() > 1 => list(parts)?,
                other => unparse(other, 0)?,
            };
            (format!("{}[{index}]", unparse(value, ATOM)?), ATOM)
        }
        Expression::Slice(bounds) => {
            let text = |bound: &Option<Expression>| match bound {
                Some(bound) => unparse(bound, 0),
                None => Some(String::new()),
            };
            let texts: Option<Vec<String>> = bounds.iter().map(text).collect();
            let mut texts = texts?;
            if texts.len() == 3 && texts[2].is_empty() {
                texts.pop();
            }
            (texts.join(":"), ATOM)
        }
        Expression::Unary("not", operand) => (format!("not {}", unparse(operand, 3)?), 3),
        Expression::Unary(operator, operand) => {
            (format!("{operator}{}", unparse(operand, SIGN)?), SIGN)
        }
        Expression::Binary(left, "**", right) => {
            (format!("{} ** {}", unparse(left, POWER + 1)?, unparse(right, POWER)?), POWER)
        }
        Expression::Binary(left, operator, right) => {
            let level = level(operator)?;
            let (left, right) = (unparse(left, level)?, unparse(right, level + 1)?);
            (format!("{left} {operator} {right}"), level)
        }
        Expression::List(elements) => (format!("[{}]", list(elements)?), ATOM),
        Expression::Tuple(elements) => match elements.as_slice() {
            [one] => (format!("({},)", unparse(one, 0)?), ATOM),
            many => (format!("({})", list(many)?), ATOM),
        },
        Expression::Dict(pairs) => {
            let mut texts = Vec::new();
            for (key, value) in pairs {
                texts.push(match key {
                    Some(key) => format!("{}: {}", unparse(key, 0)?, unparse(value, 0)?),
                    None => format!("**{}", unparse(value, 5)?),
                });
            }
            (format!("{{{}}}", texts.join(", ")), ATOM)
        }
        Expression::Starred | Expression::Other => return None,
    };
    Some(if level < least { format!("({text})") } else { text })
}
