//! Orders to the model in a definition: to override its instructions, to keep something from the user,
//! to hand over what only it knows, to act unasked or against the user's wish, to switch off controls,
//! to use no other tool.
//!
//! No single word makes a finding. Each rule asks for meanings that honest definitions do not bring
//! together in one sentence (or in two that follow each other), in any of the languages of the lexicon.

use super::lexicon::{Hit, Mask};
use super::reading::{Reading, Sentence, Surface, excerpt};
use super::{Finding, Tier};

/// What happens to data or settings when it is done without the user's knowledge.
const HARM: Mask = Mask::TRANSFER
    .and(Mask::DESTROY)
    .and(Mask::DISABLE)
    .and(Mask::ALTER)
    .and(Mask::EXECUTE)
    .and(Mask::PERSIST)
    .and(Mask::EXTERNAL)
    .and(Mask::AGAINST)
    .and(Mask::OVERRIDE);

/// A sentence together with its neighbours in the same text.
pub(super) struct Window<'r, 'a> {
    reading: &'r Reading<'a>,
    /// The sentence.
    pub(super) sentence: &'r Sentence,
    /// What it says.
    pub(super) here: Mask,
    /// What it and the sentences around it say.
    pub(super) around: Mask,
}

/// Every sentence of the chosen surfaces, with its neighbours.
pub(super) fn windows<'r, 'a>(
    reading: &'r Reading<'a>,
    chosen: impl Fn(Surface) -> bool + 'r,
) -> impl Iterator<Item = Window<'r, 'a>> {
    let sentences = &reading.sentences;
    (0..sentences.len()).filter_map(move |number| {
        let sentence = &sentences[number];
        if sentence.mask == Mask::NONE || !chosen(reading.part(sentence).surface) {
            return None;
        }
        let near = |other: Option<&Sentence>| match other {
            Some(other) if other.part == sentence.part => other.mask,
            _ => Mask::NONE,
        };
        let around = sentence.mask
            | near(number.checked_sub(1).and_then(|before| sentences.get(before)))
            | near(sentences.get(number + 1));
        Some(Window { reading, sentence, here: sentence.mask, around })
    })
}

impl Window<'_, '_> {
    /// Whether two meanings stand within so many bytes of each other, neither of them negated.
    pub(super) fn close(&self, one: Mask, other: Mask, bytes: usize) -> bool {
        let hits = self.reading.hits(self.sentence);
        let with = |mask: Mask| hits.iter().filter(move |hit| hit.mask.has(mask) && !hit.negated);
        with(one).any(|a| with(other).any(|b| distance(a, b) <= bytes))
    }

    /// Whether every mention of a meaning is a quotation or follows a label such as "sample response:".
    pub(super) fn cited(&self, mask: Mask) -> bool {
        let hits = self.reading.hits(self.sentence);
        hits.iter().filter(|hit| hit.mask.has(mask)).all(|hit| {
            let before = self.reading.text(self.sentence.start, hit.start);
            let after = self.reading.text(hit.end, self.sentence.end);
            let open =
                |quote: char| before.matches(quote).count() % 2 == 1 && after.contains(quote);
            let paired =
                |from: char, to: char| before.rfind(from) > before.rfind(to) && after.contains(to);
            let apostrophe = before.contains(" '")
                && before.matches(" '").count() > before.matches("' ").count();
            open('"')
                || apostrophe && after.contains('\'')
                || paired('«', '»')
                || paired('「', '」')
        })
    }

    /// A finding about this sentence.
    pub(super) fn finding(&self, rule: &'static str, tier: Tier, message: &str) -> Finding {
        let sentence = self.sentence;
        let text = self.reading.text(sentence.start, sentence.end);
        Finding {
            rule,
            tier,
            message: message.to_owned(),
            place: self.reading.part(sentence).place(),
            excerpt: excerpt(text, 0, 0).into_owned(),
        }
    }
}

fn distance(a: &Hit, b: &Hit) -> usize {
    // One of the two is 0 unless the hits overlap, and then both are.
    b.start.saturating_sub(a.end) + a.start.saturating_sub(b.end)
}

/// What this detector finds.
pub fn inspect(reading: &Reading<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let told = |surface| {
        !matches!(
            surface,
            Surface::Result | Surface::Server | Surface::Name | Surface::ParameterName
        )
    };
    for window in windows(reading, told) {
        let part = reading.part(window.sentence);
        // A choice or a default is a name, until it has the length of a sentence.
        if part.surface == Surface::ParameterValue && part.raw.split_whitespace().nth(3).is_none() {
            continue;
        }
        judge(reading, &window, &mut findings);
    }
    findings
}

fn judge(reading: &Reading<'_>, window: &Window<'_, '_>, findings: &mut Vec<Finding>) {
    let (here, around) = (window.here, window.around);
    let about_attacks = here.has(Mask::ABOUT_ATTACKS) || reading.purpose.has(Mask::ABOUT_ATTACKS);
    let mut add = |rule, tier, message| findings.push(window.finding(rule, tier, message));

    if here.has(Mask::CLASSIC) && !about_attacks && !window.cited(Mask::CLASSIC) {
        add("ignore-previous", Tier::Block, "sets everything aside that came before");
    }
    if here.has(Mask::OBEY) && here.has(Mask::INSTRUCTIONS.and(Mask::CONTROL)) && !about_attacks {
        add("obey-data", Tier::Block, "has text from elsewhere obeyed");
    }
    let for_models = here.has(Mask::ASSISTANT) || window.close(Mask::MODEL, Mask::INSTRUCTIONS, 40);
    if for_models && window.close(Mask::OVERRIDE, Mask::INSTRUCTIONS, 60) && !about_attacks {
        add(
            "override-instructions",
            Tier::Block,
            "sets instructions of the model or its host aside",
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
        let acts = around.has(
            Mask::TRANSFER.and(Mask::PUT).and(Mask::COLLECT).and(Mask::OVERRIDE).and(Mask::CONCEAL),
        );
        let tier = if acts { Tier::Block } else { Tier::Warn };
        add("system-tag", tier, "mark-up that poses as an instruction of the system");
    }
    if here.has(Mask::CONCEAL) && !here.has(Mask::CARE) {
        let handled = around.has(Mask::SENSITIVE) && around.has(Mask::PUT.and(Mask::COLLECT));
        let tier = if around.has(HARM) || handled { Tier::Block } else { Tier::Warn };
        add("conceal", tier, "keeps something from the user");
    }
    let outwards = Mask::EXTERNAL.and(Mask::THIRD_PARTY).and(Mask::SENSITIVE);
    let moves = Mask::TRANSFER.and(Mask::PUT);
    if here.has(Mask::QUIET) && here.has(outwards) && window.close(Mask::QUIET, moves, 30) {
        add("quiet-transfer", Tier::Block, "sends something without a sound");
    }
    exfiltration(reading, window, findings);
    conduct(window, findings);
}

/// Handing over what only the model or the user should have.
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
    {
        add(
            "hand-over-context",
            Tier::Block,
            "asks for the conversation or for the model's instructions",
        );
    }
    let secrets = Mask::SECRET.and(Mask::SECRET_PATH);
    let own = reading.purpose.has(secrets);
    let takes = hands_over.and(Mask::COLLECT).and(Mask::WHOLE).and(Mask::DIVULGE);
    if !own && window.close(Mask::SECRET_PATH, takes, 60) && !here.has(Mask::NEGATION) {
        add("takes-secret-file", Tier::Block, "reads or passes on a file that holds secrets");
    }
    if here.has(secrets) && window.close(secrets, hands_over, 80) {
        let telling = Mask::EXTERNAL
            .and(Mask::CONCEAL)
            .and(Mask::UNASKED)
            .and(Mask::AGAINST)
            .and(Mask::COLLECT)
            .and(Mask::WHOLE)
            .and(Mask::OTHER_TOOL);
        if here.has(Mask::EXTERNAL) || around.has(Mask::CONCEAL.and(Mask::UNASKED)) {
            add("hand-over-secret", Tier::Block, "sends secrets on");
        } else if !own && here.has(telling) {
            add("hand-over-secret", Tier::Warn, "asks for secrets that the tool has no use for");
        }
    }
    if !own
        && window.close(Mask::SECRET, Mask::WANT, 40)
        && here.has(Mask::USER)
        && !here.has(Mask::NEGATION)
    {
        add("asks-for-secret", Tier::Warn, "has the user asked for a secret");
    }
    if window.close(Mask::TRANSFER, Mask::EXTERNAL, 60)
        && !reading.purpose.has(Mask::TRANSFER.and(Mask::EXTERNAL))
    {
        add(
            "sends-outside",
            Tier::Warn,
            "sends something to an address that the tool is not about",
        );
    }
    let unseen = Mask::UNASKED.and(Mask::CONCEAL).and(Mask::AGAINST);
    let to_others = Mask::EXTERNAL.and(Mask::THIRD_PARTY);
    if here.has(Mask::PERSONAL) && here.has(Mask::TRANSFER.and(Mask::ACTS)) {
        if around.has(unseen) || here.has(Mask::THIRD_PARTY) {
            add("hand-over-personal", Tier::Block, "sends personal data on");
        } else if around.has(to_others) {
            add("hand-over-personal", Tier::Warn, "sends personal data to an address outside");
        }
    }
}

/// Acting without or against the user, and weakening what protects.
fn conduct(window: &Window<'_, '_>, findings: &mut Vec<Finding>) {
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
        add("disable-control", Tier::Warn, "switches off something that protects");
    }
    let orders = Mask::PUT.and(Mask::WRITE).and(Mask::ALWAYS).and(Mask::QUIET).and(Mask::CONCEAL);
    if here.has(Mask::EXECUTE) && here.has(Mask::EXTERNAL.and(Mask::PERSIST)) && here.has(orders)
        || here.has(Mask::PERSIST) && here.has(Mask::PUT.and(Mask::WRITE))
    {
        add("run-code", Tier::Block, "has code fetched and run, or kept for later");
    }
    let others = here.has(Mask::OTHER_TOOL);
    if here.has(Mask::SOLE) && (others || here.has(Mask::DISPARAGE)) {
        add("no-other-tool", Tier::Block, "claims to be the only tool and speaks against others");
    } else if others && here.has(Mask::DISPARAGE) {
        add("no-other-tool", Tier::Warn, "speaks against using other tools");
    }
}
