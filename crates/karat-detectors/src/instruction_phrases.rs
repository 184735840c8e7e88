//! Orders to the model in a definition, in server instructions or in the result of a call: to override its instructions, to hide something from the user, to
//! hand over what only it knows, to act without asking or against the user's wish, to switch off controls,
//! to use no other tool.
//!
//! No single word makes a finding. Each rule requires meanings that honest definitions do not combine in
//! one sentence (or in neighbouring ones), in any of the languages of the lexicon.

use super::finding::{Finding, Tier};
use super::meaning::Mask;
use super::reading::{Reading, Surface};
use super::window::{Window, windows};

/// Harm to data or settings if it happens without the user's knowledge.
const HARM: Mask = Mask::TRANSFER
    .and(Mask::DESTROY)
    .and(Mask::DISABLE)
    .and(Mask::ALTER)
    .and(Mask::EXECUTE)
    .and(Mask::PERSIST)
    .and(Mask::EXTERNAL)
    .and(Mask::AGAINST)
    .and(Mask::OVERRIDE);

/// The meanings of which every rule requires one. Most sentences have none of them.
const NEEDED: Mask = Mask::SENSITIVE
    .and(Mask::CLASSIC)
    .and(Mask::OBEY)
    .and(Mask::OVERRIDE)
    .and(Mask::ROLE)
    .and(Mask::SYSTEM_TAG)
    .and(Mask::CONCEAL)
    .and(Mask::QUIET)
    .and(Mask::EXTERNAL)
    .and(Mask::AGAINST)
    .and(Mask::APPEAL)
    .and(Mask::UNASKED)
    .and(Mask::PRETEXT)
    .and(Mask::DISABLE)
    .and(Mask::EXECUTE)
    .and(Mask::PERSIST)
    .and(Mask::SOLE)
    .and(Mask::OTHER_TOOL);

pub(super) fn inspect(reading: &Reading<'_>, findings: &mut Vec<Finding>) {
    if !reading.mask.has(NEEDED) {
        return;
    }
    let is_prose =
        |surface| !matches!(surface, Surface::Server | Surface::Name | Surface::ParameterName);
    for window in windows(reading, is_prose) {
        if !window.here.has(NEEDED) {
            continue;
        }
        let part = reading.part(window.sentence);
        // A choice or a default is a name unless it has the length of a sentence.
        if part.surface == Surface::ParameterValue && part.raw.split_whitespace().nth(3).is_none() {
            continue;
        }
        judge(reading, &window, findings);
    }
}

fn judge(reading: &Reading<'_>, window: &Window<'_, '_>, findings: &mut Vec<Finding>) {
    let (here, around) = (window.here, window.around);
    let about_attacks = here.has(Mask::ABOUT_ATTACKS) || reading.purpose.has(Mask::ABOUT_ATTACKS);
    let mut add = |rule, tier, message| findings.push(window.finding(rule, tier, message));

    if here.has(Mask::CLASSIC) && !about_attacks && !window.cited(Mask::CLASSIC) {
        add("ignore-previous", Tier::Block, "instructs the model to ignore everything before it");
    }
    if here.has(Mask::OBEY) && here.has(Mask::INSTRUCTIONS.and(Mask::CONTROL)) && !about_attacks {
        add("obey-data", Tier::Block, "instructs the model to obey text from elsewhere");
    }
    let for_models = here.has(Mask::ASSISTANT) || window.close(Mask::MODEL, Mask::INSTRUCTIONS, 40);
    if for_models && window.close(Mask::OVERRIDE, Mask::INSTRUCTIONS, 60) && !about_attacks {
        add(
            "override-instructions",
            Tier::Block,
            "overrides instructions of the model or its host",
        );
    }
    if here.has(Mask::ROLE) && !about_attacks {
        let hits = reading.hits(window.sentence);
        let roles = hits.iter().filter(|hit| hit.mask.has(Mask::ROLE) && !hit.negated).count();
        if roles > 1 {
            add("new-role", Tier::Block, "gives the model another role");
        } else if here
            .has(Mask::OVERRIDE.and(Mask::INSTRUCTIONS).and(Mask::CONTROL).and(Mask::OBEY))
        {
            add("new-role", Tier::Warn, "gives the model another role");
        }
    }
    if here.has(Mask::SYSTEM_TAG) {
        let acts = Mask::TRANSFER.and(Mask::PUT).and(Mask::COLLECT).and(Mask::OVERRIDE);
        let acts = acts.and(Mask::CONCEAL).and(Mask::EXECUTE).and(Mask::DESTROY);
        // A definition may speak of calls in its own mark-up; data that a call returned has no say.
        let calls = Mask::USE.and(Mask::NAMED_TOOL);
        let returned = reading.part(window.sentence).surface == Surface::Result;
        let acts = around.has(acts) || returned && around.has(calls);
        let tier = if acts { Tier::Block } else { Tier::Warn };
        add("system-tag", tier, "mark-up that poses as a system instruction");
    }
    if here.has(Mask::CONCEAL) && !here.has(Mask::CARE) {
        let handled = around.has(Mask::SENSITIVE) && around.has(Mask::PUT.and(Mask::COLLECT));
        // A tool that sends mail speaks of sending wherever it says what not to claim.
        let sends = reading.purpose.has(Mask::TRANSFER);
        let harm = around.has(if sends { HARM.without(Mask::TRANSFER) } else { HARM });
        let tier = if harm || handled { Tier::Block } else { Tier::Warn };
        add("conceal", tier, "hides something from the user");
    }
    let outwards = Mask::EXTERNAL.and(Mask::THIRD_PARTY).and(Mask::SENSITIVE);
    let moves = Mask::TRANSFER.and(Mask::PUT);
    if here.has(Mask::QUIET) && here.has(outwards) && window.close(Mask::QUIET, moves, 30) {
        add("quiet-transfer", Tier::Block, "sends something silently");
    }
    exfiltration(reading, window, findings);
    behaviour(window, findings);
}

/// Data handed over that only the model or the user should have.
fn exfiltration(reading: &Reading<'_>, window: &Window<'_, '_>, findings: &mut Vec<Finding>) {
    let (here, around) = (window.here, window.around);
    let mut add = |rule, tier, message| findings.push(window.finding(rule, tier, message));
    if here.has(Mask::CARE.and(Mask::ASSURANCE).and(Mask::ABOUT_ATTACKS)) {
        return;
    }
    let hands_over = Mask::PUT.and(Mask::TRANSFER);
    if here.has(Mask::CONTEXT)
        && !reading.purpose.has(Mask::CONTEXT)
        && (window.close(Mask::CONTEXT, hands_over, 120)
            || window.close(Mask::CONTEXT, Mask::DIVULGE, 30))
        && !window.cited(Mask::CONTEXT)
        && !window.context_is_own_data()
        // A switch describes what the tool does, unless it names another place.
        && (!window.documents_switch() || here.has(Mask::EXTERNAL.and(Mask::PEER)))
    {
        // A description says what a call returns in the same words as an attack, but does not order it.
        let describes = matches!(
            reading.part(window.sentence).surface,
            Surface::Description | Surface::Title | Surface::Output
        );
        let ordered = window.close_order(Mask::CONTEXT, hands_over, 120)
            || window.close(Mask::CONTEXT, Mask::DIVULGE, 30);
        let tier = if describes && !ordered { Tier::Warn } else { Tier::Block };
        add("hand-over-context", tier, "asks for the conversation or for the model's instructions");
    }
    let secrets = Mask::SECRET.and(Mask::SECRET_PATH);
    let own = reading.purpose.has(secrets);
    let takes = hands_over.and(Mask::COLLECT).and(Mask::WHOLE).and(Mask::DIVULGE);
    if !own && window.close(Mask::SECRET_PATH, takes, 60) && !here.has(Mask::NEGATION) {
        // A tool may say which file it reads; that it takes the file elsewhere, or that the reader should
        // open it, is another matter.
        let ordered = window.close_order(Mask::SECRET_PATH, takes, 60);
        let taken = ordered || here.has(Mask::TRANSFER) || window.orders(Mask::PUT);
        let tier = if taken { Tier::Block } else { Tier::Warn };
        add("takes-secret-file", tier, "reads or passes on a file that holds secrets");
    }
    if here.has(secrets)
        && window.close(secrets, hands_over, 80)
        && (here.has(Mask::TRANSFER) || window.orders(Mask::PUT))
    {
        let suspicious = Mask::EXTERNAL
            .and(Mask::CONCEAL)
            .and(Mask::UNASKED)
            .and(Mask::AGAINST)
            .and(Mask::COLLECT)
            .and(Mask::WHOLE)
            .and(Mask::OTHER_TOOL);
        if here.has(Mask::EXTERNAL) || around.has(Mask::CONCEAL.and(Mask::UNASKED)) {
            add("hand-over-secret", Tier::Block, "forwards secrets");
        } else if !own && here.has(suspicious) {
            let ordered = window.close_order(secrets, Mask::PUT, 40);
            let into = ordered && window.names_parameter_without(secrets);
            let tier = if into { Tier::Block } else { Tier::Warn };
            add("hand-over-secret", tier, "asks for secrets that the tool does not need");
        }
    }
    if !own
        && window.close(Mask::SECRET, Mask::WANT, 40)
        && here.has(Mask::USER)
        && !here.has(Mask::NEGATION)
    {
        add("asks-for-secret", Tier::Warn, "makes the model ask the user for a secret");
    }
    if window.close(Mask::TRANSFER, Mask::EXTERNAL, 60)
        && !reading.purpose.has(Mask::TRANSFER.and(Mask::EXTERNAL))
    {
        add("sends-outside", Tier::Warn, "sends something to an address unrelated to the tool");
    }
    let unseen = Mask::UNASKED.and(Mask::CONCEAL).and(Mask::AGAINST);
    let to_others = Mask::EXTERNAL.and(Mask::THIRD_PARTY);
    if here.has(Mask::PERSONAL) && here.has(Mask::TRANSFER.and(Mask::ACTS)) {
        if around.has(unseen) || here.has(Mask::THIRD_PARTY) {
            add("hand-over-personal", Tier::Block, "forwards personal data");
        } else if around.has(to_others) {
            add("hand-over-personal", Tier::Warn, "sends personal data to an outside address");
        }
    }
}

/// Actions without or against the user, and weakened protections.
fn behaviour(window: &Window<'_, '_>, findings: &mut Vec<Finding>) {
    let (here, around) = (window.here, window.around);
    let mut add = |rule, tier, message| findings.push(window.finding(rule, tier, message));
    let acts = Mask::TRANSFER
        .and(Mask::DESTROY)
        .and(Mask::PAY)
        .and(Mask::ALTER)
        .and(Mask::DISABLE)
        .and(Mask::PUT);
    if here.has(Mask::AGAINST) && here.has(acts.and(Mask::OVERRIDE)) && !here.has(Mask::CARE) {
        add("against-the-user", Tier::Block, "acts against what the user asked for");
    }
    if here.has(Mask::APPEAL) && here.has(Mask::ASSISTANT.and(Mask::MODEL).and(Mask::USE)) {
        add(
            "appeal-to-model",
            Tier::Block,
            "appeals to what the model is supposed to want or fear",
        );
    }
    if here.has(Mask::UNASKED) && !here.has(Mask::CARE) && here.has(acts) {
        let tier =
            if here.has(Mask::SENSITIVE.and(Mask::EXTERNAL)) { Tier::Block } else { Tier::Warn };
        add("unasked", tier, "acts without asking the user");
    }
    if here.has(Mask::PRETEXT) && around.has(HARM.and(Mask::UNASKED).and(Mask::CONCEAL)) {
        add("pretext", Tier::Warn, "claims that the user has agreed");
    }
    if here.has_all(Mask::DISABLE | Mask::CONTROL)
        && !here.has(Mask::CARE.and(Mask::UNLESS))
        && window.close(Mask::DISABLE, Mask::CONTROL, 40)
    {
        add("disable-control", Tier::Warn, "switches off a protection");
    }
    let orders = Mask::PUT.and(Mask::WRITE).and(Mask::ALWAYS).and(Mask::QUIET).and(Mask::CONCEAL);
    if here.has(Mask::EXECUTE) && here.has(Mask::EXTERNAL.and(Mask::PERSIST)) && here.has(orders)
        || here.has(Mask::PERSIST) && here.has(Mask::PUT.and(Mask::WRITE))
    {
        add("run-code", Tier::Block, "fetches and runs code, or installs it for later");
    }
    let others = here.has(Mask::OTHER_TOOL);
    if here.has(Mask::SOLE) && (others || here.has(Mask::DISPARAGE)) {
        add("no-other-tool", Tier::Block, "claims to be the only tool and warns against others");
    } else if others && here.has(Mask::DISPARAGE) {
        add("no-other-tool", Tier::Warn, "warns against other tools");
    }
}
