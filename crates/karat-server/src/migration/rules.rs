//! The rules of a migration report.

use karat_core::finding::Severity;

use crate::probe::Rule;

pub(super) const NOT_SPOKEN: Rule = Rule {
    id: "revision-not-spoken",
    severity: Severity::Warning,
    summary: "the server does not answer server/discover of revision 2026-07-28",
    help: "Clients of that revision cannot use it. Update the SDK, and serve both generations meanwhile.",
};
pub(super) const OLD_CLIENTS: Rule = Rule {
    id: "old-clients",
    severity: Severity::Note,
    summary: "the server does not open a session with `initialize`",
    help: "Clients of 2025-11-25 and earlier cannot use it. Serve both generations while they are around.",
};
pub(super) const REMOVED: Rule = Rule {
    id: "removed-feature",
    severity: Severity::Warning,
    summary: "the server relies on something that revision 2026-07-28 does not have",
    help: "Sessions, ping, logging/setLevel, resources/subscribe and requests of the server are gone: use \
           handles in arguments, subscriptions/listen and results of type input_required.",
};
pub(super) const DEPRECATED: Rule = Rule {
    id: "deprecated-feature",
    severity: Severity::Note,
    summary: "the server uses a feature that revision 2026-07-28 has deprecated",
    help: "Roots, sampling and logging will be removed. Plan for it.",
};
pub(super) const HINTS: Rule = Rule {
    id: "cache-hints",
    severity: Severity::Error,
    summary: "a cacheable result has no valid ttlMs and cacheScope",
    help: "server/discover, the lists and resources/read must say how long (a whole number of milliseconds) \
           and for whom (public or private) a result is good; strict clients refuse results without.",
};
pub(super) const RESULT_TYPE: Rule = Rule {
    id: "result-type",
    severity: Severity::Error,
    summary: "a result has no resultType",
    help: "Every result of revision 2026-07-28 is `complete` or `input_required`.",
};
pub(super) const TTL: Rule = Rule {
    id: "untrue-ttl",
    severity: Severity::Error,
    summary: "a result changed while ttlMs said that it was fresh",
    help: "Clients show the old result for that long. Shorten ttlMs, or set it to 0.",
};
pub(super) const SCOPE: Rule = Rule {
    id: "untrue-scope",
    severity: Severity::Error,
    summary: "a result with cacheScope public differs between two clients",
    help: "A shared cache would give one client the result of another. Say private.",
};
pub(super) const ORDER: Rule = Rule {
    id: "list-order",
    severity: Severity::Warning,
    summary: "a list comes in another order each time",
    help: "Models see the list in their prompt, and a changed prompt is not cached. Sort it.",
};
pub(super) const INSTANCES: Rule = Rule {
    id: "instance-dependent",
    severity: Severity::Error,
    summary: "another instance of the server answers differently",
    help: "Any request may reach any instance. Keep no state in the process; pass handles in arguments.",
};
pub(super) const STATE_LOST: Rule = Rule {
    id: "state-not-portable",
    severity: Severity::Error,
    summary: "another instance does not accept a requestState",
    help: "The next round may reach another instance. Put everything into the state, sealed with a key that \
           all instances share.",
};
pub(super) const STATE_FORGED: Rule = Rule {
    id: "state-forgeable",
    severity: Severity::Error,
    summary: "a changed requestState is accepted",
    help: "The state comes back from the client, who may have written it. Seal it, and refuse what does not \
           verify.",
};
pub(super) const GENERATIONS: Rule = Rule {
    id: "generations-differ",
    severity: Severity::Warning,
    summary: "the server offers or answers something else in the other generation of the protocol",
    help: "Users get another server with another client. Serve both from the same code.",
};
pub(super) const HEADER_MARK: Rule = Rule {
    id: "header-mark",
    severity: Severity::Error,
    summary: "an x-mcp-header mark is not valid",
    help: "Clients must not offer such a tool. A mark is a header name, once in a tool, on a string, integer \
           or boolean.",
};
pub(super) const HEADER_IGNORED: Rule = Rule {
    id: "header-not-checked",
    severity: Severity::Error,
    summary: "a call whose Mcp-Param header contradicts its arguments is carried out",
    help: "A gateway decides by the header and the tool acts by the arguments. Refuse the call.",
};
pub(super) const BOUNDS: Rule = Rule {
    id: "schema-bounds",
    severity: Severity::Warning,
    summary: "a schema is deeper, larger or more far-reaching than clients compile",
    help: "Schemas may be any JSON Schema now, and clients bound what they accept: no references to other \
           documents, 32 levels, 1,000 parts.",
};

/// Every rule, in the order in which they are shown.
pub(super) const ALL: [&Rule; 16] = [
    &NOT_SPOKEN,
    &OLD_CLIENTS,
    &REMOVED,
    &DEPRECATED,
    &RESULT_TYPE,
    &HINTS,
    &TTL,
    &SCOPE,
    &ORDER,
    &INSTANCES,
    &STATE_LOST,
    &STATE_FORGED,
    &GENERATIONS,
    &HEADER_MARK,
    &HEADER_IGNORED,
    &BOUNDS,
];
