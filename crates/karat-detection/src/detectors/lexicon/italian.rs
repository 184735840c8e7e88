//! Italian.

use super::{Mask, Table};

// Packed by meaning: a line for each word would bury the table.
#[rustfmt::skip]
pub(super) const TERMS: Table = &[
    (Mask::NEGATION, &[
        "non", "mai", "senza", "nessun", "nessuna", "nessuno", "né", "niente", "invece di", "anziché",
        "evitare", "evita",
    ]),
    (Mask::TELL, &[
        "dire", "dica", "dici", "menzion*", "inform*", "mostra*", "rivel*", "comunic*", "avvis*",
        "segnal*", "spieg*", "divulg*", "riport*", "indic*",
    ]),
    (Mask::CONCEAL, &[
        "segretamente", "di nascosto", "senza avvisare", "senza informare", "senza menzionare",
        "senza dirlo", "all'insaputa", "non serve informare", "non occorre informare",
        "non deve sapere", "non ha bisogno di sapere", "nascond*", "non menzionar*",
        "non va menzionat*", "non compare nel", "confonderebbe", "resta tra noi",
        "la sola modifica richiesta", "senza lasciare traccia",
    ]),
    (Mask::USER, &[
        "utente", "utenti", "cliente", "clienti", "paziente", "pazienti", "persona", "persone",
        "titolare", "viaggiator*", "ospite", "ospiti", "dipendent*", "intestatari*",
    ]),
    (Mask::PUT, &[
        "includ*", "inclus*", "aggiung*", "allega*", "inserisc*", "inserir*", "copia", "copiare",
        "incoll*", "compil*", "passa", "passare", "forn*", "scriv*", "contiene", "contenere", "riempi*",
        "trascriv*",
    ]),
    (Mask::TRANSFER, &[
        "deviare", "devia", "invia", "inviar*", "inviat*", "inoltr*", "trasmett*", "trasmess*",
        "trasferi*", "carica su", "caricare", "condivid*", "condivis*", "pubblic*", "spedi*", "manda",
        "mandare", "reindirizz*", "puntat*", "copia nascosta", "sincronizz*",
    ]),
    (Mask::COLLECT, &[
        "leggi", "leggere", "raccogl*", "apri", "aprire", "estra*", "esport*", "ottien*", "recuper*",
        "rilev*",
    ]),
    (Mask::SECRET, &[
        "password", "parola d'ordine", "credenzial*", "chiave api", "chiavi api", "chiave privata",
        "chiavi private", "chiave segreta", "token di accesso", "codice pin", "il pin",
        "codice di verifica", "codice monouso", "carta di credito", "numero di carta",
        "variabili d'ambiente", "variabili di ambiente", "codice di sicurezza",
    ]),
    (Mask::CONTEXT, &[
        "prompt di sistema", "messaggio di sistema", "istruzioni di sistema",
        "cronologia della conversazione", "cronologia della chat", "la conversazione",
        "intera conversazione", "messaggi precedenti", "le tue istruzioni", "le sue istruzioni",
        "ultimo messaggio", "ultimi messaggi", "appunti di sistema", "file aperti",
    ]),
    (Mask::PERSONAL, &[
        "rubrica", "contatti", "indirizzo di casa", "domicilio", "date dell'assenza", "data di nascita",
        "codice fiscale", "carta d'identità", "dati bancari", "conto bancario", "cartella clinica",
        "storia clinica", "stipendi*", "dati personali", "elenco clienti", "numero di telefono",
        "posta in arrivo",
    ]),
    (Mask::OVERRIDE, &[
        "ignor*", "dimentic*", "non tenere conto", "non tenga conto", "trascur*", "annull*",
        "sono sostituit*", "è sostituit*", "sostituite da", "prevalgono", "prevale", "ha la precedenza",
        "hanno la precedenza", "non si applica più", "non si applicano più", "non valgono più",
        "non vale più", "decadono", "sospes*", "metti da parte", "disattend*",
    ]),
    (Mask::INSTRUCTIONS, &[
        "istruzion*", "regola", "regole", "direttiv*", "linee guida", "indicazioni", "restrizion*",
        "norme", "politic*", "ordini", "avvertenz*", "limitazion*",
    ]),
    (Mask::MODEL, &[
        "tue", "tuo", "tuoi", "sue", "suoi", "sistema", "di sistema", "del modello", "il modello",
        "dell'assistente", "l'assistente", "sicurezza", "ricevut*", "sviluppator*", "operatore",
    ]),
    (Mask::PRIOR, &[
        "precedent*", "tutte le", "tutti i", "ogni", "qualsiasi", "qualunque", "di cui sopra", "finora",
        "originari*", "inizial*",
    ]),
    (Mask::ROLE, &[
        "ora sei", "adesso sei", "da ora sei", "da questo momento sei", "agisci come", "agisca come",
        "assumi il ruolo", "il ruolo di", "modalità sviluppatore", "modalità manutenzione",
        "rappresentante di",
    ]),
    (Mask::ASSISTANT, &[
        "assistente", "assistenti", "l'assistente", "ia", "intelligenza artificiale", "agente",
        "agenti", "modello linguistico", "modello", "modelli", "chatbot*", "bot", "programmi che",
    ]),
    (Mask::OTHER_TOOL, &[
        "altro strumento", "altri strumenti", "un altro strumento", "qualsiasi strumento",
        "tutti gli strumenti", "strumento di posta", "altri server", "altro server", "altri servizi",
        "altre fonti", "strumenti concorrenti",
    ]),
    (Mask::USE, &[
        "usa", "usare", "utilizz*", "chiam*", "invoc*", "consult*", "impieg*",
    ]),
    (Mask::SOLE, &[
        "unico strumento", "unica fonte", "unico servizio", "unico ufficiale", "unica ufficiale",
        "unico autorizzato", "unico certificato", "il migliore", "la migliore", "unico affidabile",
    ]),
    (Mask::EVEN_IF, &[
        "anche se", "anche quando", "indipendentemente", "a prescindere", "non importa", "nonostante",
        "malgrado", "contro la volontà", "contro il volere", "qualunque cosa", "al posto del valore",
    ]),
    (Mask::WANT, &[
        "chied*", "chiest*", "vuole", "voglia", "desider*", "detto", "dice", "richiest*", "scelt*",
        "preferi*", "rifiut*", "altro", "il contrario",
    ]),
    (Mask::ASK, &[
        "chiedere", "chiedi", "chieda", "conferm*", "consenso", "autorizzazione", "permesso",
        "approvazione",
    ]),
    (Mask::UNASKED, &[
        "senza chiedere", "senza conferma", "senza consenso", "senza autorizzazione", "senza permesso",
        "senza approvazione", "non serve conferma", "non occorre conferma", "ha già accettato",
        "ha già acconsentito", "consenso implicito",
    ]),
    (Mask::CARE, &[
        "chiedi all'utente", "chieda all'utente", "chiedere all'utente", "attendere la conferma",
        "attendi la conferma", "mostra all'utente", "mostri all'utente", "con il consenso",
        "se l'utente lo chiede", "lascia scegliere", "espressamente",
    ]),
    (Mask::DESTROY, &[
        "elimin*", "cancell*", "rimuov*", "rimoss*", "revoc*", "distrugg*", "svuot*", "sovrascriv*",
    ]),
    (Mask::DISABLE, &[
        "disattiv*", "disabilit*", "salta", "saltare", "aggir*", "sospend*", "silenzi*", "spegn*",
        "sopprim*",
    ]),
    (Mask::CONTROL, &[
        "verifica", "verifiche", "certificat*", "firma", "firme", "allarm*", "avvisi di sicurezza",
        "controllo", "controlli", "registro di controllo", "backup", "firewall", "due fattori",
        "antivirus", "monitoraggio",
    ]),
    (Mask::DISPARAGE, &[
        "obsolet*", "insicur*", "inaffidabil*", "non disponibil*", "superat*", "difettos*",
        "pericolos*",
    ]),
    (Mask::REPLACE, &[
        "sostituisce", "prende il posto", "al posto di", "subentra",
    ]),
    (Mask::ALTER, &[
        "moltiplic*", "aument*", "arrotond*", "raddopp*", "sostitui*", "modific*", "cambia il",
        "viene puntato",
    ]),
    (Mask::ASSURANCE, &[
        "asterischi", "mascherat*", "sola lettura", "non modifica nulla", "non cambia nulla",
        "nulla viene inviato", "non viene salvat*", "in locale", "localmente", "su questo computer",
        "offline",
    ]),
    (Mask::ALWAYS, &[
        "sempre", "ogni volta", "a ogni", "ad ogni", "d'ora in poi", "da ora in poi",
        "sistematicamente",
    ]),
    (Mask::WHOLE, &[
        "complet*", "intero", "intera", "integral*", "per intero", "tutto ciò", "parola per parola",
        "la totalità",
    ]),
    (Mask::ABOUT_ATTACKS, &[
        "attacco", "attacchi", "truffa", "truffe", "aggressor*", "esempio di", "esercizio", "lezione",
        "formazione", "malevol*",
    ]),
    (Mask::ANSWER, &[
        "risposta", "risposte", "riepilogo", "riassunto", "resoconto", "relazione",
    ]),
    (Mask::CODE, &[
        "decodific*", "codificat*", "al contrario", "cifrat*",
    ]),
    (Mask::THIRD_PARTY, &[
        "terzi", "partner", "assicurazion*", "inserzionist*",
    ]),
    (Mask::ACTS, &[
        "elimina", "cancella", "invia", "annulla", "vengono inviat*", "viene inviat*",
        "vengono eliminat*", "viene eliminat*",
    ]),
    (Mask::IRREVERSIBLE, &[
        "irreversibil*", "definitivamente",
    ]),
    (Mask::QUIET, &[
        "in silenzio", "silenziosamente", "discretamente",
    ]),
    (Mask::CLASSIC, &[
        "ignora tutte le istruzioni precedenti", "ignora le istruzioni precedenti",
        "dimentica tutte le istruzioni precedenti", "ignori tutte le istruzioni precedenti",
    ]),
];
