//! YAML 1.2, one document per file.
//!
//! Only `true` and `false` are booleans, keys are unique, application tags are refused, and aliases may not
//! expand the text beyond the limits. As with JSON, a first pass refuses deep nesting and `.nan`/`.inf`, and
//! the second makes the type. The YAML reader needs many kilobytes of stack per level, so both passes run on
//! a thread with a large stack.

use std::panic::resume_unwind;
use std::thread;

use serde::de::{DeserializeOwned, DeserializeSeed};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::granit_parser::ErrorKind;
use serde_saphyr::localizer::ExternalMessageSource;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, MessageFormatter, Options, UserMessageFormatter};

use super::erased::{self, Make};
use super::inspect::{Finding, Found, Inspect};
use super::limits::Limits;
use super::place::{Fault, FaultKind};
use super::words::plain;

/// Maximum number of parser events that aliases may add.
const MAX_REPLAYED_EVENTS: usize = 1_000_000;

/// Stack of the reader. A level takes up to 7 KiB in release and 40 KiB in debug builds, and [`Limits`]
/// allows at most 256 levels. Only the used part takes memory.
const STACK: usize = 64 << 20;

/// Reads one YAML document.
pub(super) fn parse<T: DeserializeOwned + Send>(text: &str, limits: &Limits) -> Result<T, Fault> {
    erased::typed(|make| on_large_stack(text, limits, make))
}

fn on_large_stack(text: &str, limits: &Limits, make: Make<'_>) -> Result<(), Fault> {
    thread::scope(|scope| {
        let reader = thread::Builder::new().name("yaml".to_owned()).stack_size(STACK);
        match reader.spawn_scoped(scope, || read(text, limits, make)) {
            Ok(reader) => reader.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(error) => {
                let message = format!("cannot start a thread to read this: {error}");
                Err(Fault { line: 1, column: 1, kind: FaultKind::Syntax(message) })
            }
        }
    })
}

fn read(text: &str, limits: &Limits, make: Make<'_>) -> Result<(), Fault> {
    let found = Found::default();
    let explain = |error| explain(&error, &found, limits);
    let inspect = Inspect::new(limits.depth, &found);
    serde_saphyr::with_deserializer_from_str_with_options(text, options(text, limits), |yaml| {
        inspect.deserialize(yaml)
    })
    .map_err(explain)?;
    serde_saphyr::with_deserializer_from_str_with_options(text, options(text, limits), |yaml| {
        erased::read(yaml, make)
    })
    .map_err(explain)
}

fn options(text: &str, limits: &Limits) -> Options {
    // A text of n bytes has fewer than n nodes and 4n events of its own; these budgets only bound
    // what aliases add. The size of the text itself was bounded when it was read.
    let own = text.len().saturating_mul(4).saturating_add(1024);
    let events = own.saturating_add(MAX_REPLAYED_EVENTS);
    let scalar_bytes = usize::try_from(limits.bytes).unwrap_or(usize::MAX);
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: limits.depth,
            flow_nesting_limit: limits.depth.saturating_add(1),
            max_events: events,
            max_nodes: events,
            max_aliases: own,
            max_anchors: own,
            max_documents: 1,
            max_total_scalar_bytes: scalar_bytes,
            // A long list of tasks may well use one anchor a thousand times.
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_REPLAYED_EVENTS,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

fn explain(error: &Error, found: &Found, limits: &Limits) -> Fault {
    let place = error.location();
    let line = place.map_or(1, |place| place.line().max(1));
    let column = place.map_or(1, |place| place.column().max(1));
    let mut cause = error;
    while let Error::AliasError { error, .. } | Error::WithSnippet { error, .. } = cause {
        cause = error;
    }
    let kind = match found.take() {
        Some(Finding::TooDeep) => FaultKind::TooDeep(limits.depth),
        Some(Finding::DuplicateKey(key)) => FaultKind::DuplicateKey(key),
        Some(Finding::ReservedKey(key)) => {
            FaultKind::Syntax(format!("the key `{key}` cannot be used; rename it"))
        }
        None => kind(cause, limits),
    };
    Fault { line, column, kind }
}

fn kind(error: &Error, limits: &Limits) -> FaultKind {
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let message = || UserMessageFormatter.format_message(error).into_owned();
    match error {
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. }
        | Error::AliasReplayStackDepthExceeded { .. } => FaultKind::TooDeep(limits.depth),
        Error::ExternalMessage { source, .. }
            if matches!(&**source, ExternalMessageSource::Parser(error)
                if matches!(error.kind(), ErrorKind::RecursionLimitExceeded)) =>
        {
            FaultKind::TooDeep(limits.depth)
        }
        Error::Budget { breach: BudgetBreach::Documents { .. }, .. }
        | Error::MultipleDocuments { .. } => {
            FaultKind::Syntax("a second YAML document begins here; keep one per file".to_owned())
        }
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasExpansionLimitExceeded { .. } => FaultKind::Expands,
        Error::DuplicateMappingKey { key, .. } => {
            FaultKind::DuplicateKey(key.clone().unwrap_or_else(|| "(not a string)".to_owned()))
        }
        Error::SerdeUnknownField { field, expected, .. } => {
            FaultKind::UnknownKey { key: field.clone(), known: owned(expected) }
        }
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            FaultKind::UnknownChoice { value: variant.clone(), known: owned(expected) }
        }
        Error::NonFiniteFloat { value, .. } => FaultKind::Syntax(format!(
            "`{value}` is not a finite number; put it in quotes if it is text, else use null"
        )),
        Error::UnsupportedTag { tag, .. } => {
            FaultKind::Syntax(format!("unknown tag `{tag}`; remove it"))
        }
        Error::Eof { .. } => FaultKind::Syntax("empty; expected YAML".to_owned()),
        Error::SerdeInvalidType { unexpected, expected, .. } => {
            FaultKind::Mismatch(format!("invalid type: {unexpected}, expected {expected}"))
        }
        Error::SerdeInvalidValue { unexpected, expected, .. } => {
            FaultKind::Mismatch(format!("invalid value: {unexpected}, expected {expected}"))
        }
        Error::SerdeMissingField { field, .. } => {
            FaultKind::Mismatch(format!("missing key `{field}`"))
        }
        Error::InvalidScalar { ty, .. } => {
            FaultKind::Mismatch(plain(&format!("invalid value, expected {ty}")))
        }
        Error::Unexpected { expected, .. } => FaultKind::Mismatch(match *expected {
            "mapping start" => "expected an object with keys".to_owned(),
            "sequence start" => "expected a list".to_owned(),
            other => format!("expected {other}"),
        }),
        Error::InvalidBooleanStrict { .. } => {
            FaultKind::Mismatch("invalid value, expected `true` or `false`".to_owned())
        }
        Error::Message { msg, .. } => FaultKind::from_serde(msg),
        Error::SerdeInvalidLength { .. }
        | Error::SerdeVariantId { .. }
        | Error::NullIntoString { .. }
        | Error::UnexpectedValueForUnit { .. } => FaultKind::Mismatch(message()),
        _ => FaultKind::Syntax(message()),
    }
}
