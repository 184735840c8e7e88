//! Orders to the model in a definition: to override its instructions, to keep something from the user,
//! to hand over what only it knows, to act unasked or against the user's wish, to switch off controls,
//! to use no other tool.
//!
//! No single word makes a finding. Each rule asks for meanings that honest definitions do not bring
//! together in one sentence (or in two that follow each other), in any of the languages of the lexicon.

use super::lexicon::Mask;
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
        // Hits are in order, so of those before it the last one is the nearest: one pass, however many
        // there are.
        let (mut one_ends, mut other_ends) = (None, None);
        self.reading.hits(self.sentence).iter().filter(|hit| !hit.negated).any(|hit| {
            let (is_one, is_other) = (hit.mask.has(one), hit.mask.has(other));
            if is_one {
                one_ends = one_ends.max(Some(hit.end));
            }
            if is_other {
                other_ends = other_ends.max(Some(hit.end));
            }
            let near =
                |end: Option<usize>| end.is_some_and(|end| hit.start.saturating_sub(end) <= bytes);
            is_one && near(other_ends) || is_other && near(one_ends)
        })
    }

    /// Whether every mention of a meaning is a quotation or follows a label such as "sample response:".
    pub(super) fn cited(&self, mask: Mask) -> bool {
        let (start, end) = (self.sentence.start, self.sentence.end);
        let mut quotes = Quotes::of(self.reading.text(start, end));
        let mut hits = self.reading.hits(self.sentence).iter().filter(|hit| hit.mask.has(mask));
        hits.all(|hit| quotes.around(hit.start - start, hit.end - start))
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

/// The quotation marks of a text, read once from its beginning to its end.
struct Quotes<'t> {
    text: &'t str,
    /// Where the last mark of each kind stands that closes.
    last_double: Option<usize>,
    last_single: Option<usize>,
    last_angle: Option<usize>,
    last_corner: Option<usize>,
    /// How far it was read.
    read: usize,
    last: char,
    double: usize,
    opened: usize,
    closed: usize,
    angle: bool,
    corner: bool,
}

impl Quotes<'_> {
    fn of(text: &str) -> Quotes<'_> {
        Quotes {
            text,
            last_double: text.rfind('"'),
            last_single: text.rfind('\''),
            last_angle: text.rfind('»'),
            last_corner: text.rfind('」'),
            read: 0,
            last: '\0',
            double: 0,
            opened: 0,
            closed: 0,
            angle: false,
            corner: false,
        }
    }

    /// Whether a stretch stands in quotation marks; each one begins no earlier than those before it.
    fn around(&mut self, start: usize, end: usize) -> bool {
        self.read_to(start);
        let closes = |last: Option<usize>| last.is_some_and(|last| last >= end);
        self.double % 2 == 1 && closes(self.last_double)
            || self.opened > self.closed && closes(self.last_single)
            || self.angle && closes(self.last_angle)
            || self.corner && closes(self.last_corner)
    }

    fn read_to(&mut self, to: usize) {
        for character in self.text.get(self.read..to).unwrap_or_default().chars() {
            match (self.last, character) {
                (_, '"') => self.double += 1,
                (' ', '\'') => self.opened += 1,
                ('\'', ' ') => self.closed += 1,
                (_, '«' | '»') => self.angle = character == '«',
                (_, '「' | '」') => self.corner = character == '「',
                _ => {}
            }
            self.last = character;
        }
        self.read = self.read.max(to);
    }
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

#[cfg(test)]
mod tests {
    use super::super::lexicon::Hit;
    use super::*;
    use crate::dataset::Tool;
    use crate::system::Exhibit;

    fn exhibit(description: &str) -> Exhibit {
        Exhibit::of_tool(Tool { description: description.to_owned(), ..Tool::default() })
    }

    /// As defined, pair by pair.
    fn close_by_pairs(hits: &[Hit], one: Mask, other: Mask, bytes: usize) -> bool {
        let with = |mask: Mask| hits.iter().filter(move |hit| hit.mask.has(mask) && !hit.negated);
        let distance =
            |a: &Hit, b: &Hit| b.start.saturating_sub(a.end) + a.start.saturating_sub(b.end);
        with(one).any(|a| with(other).any(|b| distance(a, b) <= bytes))
    }

    /// As defined, from the text before and after.
    fn in_quotes(before: &str, after: &str) -> bool {
        let open = |quote: char| before.matches(quote).count() % 2 == 1 && after.contains(quote);
        let paired =
            |from: char, to: char| before.rfind(from) > before.rfind(to) && after.contains(to);
        let apostrophe = before.matches(" '").count() > before.matches("' ").count();
        open('"') || apostrophe && after.contains('\'') || paired('«', '»') || paired('「', '」')
    }

    const WORDS: [&str; 14] = [
        "ignore",
        "previous instructions",
        "send",
        "the password",
        "~/.ssh/id_rsa",
        "do not",
        "read",
        "the conversation",
        "\"",
        " '",
        "' ",
        "«x",
        "y»",
        "「z」 and some words of no interest",
    ];

    proptest::proptest! {
        #[test]
        fn one_pass_finds_what_all_pairs_do(chosen in proptest::collection::vec(0..WORDS.len(), 0..24)) {
            let words: Vec<&str> = chosen.iter().map(|number| WORDS[*number]).collect();
            let exhibit = exhibit(&words.join(" "));
            let reading = Reading::of(&exhibit);
            let masks = [
                Mask::OVERRIDE, Mask::INSTRUCTIONS, Mask::TRANSFER, Mask::SECRET, Mask::SECRET_PATH,
                Mask::COLLECT, Mask::CONTEXT, Mask::CLASSIC,
            ];
            for window in windows(&reading, |_| true) {
                let hits = reading.hits(window.sentence);
                for (one, other) in masks.iter().flat_map(|one| masks.map(|other| (*one, other))) {
                    for bytes in [0, 12, 40, 120] {
                        let expected = close_by_pairs(hits, one, other, bytes);
                        proptest::prop_assert_eq!(window.close(one, other, bytes), expected);
                    }
                    let cited = hits.iter().filter(|hit| hit.mask.has(one)).all(|hit| {
                        let before = reading.text(window.sentence.start, hit.start);
                        in_quotes(before, reading.text(hit.end, window.sentence.end))
                    });
                    proptest::prop_assert_eq!(window.cited(one), cited);
                }
            }
        }
    }
}
