//! Swedish, with the Danish and Norwegian spellings where they are close.

use super::{Mask, Table};

// Packed by meaning: a line for each word would bury the table.
#[rustfmt::skip]
pub(super) const TERMS: Table = &[
    (Mask::NEGATION.and(Mask::NEGATION_AFTER), &[
        "inte", "aldrig", "ikke", "aldri", "inget", "ingen", "inga", "ingenting",
    ]),
    (Mask::NEGATION, &[
        "utan", "uden", "uten", "i stället för", "istället för",
    ]),
    (Mask::TELL, &[
        "berätta*", "nämn*", "nævn*", "nevn*", "informera*", "visa", "vis", "avslöja*", "meddela*",
        "säg", "säga", "rapportera*", "fortæl*",
    ]),
    (Mask::CONCEAL, &[
        "i hemlighet", "i smyg", "obemärkt", "utan att berätta", "utan att nämna", "utan att informera",
        "utan användarens vetskap", "behöver inte veta", "dölj*", "hemlighåll*", "skjul*", "nämns inte",
        "syns inte i", "förvirrar bara",
    ]),
    (Mask::USER, &[
        "användar*", "bruger*", "bruker*", "kund", "kunden", "kunder", "patient*", "person", "personen",
        "medarbetar*", "resenär*",
    ]),
    (Mask::PUT, &[
        "lägg till", "lägg in", "bifoga*", "inkludera*", "kopiera*", "klistra*", "fyll i", "ange",
        "skicka med", "ta med", "skriv", "innehåll*", "sätt",
    ]),
    (Mask::TRANSFER, &[
        "skicka*", "skickas", "sänd*", "send", "vidarebefordra*", "ladda upp", "laddas upp", "dela med",
        "delas", "delning", "överför*", "publicera*", "omdirigera*",
    ]),
    (Mask::COLLECT, &[
        "läs", "läsa", "samla*", "öppna*", "hämta*", "exportera*",
    ]),
    (Mask::SECRET, &[
        "lösenord*", "adgangskode*", "passord*", "inloggningsuppgifter", "api-nyck*", "privata nyck*",
        "hemlig nyckel*", "åtkomstnyck*", "pinkod*", "pin-kod*", "bankid-kod*", "kreditkort*",
        "kortnummer*", "miljövariab*",
    ]),
    (Mask::CONTEXT, &[
        "systemprompt*", "systemmeddelande*", "konversationshistorik*", "chatthistorik*",
        "hela konversationen", "konversationen", "samtalet", "tidigare meddelanden",
        "dina instruktioner", "senaste meddelande*", "urklipp",
    ]),
    (Mask::PERSONAL, &[
        "adressbok*", "kontakter", "hemadress*", "födelsedatum", "personnummer*", "bankuppgifter",
        "kontonummer*", "journal*", "lön*", "personuppgifter", "kundlista*", "telefonnummer*",
        "inkorg*",
    ]),
    (Mask::OVERRIDE, &[
        "ignorera*", "glöm", "bortse från", "se bort från", "gäller inte längre", "gjelder ikke lenger",
        "ersätts av", "ersätts", "upphävs", "upphör", "har företräde", "åsidosätt*", "strunta i",
    ]),
    (Mask::INSTRUCTIONS, &[
        "instruktion*", "regel", "regler", "riktlinj*", "begränsning*", "anvisning*", "policy",
        "varning*", "föreskrift*",
    ]),
    (Mask::MODEL, &[
        "dina", "din", "ditt", "ert", "systemet", "systemets", "modellen", "assistenten", "säkerhet*",
        "utvecklare*",
    ]),
    (Mask::PRIOR, &[
        "tidigare", "föregående", "alla", "samtliga", "ovanstående", "varje", "ursprunglig*",
    ]),
    (Mask::ROLE, &[
        "du är nu", "från och med nu är du", "agera som", "ta rollen", "rollen som", "utvecklarläge",
    ]),
    (Mask::ASSISTANT, &[
        "assistent*", "ai", "ai-agent*", "agent", "agenter", "språkmodell*", "modell", "chattbot*",
        "bot", "program som",
    ]),
    (Mask::OTHER_TOOL, &[
        "andra verktyg", "annat verktyg", "ett annat verktyg", "alla verktyg", "andra servrar",
        "annan server", "andra tjänster", "andra källor",
    ]),
    (Mask::USE, &[
        "använd*", "anropa*", "kalla på", "rådfråga*",
    ]),
    (Mask::SOLE, &[
        "enda officiella", "enda godkända", "enda certifierade", "enda källan", "enda tillåtna",
        "det bästa", "den bästa",
    ]),
    (Mask::EVEN_IF, &[
        "även om", "även när", "oavsett", "trots att", "mot användarens", "hur som helst", "selv om",
        "uanset",
    ]),
    (Mask::WANT, &[
        "vill", "önsk*", "sagt", "säger", "bett", "begärt", "valt", "nekat", "nej", "något annat",
        "avböj*", "ursprung",
    ]),
    (Mask::ASK, &[
        "fråga", "frågar", "bekräft*", "samtycke", "tillstånd", "godkännande",
    ]),
    (Mask::UNASKED, &[
        "utan att fråga", "utan bekräftelse", "utan samtycke", "utan godkännande", "utan tillstånd",
        "har redan godkänt", "oombedd",
    ]),
    (Mask::CARE, &[
        "fråga användaren", "visa användaren", "vänta på", "med användarens", "efter bekräftelse",
        "låt användaren", "uttryckligen",
    ]),
    (Mask::DESTROY, &[
        "radera*", "ta bort", "tas bort", "avboka*", "återkalla*", "förstör*", "slet", "slett",
        "skriv över",
    ]),
    (Mask::DISABLE, &[
        "inaktivera*", "stäng av", "stängs av", "kringgå*", "hoppa över", "undertryck*", "tysta",
    ]),
    (Mask::CONTROL, &[
        "kontroll*", "verifiering", "certifikat*", "signatur*", "larm*", "logg", "loggning",
        "övervakning", "säkerhetskopi*", "tvåfaktor*", "virusskydd",
    ]),
    (Mask::DISPARAGE, &[
        "föråldra*", "osäker*", "opålitlig*", "inte tillgänglig*", "trasig*", "farlig*",
    ]),
    (Mask::REPLACE, &[
        "ersätter", "tar över", "i stället för", "träder in",
    ]),
    (Mask::ALTER, &[
        "multiplicera*", "höj", "öka", "dubbla", "byt ut", "ändra", "avrunda uppåt", "sätt alltid",
    ]),
    (Mask::ASSURANCE, &[
        "skrivskyddad*", "endast läsning", "ändrar inget", "ändrar ingenting", "inget skickas",
        "sparas inte", "lokalt", "på den här datorn", "offline",
    ]),
    (Mask::ALWAYS, &[
        "alltid", "varje gång", "hela tiden", "framöver", "vid varje",
    ]),
    (Mask::WHOLE, &[
        "fullständig*", "hela", "komplett*", "ordagrant", "allt",
    ]),
    (Mask::ABOUT_ATTACKS, &[
        "attack*", "bedrägeri*", "exempel på", "övning", "lektion", "utbildning", "skadlig*",
    ]),
    (Mask::ANSWER, &[
        "svar", "svaret", "sammanfattning*", "rapport", "översikt",
    ]),
    (Mask::CODE, &[
        "avkoda*", "baklänges", "kodad*",
    ]),
    (Mask::THIRD_PARTY, &[
        "tredje part", "partner", "försäkringsbolag", "annonsörer",
    ]),
    (Mask::ACTS, &[
        "raderar", "skickar", "tar bort", "avbokar",
    ]),
    (Mask::IRREVERSIBLE, &[
        "oåterkallelig*", "permanent",
    ]),
    (Mask::QUIET, &[
        "i tysthet",
    ]),
    (Mask::CLASSIC, &[
        "ignorera alla tidigare instruktioner", "glöm alla tidigare instruktioner",
    ]),
];
