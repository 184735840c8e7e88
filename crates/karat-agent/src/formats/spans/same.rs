//! Two records of one call: names with and without a server, and arguments, which may not be recorded.

use karat_core::expect::equal;

use crate::trace::{Arguments, CallMade};

/// Returns whether two records can be of one call.
pub(super) fn is_same(one: &CallMade, other: &CallMade) -> bool {
    (same_tool(&one.name, &other.name) || same_tool(&other.name, &one.name))
        && agree(&one.arguments, &other.arguments)
}

/// Returns whether arguments are equal, or one of them cannot be read: it was cut off or not recorded.
pub(super) fn agree(one: &Arguments, other: &Arguments) -> bool {
    match (one.value(), other.value()) {
        (Some(one), Some(other)) => equal(&one, &other),
        _ => true,
    }
}

/// Returns whether a tool's span is about the tool that a model called: frameworks put the server's
/// name before the tool's.
pub(super) fn same_tool(called: &str, executed: &str) -> bool {
    called == executed
        || called
            .strip_suffix(executed)
            .is_some_and(|rest| rest.ends_with(['_', '.', '-', '/', ':']))
}
