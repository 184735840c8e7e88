//! The rules of fuzzing: every kind of finding, with its severity and what to do.

use karat_core::finding::Severity;

use crate::probe::Rule;

/// The server ended.
pub(super) const CRASH: Rule = Rule {
    id: "fuzz-crash",
    severity: Severity::Error,
    summary: "an input ends the server or its connection",
    help: "Every other client is cut off as well. Catch the failure where the input is read, and \
           answer with a tool error.",
};
/// The server does not answer.
pub(super) const HANG: Rule = Rule {
    id: "fuzz-hang",
    severity: Severity::Error,
    summary: "an input is not answered within the time limit, and neither is a ping",
    help: "A client, and its user, wait until the client gives up. Limit the work by the size of the \
           input and by time, and refuse the rest. --timeout sets the time limit of a call.",
};
/// The server is busy for too long, but alive.
pub(super) const SLOW: Rule = Rule {
    id: "fuzz-slow",
    severity: Severity::Warning,
    summary: "an input is not answered within the time limit, while the server answers pings",
    help: "It may be waiting on purpose (polling), or work for too long. Say in the description how long \
           it takes, send progress, or limit the work. --timeout sets the time limit of a call.",
};
/// The result breaks the protocol or the tool's own schema.
pub(super) const INVALID_RESULT: Rule = Rule {
    id: "fuzz-invalid-result",
    severity: Severity::Error,
    summary: "a result violates the protocol or the tool's output schema",
    help: "Clients that validate results drop it. Return what the output schema promises, or a result \
           with isError.",
};
/// The answer is more than Karat reads.
pub(super) const OVERSIZED: Rule = Rule {
    id: "fuzz-oversized-answer",
    severity: Severity::Warning,
    summary: "an answer is larger or deeper than what is read here",
    help: "It violates no rule, but clients have limits too, and a model pays for every token. Limit what \
           the tool returns, and page the rest.",
};
/// The input breaks the schema and is accepted.
pub(super) const ACCEPTED: Rule = Rule {
    id: "fuzz-accepted-invalid",
    severity: Severity::Error,
    summary: "an input that violates the input schema is accepted",
    help: "A model does not learn of its mistake, and the tool works on values that it was not made \
           for. Validate the arguments against the schema before using them.",
};
/// A value of another type is converted.
pub(super) const COERCED: Rule = Rule {
    id: "fuzz-coerced",
    severity: Severity::Warning,
    summary: "values of another type are converted, such as \"7\" to 7",
    help: "It is lenient to models that write numbers as text, and most libraries do it by default. \
           Switch on the strict mode of the library, or allow the other type in the schema.",
};
/// The input is refused without the mark of an error.
pub(super) const UNMARKED: Rule = Rule {
    id: "fuzz-unmarked-error",
    severity: Severity::Warning,
    summary: "bad arguments are refused as text, in a result without isError",
    help: "A client takes the result for a success. Set isError in results that report a failure.",
};
/// The input has fields that the schema forbids.
pub(super) const EXTRA: Rule = Rule {
    id: "fuzz-accepted-extra",
    severity: Severity::Warning,
    summary: "fields that the input schema forbids are ignored",
    help: "A misspelt optional parameter goes unnoticed. Refuse unknown fields, or allow them in the \
           schema.",
};
/// A stack trace is in the answer.
pub(super) const TRACE: Rule = Rule {
    id: "fuzz-stack-trace",
    severity: Severity::Error,
    summary: "an answer contains a stack trace",
    help: "It shows an attacker how the server is built and gives a model nothing to act on. Say what \
           was wrong with the input, and log the rest.",
};
/// A secret of the environment is in the answer.
pub(super) const SECRET: Rule = Rule {
    id: "fuzz-leaked-secret",
    severity: Severity::Error,
    summary: "an answer contains a secret from the server's environment",
    help: "Every answer goes to a model, its provider and its logs. Never put the environment into an \
           answer.",
};
/// A place in the code is in an error.
pub(super) const PLACE: Rule = Rule {
    id: "fuzz-internal-path",
    severity: Severity::Warning,
    summary: "an error names a file and line of the server's own code",
    help: "It shows how and where the server is installed. Say what was wrong with the input instead.",
};
/// The input matches the schema and is refused as invalid.
pub(super) const REJECTED: Rule = Rule {
    id: "fuzz-rejected-valid",
    severity: Severity::Warning,
    summary: "an input that matches the input schema is refused as invalid",
    help: "The schema promises more than the tool accepts, and a model has nothing else to go by. Put \
           the limit into the schema.",
};
/// Bad arguments come back as a protocol error.
pub(super) const PROTOCOL: Rule = Rule {
    id: "fuzz-protocol-error",
    severity: Severity::Note,
    summary: "bad arguments are answered with a protocol error instead of a tool error",
    help: "Many clients do not show protocol errors to the model, so it cannot correct itself. Return \
           a result with isError that says what is wrong.",
};
/// No valid input succeeds.
pub(super) const NEVER: Rule = Rule {
    id: "fuzz-never-succeeded",
    severity: Severity::Note,
    summary: "no valid input succeeds",
    help: "The tool may need something that exists (a file, an id), so only its error paths were \
           tested. Give such values with --set or --from-recording, or as examples or defaults in the \
           schema.",
};

/// Every rule, the most important first.
pub(super) const RULES: [&Rule; 15] = [
    &CRASH,
    &HANG,
    &SLOW,
    &SECRET,
    &TRACE,
    &INVALID_RESULT,
    &OVERSIZED,
    &ACCEPTED,
    &UNMARKED,
    &COERCED,
    &EXTRA,
    &REJECTED,
    &PLACE,
    &PROTOCOL,
    &NEVER,
];
