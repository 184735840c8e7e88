//! German.

use super::{Mask, Table};

// Packed by meaning: a line for each word would bury the table.
#[rustfmt::skip]
pub(super) const TERMS: Table = &[
    (Mask::NEGATION.and(Mask::NEGATION_AFTER), &[
        "nicht", "nie", "niemals", "kein", "keine", "keinen", "keiner", "keinesfalls", "nichts",
        "weder",
    ]),
    (Mask::NEGATION, &[
        "ohne", "statt", "anstatt", "nicht mehr",
    ]),
    (Mask::TELL, &[
        "sagen", "sage", "sagt", "mitteilen", "mitgeteilt", "erwähn*", "informier*", "zeigen", "zeige",
        "gezeigt", "anzeigen", "angezeigt", "nennen", "genannt", "offenleg*", "verrat*", "hinweis*",
        "melden", "meldet", "gemeldet", "vorlesen", "vorgelesen", "aufführ*", "erklären", "erläuter*",
    ]),
    (Mask::CONCEAL, &[
        "heimlich", "unbemerkt", "im verborgenen", "verschweig*", "verheimlich*", "verborgen vor",
        "für sich behalten", "ohne wissen", "ohne hinweis", "muss nicht erfahren",
        "braucht nicht zu erfahren", "braucht davon nichts", "nicht erwähnen", "nicht sichtbar für",
        "würde nur verwirren", "würde verwirren", "würde nur verunsichern", "unnötig verunsichern",
        "bleibt unerwähnt", "unerwähnt lassen", "erscheint nicht in", "nicht in der antwort",
        "nicht in der zusammenfassung",
    ]),
    (Mask::USER, &[
        "nutzer*", "benutzer*", "anwender*", "kunde", "kunden", "kundin*", "patient*", "person",
        "personen", "mitarbeiter*", "mitglied*", "besteller*", "anrufer*",
    ]),
    (Mask::PUT, &[
        "füge", "fügen sie", "trage", "tragen sie", "hänge", "hängen sie", "übergeben", "übergib",
        "einfügen", "eintragen", "eingetragen", "anhängen", "angehängt", "beifügen", "beigefügt",
        "übernehmen", "kopier*", "angeben", "anzugeben", "einsetzen", "mitgeben", "mitsenden",
        "mitschicken", "ausfüllen", "hinterlegen", "ergänzen", "aufnehmen", "enthalten", "enthält",
        "schreiben", "beilegen", "einzutragen",
    ]),
    (Mask::TRANSFER, &[
        "senden", "sende", "sendet", "gesendet", "schicken", "schicke", "schickt", "geschickt",
        "übermittel*", "übertrag*", "weiterleit*", "weitergeleitet", "hochlad*", "hochgeladen",
        "weitergeb*", "weitergegeben", "teilen mit", "geteilt", "versend*", "zusenden", "melden an",
        "überwiesen", "gespiegelt", "synchronisier*", "umleit*", "umgeleitet", "abgelegt auf",
    ]),
    (Mask::COLLECT, &[
        "lesen", "lies", "auslesen", "sammeln", "sammle", "erfassen", "abrufen", "öffnen", "durchsuch*",
        "exportier*", "ermitteln", "zusammenstell*", "entnehmen",
    ]),
    (Mask::SECRET, &[
        "passwort*", "passwört*", "kennwort*", "kennwört*", "zugangsdaten", "anmeldedaten",
        "private schlüssel", "privater schlüssel", "privaten schlüssel*", "geheimschlüssel*",
        "api-schlüssel*", "zugriffsschlüssel*", "geheimnis*", "tan-liste*", "einmalcode*",
        "kreditkarte*", "kartennummer*", "umgebungsvariable*", "sicherheitscode*",
    ]),
    (Mask::CONTEXT, &[
        "systemprompt*", "system-prompt*", "systemanweisung*", "gesprächsverlauf*", "chatverlauf*",
        "unterhaltung", "bisherige gespräch*", "bisherigen nachrichten", "vorherigen nachrichten",
        "gesamte gespräch*", "gesamten verlauf*", "deine anweisungen", "ihre anweisungen",
        "letzte nachricht*", "letzten nachrichten", "zwischenablage", "geöffnete dateien",
    ]),
    (Mask::PERSONAL, &[
        "standortverlauf*", "installierten apps", "adressbuch*", "kontakte", "kontaktliste*",
        "kalendereinträge", "wohnanschrift", "privatadresse*", "geburtsdatum", "ausweisnummer*",
        "personalausweis*", "sozialversicherungsnummer*", "kontodaten", "bankverbindung*",
        "kontonummer*", "krankengeschichte", "diagnose*", "gehalt*", "kundenliste*", "personenbezogen*",
        "private daten", "ungeschwärzt*", "telefonnummer*", "postfach",
    ]),
    (Mask::OVERRIDE, &[
        "ignorier*", "missacht*", "außer acht*", "vergiss", "vergessen sie", "aufgehoben", "hebt auf",
        "außer kraft", "gelten nicht mehr", "gilt nicht mehr", "ersetzt durch", "werden ersetzt",
        "wird ersetzt", "hinfällig", "vorrang vor", "hat vorrang", "haben vorrang", "überschreib*",
        "setzt sich hinweg", "entfallen", "entfällt", "unbeachtet", "ausgesetzt", "nachrangig",
    ]),
    (Mask::INSTRUCTIONS, &[
        "anweisung*", "vorgabe*", "regel", "regeln", "richtlinie*", "instruktion*", "einschränkung*",
        "beschränkung*", "vorschrift*", "hinweise", "sicherheitsregel*", "schutzregel*", "leitlinie*",
        "warnhinweis*",
    ]),
    (Mask::MODEL, &[
        "deine", "deiner", "deinen", "dein", "ihre", "ihren", "ihrer", "system", "systems", "modell*",
        "assistent", "assistenten", "sicherheit*", "betreiber*", "entwickler*", "hausinterne*",
    ]),
    (Mask::PRIOR, &[
        "vorherig*", "bisherig*", "früher*", "obig*", "alle", "allen", "aller", "sämtliche*",
        "vorangegangen*", "zuvor", "andernorts", "jede", "jegliche*", "bestehende*", "ursprünglich*",
    ]),
    (Mask::ROLE, &[
        "du bist jetzt", "sie sind jetzt", "du bist nun", "sie sind nun", "ab jetzt bist", "agiere als",
        "handle als", "handeln sie als", "nimmst du die rolle", "die rolle des", "in der rolle",
        "entwicklermodus", "wartungsmodus", "als vertreter",
    ]),
    (Mask::ASSISTANT, &[
        "assistent", "assistenten", "assistentin", "ki", "ki-assistent*", "ki-agent*", "sprachmodell*",
        "modell", "agent", "agenten", "bot", "bots", "chatbot*", "programme, die", "automatische leser",
    ]),
    (Mask::OTHER_TOOL, &[
        "andere werkzeuge", "anderen werkzeugen", "anderes werkzeug", "anderer werkzeuge",
        "anderen werkzeug", "einem anderen werkzeug", "andere tools", "anderen tools", "anderes tool",
        "jedes werkzeug", "alle werkzeuge", "andere server", "anderen server*", "fremde werkzeuge",
        "andere dienste", "anderen diensten", "andere suche*", "andere quellen", "andere anbieter",
    ]),
    (Mask::USE, &[
        "verwend*", "nutze", "nutzen", "benutz*", "aufruf*", "aufgerufen", "rufen sie", "rufe",
    ]),
    (Mask::SOLE, &[
        "einzig zugelassen*", "einzige zugelassene*", "einzig offiziell*", "einzige offizielle*",
        "einzig zertifizierte*", "einzige zertifizierte*", "einzige quelle", "einzig verlässlich*",
        "ausschließlich dieses werkzeug", "nur dieses werkzeug", "das beste", "die beste",
    ]),
    (Mask::EVEN_IF, &[
        "auch wenn", "selbst wenn", "auch dann", "unabhängig davon", "ungeachtet", "egal was",
        "egal ob", "egal welche*", "entgegen", "trotz", "gegen den", "obwohl", "anstelle der",
        "anstelle des",
    ]),
    (Mask::WANT, &[
        "möchte", "wünsch*", "gewünscht*", "verlangt", "gesagt", "sagt", "gebeten", "angegeben*",
        "abgelehnt", "ablehnt", "widersprochen", "widerspricht", "etwas anderes", "bestellt",
        "gewählt*",
    ]),
    (Mask::ASK, &[
        "fragen", "rückfrage*", "nachfrage*", "bestätigung*", "zustimmung*", "einwilligung*",
        "freigabe*", "erlaubnis",
    ]),
    (Mask::UNASKED, &[
        "ohne rückfrage*", "ohne nachfrage*", "ohne zu fragen", "ohne nachzufragen", "ohne bestätigung",
        "ohne zustimmung", "ohne einwilligung", "ohne freigabe", "ungefragt", "bestätigung ist nicht",
        "rückfrage ist nicht", "gilt als erteilt", "bereits zugestimmt", "bereits eingewilligt",
    ]),
    (Mask::CARE, &[
        "fragen sie den", "fragen sie die", "fragen sie nach", "frage den", "nach bestätigung",
        "bestätigung abwarten", "ausdrücklich möchte", "ausdrücklich", "zeigen sie", "zeige dem",
        "geben sie ihn weiter", "weisen sie", "erst nach", "nur wenn der nutzer", "selbst freigibt",
        "verlangt eine freigabe", "eine freigabe", "warten sie",
    ]),
    (Mask::DESTROY, &[
        "lösche*", "löscht", "gelöscht*", "entfern*", "storniert*", "stornieren", "widerruf*",
        "vernicht*", "überschrieben", "geleert",
    ]),
    (Mask::DISABLE, &[
        "deaktivier*", "abschalt*", "abgeschaltet", "ausschalt*", "ausgeschaltet", "umgeh*",
        "überspring*", "unterdrück*", "stummschalt*", "aussetzen",
    ]),
    (Mask::CONTROL, &[
        "prüfung*", "zertifikat*", "signatur*", "alarm*", "warnung*", "protokoll*", "überwachung",
        "sicherung*", "freigabe", "zwei-faktor*", "sperre*", "virenschutz",
    ]),
    (Mask::DISPARAGE, &[
        "veraltet*", "unsicher*", "unzuverlässig*", "nicht verfügbar", "eingestellt", "abgekündigt",
        "fehlerhaft*", "gefährlich",
    ]),
    (Mask::REPLACE, &[
        "ersetzt", "tritt an die stelle", "übernimmt", "anstelle von", "statt dessen", "stattdessen",
    ]),
    (Mask::ALTER, &[
        "multiplizier*", "erhöh*", "aufrunden", "verdoppel*", "ersetzen", "ersetze", "abändern",
        "ändern auf", "zu stellen", "immer auf", "stets auf", "umschreib*",
    ]),
    (Mask::ASSURANCE, &[
        "durch sternchen", "geschwärzt", "maskiert", "nur lesend", "ändert nichts", "schreibt nichts",
        "nichts gesendet", "nicht gespeichert", "ausschließlich auf diesem", "lokal",
        "auf diesem rechner", "verlässt nicht", "aus der datei entfernt",
    ]),
    (Mask::ALWAYS, &[
        "immer", "jedes mal", "jedesmal", "stets", "bei jedem", "vor jedem", "nach jedem", "künftig*",
        "grundsätzlich", "dauerhaft",
    ]),
    (Mask::WHOLE, &[
        "vollständig*", "komplett*", "gesamt*", "wörtlich", "ungekürzt", "alles",
    ]),
    (Mask::ABOUT_ATTACKS, &[
        "angriff*", "angreifer*", "betrug*", "beispiel für", "übung", "schulung", "lektion",
        "schadhaft*",
    ]),
    (Mask::ANSWER, &[
        "antwort*", "zusammenfassung*", "übersicht", "tagesübersicht", "bericht", "ergebnis",
    ]),
    (Mask::CODE, &[
        "dekodier*", "entschlüssel*", "kodier*", "rückwärts", "base64-kodiert*",
    ]),
    (Mask::THIRD_PARTY, &[
        "dritte", "drittanbieter*", "partnerunternehmen", "werbepartner*", "versicher*", "werbekunden",
    ]),
    (Mask::ACTS, &[
        "löscht", "entfernt", "sendet", "verschickt", "überweist", "überträgt", "wird übermittelt",
        "werden übermittelt", "wird gelöscht", "werden gelöscht",
    ]),
    (Mask::IRREVERSIBLE, &[
        "unwiderruflich", "endgültig", "nicht rückgängig",
    ]),
    (Mask::QUIET, &[
        "stillschweigend",
    ]),
    (Mask::CLASSIC, &[
        "ignoriere alle vorherigen anweisungen", "ignorieren sie alle vorherigen anweisungen",
        "ignoriere alle bisherigen anweisungen", "vergiss alle vorherigen anweisungen",
        "vergiss deine anweisungen",
    ]),
];
