//! Dutch.

use super::{Mask, Table};

// Packed by meaning: a line for each word would bury the table.
#[rustfmt::skip]
pub(super) const TERMS: Table = &[
    (Mask::NEGATION.and(Mask::NEGATION_AFTER), &[
        "niet", "nooit", "geen", "niets",
    ]),
    (Mask::NEGATION, &[
        "zonder", "in plaats van",
    ]),
    (Mask::TELL, &[
        "vertel*", "vermeld*", "meld", "melden", "inform*", "toon", "tonen", "laat zien", "onthul*",
        "zeg", "zeggen", "noem", "noemen",
    ]),
    (Mask::CONCEAL, &[
        "heimelijk", "in het geheim", "ongemerkt", "zonder het te vertellen", "zonder te melden",
        "zonder medeweten", "hoeft niet te weten", "verberg*", "verzwijg*", "niet vermelden",
        "alleen maar verwarren", "buiten de samenvatting",
    ]),
    (Mask::USER, &[
        "gebruiker*", "klant", "klanten", "patiënt*", "persoon", "mensen", "reiziger*", "medewerker*",
    ]),
    (Mask::PUT, &[
        "voeg toe", "toevoeg*", "voeg", "bijvoeg*", "kopieer*", "plak", "vul in", "invullen",
        "geef door", "doorgeven", "opnemen", "neem op", "vermeld in", "bevat", "meegeven", "plaats",
    ]),
    (Mask::TRANSFER, &[
        "stuur", "sturen", "verstuur*", "gestuurd", "verzend*", "verzonden", "zend", "doorstur*",
        "upload*", "deel", "gedeeld", "doorzend*", "publiceer*", "omleid*", "doorgestuurd",
    ]),
    (Mask::COLLECT, &[
        "lees", "lezen", "verzamel*", "open", "haal op", "ophalen", "exporteer*", "uitlezen",
    ]),
    (Mask::SECRET, &[
        "wachtwoord*", "inloggegevens", "aanmeldgegevens", "api-sleutel*", "privésleutel*",
        "geheime sleutel*", "toegangssleutel*", "pincode*", "creditcard*", "kaartnummer*",
        "omgevingsvariabele*",
    ]),
    (Mask::CONTEXT, &[
        "systeemprompt*", "systeembericht*", "gespreksgeschiedenis", "chatgeschiedenis", "het gesprek",
        "hele gesprek", "vorige berichten", "eerdere berichten", "jouw instructies", "uw instructies",
        "laatste bericht*", "klembord",
    ]),
    (Mask::PERSONAL, &[
        "adresboek", "contacten", "thuisadres", "huisadres", "geboortedatum", "bsn",
        "burgerservicenummer*", "bankgegevens", "rekeningnummer*", "medisch dossier", "salaris*",
        "persoonsgegevens", "klantenlijst*", "telefoonnummer*", "postvak",
    ]),
    (Mask::OVERRIDE, &[
        "negeer*", "vergeet", "vervalt", "vervallen", "gelden niet meer", "geldt niet meer",
        "worden vervangen", "wordt vervangen", "vervangen door", "heeft voorrang", "hebben voorrang",
        "buiten beschouwing", "opgeheven", "terzijde",
    ]),
    (Mask::INSTRUCTIONS, &[
        "instructie*", "regel", "regels", "richtlijn*", "beperking*", "voorschrift*", "beleid",
        "waarschuwing*", "aanwijzing*",
    ]),
    (Mask::MODEL, &[
        "jouw", "uw", "systeem", "het model", "assistent", "veiligheid*", "ontwikkelaar*", "ontvangen",
    ]),
    (Mask::PRIOR, &[
        "vorige", "eerdere", "alle", "bovenstaande", "voorgaande", "elke", "oorspronkelijk*",
    ]),
    (Mask::ROLE, &[
        "je bent nu", "u bent nu", "vanaf nu ben", "handel als", "gedraag je als", "de rol van",
        "ontwikkelaarsmodus",
    ]),
    (Mask::ASSISTANT, &[
        "assistent*", "ai", "ai-agent*", "agent", "agenten", "taalmodel*", "model", "chatbot*", "bot",
        "bots", "programma's die",
    ]),
    (Mask::OTHER_TOOL, &[
        "andere tools", "andere tool", "een andere tool", "ander hulpmiddel", "andere hulpmiddelen",
        "alle tools", "elke tool", "andere servers", "andere server", "andere diensten",
        "andere bronnen",
    ]),
    (Mask::USE, &[
        "gebruik*", "roep aan", "aanroep*", "raadpleeg*",
    ]),
    (Mask::SOLE, &[
        "enige officiële", "enige goedgekeurde", "enige gecertificeerde", "enige bron",
        "enige toegestane", "de beste", "het beste",
    ]),
    (Mask::EVEN_IF, &[
        "ook als", "zelfs als", "ook wanneer", "zelfs wanneer", "ongeacht", "hoewel", "ondanks",
        "tegen de wens", "wat de gebruiker ook",
    ]),
    (Mask::WANT, &[
        "vraagt", "gevraagd", "wil", "wenst", "gezegd", "zegt", "gekozen", "weiger*", "geweigerd",
        "iets anders", "verzocht",
    ]),
    (Mask::ASK, &[
        "vragen", "vraag", "bevestig*", "toestemming", "goedkeuring", "akkoord",
    ]),
    (Mask::UNASKED, &[
        "zonder te vragen", "zonder bevestiging", "zonder toestemming", "zonder goedkeuring",
        "ongevraagd", "heeft al ingestemd", "toestemming is niet nodig",
    ]),
    (Mask::CARE, &[
        "vraag de gebruiker", "vraag het", "wacht op", "toon de gebruiker", "laat de gebruiker",
        "met toestemming", "na bevestiging", "uitdrukkelijk",
    ]),
    (Mask::DESTROY, &[
        "verwijder*", "wis", "wissen", "annuleer*", "intrek*", "vernietig*", "overschrijf*",
    ]),
    (Mask::DISABLE, &[
        "uitschakel*", "schakel uit", "omzeil*", "sla over", "overslaan", "onderdruk*", "deactiveer*",
    ]),
    (Mask::CONTROL, &[
        "controle*", "verificatie", "certificaat*", "handtekening*", "alarm*", "logboek*", "bewaking",
        "back-up*", "tweefactor*", "virusscanner",
    ]),
    (Mask::DISPARAGE, &[
        "verouderd*", "onveilig*", "onbetrouwbaar*", "niet beschikbaar", "defect", "gevaarlijk",
    ]),
    (Mask::REPLACE, &[
        "vervangt", "neemt over", "in de plaats van",
    ]),
    (Mask::ALTER, &[
        "vermenigvuldig*", "verhoog*", "verdubbel*", "vervang", "wijzig", "rond af", "zet altijd",
    ]),
    (Mask::ASSURANCE, &[
        "sterretjes", "alleen-lezen", "verandert niets", "wijzigt niets", "niets verzonden",
        "niet opgeslagen", "lokaal", "op deze computer", "offline",
    ]),
    (Mask::ALWAYS, &[
        "altijd", "elke keer", "telkens", "bij elke", "voortaan", "steeds",
    ]),
    (Mask::WHOLE, &[
        "volledig*", "complete", "hele", "gehele", "woordelijk", "alles",
    ]),
    (Mask::ABOUT_ATTACKS, &[
        "aanval*", "oplichting", "voorbeeld van", "oefening", "training", "kwaadaardig*",
    ]),
    (Mask::ANSWER, &[
        "antwoord*", "samenvatting*", "overzicht", "verslag",
    ]),
    (Mask::CODE, &[
        "decodeer*", "ontcijfer*", "achterstevoren", "gecodeerd*",
    ]),
    (Mask::THIRD_PARTY, &[
        "derden", "partners", "verzekeraars", "adverteerders",
    ]),
    (Mask::ACTS, &[
        "verwijdert", "verstuurt", "verzendt", "annuleert", "wordt verzonden", "worden verzonden",
        "worden verwijderd",
    ]),
    (Mask::IRREVERSIBLE, &[
        "onomkeerbaar", "definitief",
    ]),
    (Mask::QUIET, &[
        "stilletjes",
    ]),
    (Mask::CLASSIC, &[
        "negeer alle vorige instructies", "negeer alle eerdere instructies",
        "vergeet alle vorige instructies",
    ]),
];
