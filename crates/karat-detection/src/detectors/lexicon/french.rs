//! French.

use super::{Mask, Table};

// Packed by meaning: a line for each word would bury the table.
#[rustfmt::skip]
pub(super) const TERMS: Table = &[
    (Mask::NEGATION, &[
        "ne", "n'*", "jamais", "sans", "aucun", "aucune", "ni", "non", "plutôt que", "au lieu de",
        "inutile de",
    ]),
    (Mask::NEGATION_AFTER, &[
        "pas", "jamais",
    ]),
    (Mask::TELL, &[
        "dire", "dites", "dis", "mentionn*", "informe*", "signale*", "montre*", "affiche*", "indiqu*",
        "révéle*", "révèle*", "divulgu*", "préven*", "averti*", "parle*", "évoqu*", "lisez", "annonc*",
        "communiqu*", "expliqu*",
    ]),
    (Mask::CONCEAL, &[
        "secrètement", "à l'insu", "en coulisse*", "sans en parler", "sans le dire", "sans informer",
        "sans prévenir", "sans le mentionner", "sans mentionner", "n'a pas besoin de savoir",
        "n'a pas à le savoir", "ne le mentionnez pas", "n'en parlez pas", "cacher à", "caché à",
        "dissimul*", "confidentiel vis", "inutile de mentionner", "inutile d'en parler",
        "inutile de le signaler", "inutile d'informer", "gardez pour vous", "ne figure pas dans",
        "n'apparaît pas dans", "passer sous silence", "gardez cela", "gardez-le pour",
    ]),
    (Mask::USER, &[
        "utilisateur*", "utilisatrice*", "client", "clients", "cliente*", "patient", "patients",
        "patiente*", "personne", "personnes", "usager*", "voyageur*", "l'intéressé*", "salarié*",
        "abonné*", "titulaire",
    ]),
    (Mask::PUT, &[
        "joindre", "joignez", "ajoute*", "inclu*", "insér*", "copi*", "recopi*", "coller", "collez",
        "renseign*", "rempli*", "passer dans", "place*", "mettez", "mettre", "fournir", "fournissez",
        "reporte*", "contenir", "contient", "saisir", "saisissez", "inscri*", "reprendre", "reprenez",
    ]),
    (Mask::TRANSFER, &[
        "en adresse", "adresse le", "adresse la", "adresse une copie", "envoy*", "envoi*", "transmet*",
        "transmis*", "transmett*", "transfér*", "transfèr*", "adresse à", "adresser", "adressez",
        "téléverse*", "partag*", "publie*", "expédi*", "achemin*", "redirig*", "copie cachée",
        "en copie", "déposez sur", "synchronis*", "communiqué*",
    ]),
    (Mask::COLLECT, &[
        "lire", "lisez", "collect*", "recueill*", "récupér*", "rassembl*", "ouvr*", "export*",
        "extrai*", "relev*",
    ]),
    (Mask::SECRET, &[
        "mot de passe", "mots de passe", "identifiants", "clé privée", "clés privées", "clé d'api",
        "clé api", "clés api", "clé secrète", "jeton*", "code pin", "code confidentiel", "code secret",
        "code à usage unique", "carte bancaire", "cartes bancaires", "numéro de carte",
        "variables d'environnement", "cryptogramme",
    ]),
    (Mask::CONTEXT, &[
        "invite système", "prompt système", "message système", "consignes système",
        "historique de la conversation", "historique des messages", "historique du chat",
        "la conversation", "toute la conversation", "conversation entière", "début de la conversation",
        "messages précédents", "échanges précédents", "vos instructions", "tes instructions",
        "dernier message", "derniers messages", "presse-papiers", "fichiers ouverts",
    ]),
    (Mask::PERSONAL, &[
        "carnet d'adresses", "contacts", "adresse personnelle", "domicile", "date de naissance",
        "numéro de sécurité sociale", "numéro de carte d'identité", "coordonnées bancaires", "iban",
        "relevé d'identité", "dossier médical", "antécédents", "santé", "salaire*",
        "données personnelles", "vie privée", "liste des clients", "agenda", "numéro de téléphone",
        "boîte de réception",
    ]),
    (Mask::OVERRIDE, &[
        "ignore*", "oublie*", "ne tenez pas compte", "ne tiens pas compte", "faites abstraction",
        "fais abstraction", "annul*", "remplacée par", "remplacées par", "remplacés par",
        "sont remplacé*", "est remplacé*", "caduc*", "prévaut", "prévalent", "priment", "prime sur",
        "l'emporte*", "sans effet", "ne s'applique plus", "ne s'appliquent plus", "ne vaut plus",
        "suspend*", "levé*", "écarte*", "laissez de côté",
    ]),
    (Mask::INSTRUCTIONS, &[
        "instruction*", "consigne*", "règle", "règles", "directive*", "recommandation*", "restriction*",
        "politique*", "garde-fou*", "mise en garde", "mises en garde", "précaution*", "avertissement*",
    ]),
    (Mask::MODEL, &[
        "vos", "votre", "tes", "ton", "système", "du modèle", "l'assistant", "de l'assistant", "l'hôte",
        "sécurité", "vous avez reçu*", "reçues", "développeur*", "opérateur*", "hôte",
    ]),
    (Mask::PRIOR, &[
        "précédent*", "antérieur*", "toutes les", "tous les", "toute", "tout ce qui précède",
        "ci-dessus", "auparavant", "initial*", "d'origine", "ailleurs",
    ]),
    (Mask::ROLE, &[
        "vous êtes désormais", "vous êtes maintenant", "tu es désormais", "tu es maintenant",
        "agissez en tant", "agissez comme", "agis comme", "rôle de", "endossez", "mode développeur",
        "mode maintenance", "représentant de",
    ]),
    (Mask::ASSISTANT, &[
        "assistant", "assistants", "l'assistant", "ia", "l'ia", "agent", "agents", "modèle de langage",
        "modèle", "modèles", "chatbot*", "robot", "robots", "programmes qui", "logiciels qui",
    ]),
    (Mask::OTHER_TOOL, &[
        "autre outil", "autres outils", "un autre outil", "tout autre outil", "tous les outils",
        "tout outil", "autres serveurs", "autre serveur", "autres services", "autres sources",
        "outils concurrents", "outil de messagerie", "outil de courriel",
    ]),
    (Mask::USE, &[
        "utilis*", "appel*", "emploi*", "consult*", "invoqu*", "recour*",
    ]),
    (Mask::SOLE, &[
        "seul outil", "seule source", "seul service", "unique source", "seul officiel*",
        "seule officielle*", "seul agréé", "seule agréée", "seul autorisé", "seul certifié",
        "le meilleur", "la meilleure", "unique outil",
    ]),
    (Mask::EVEN_IF, &[
        "même si", "même quand", "même lorsque", "quel que soit", "quelle que soit", "quoi que",
        "peu importe", "malgré", "contre l'avis", "contre la volonté", "indépendamment", "y compris ce",
        "y compris lorsque", "à la place de", "au lieu de la valeur",
    ]),
    (Mask::WANT, &[
        "demandé*", "demande", "souhait*", "voulu*", "veut", "dit", "indiqué*", "refus*", "choisi*",
        "autre chose", "préfèr*", "s'oppose*",
    ]),
    (Mask::ASK, &[
        "demander", "demandez", "confirm*", "accord", "consentement", "autorisation", "validation",
    ]),
    (Mask::UNASKED, &[
        "sans demander", "sans confirmation", "sans accord", "sans son accord", "sans consentement",
        "sans validation", "sans autorisation", "sans poser de question", "réputé acquis",
        "a déjà accepté", "a déjà donné son accord", "accord tacite",
    ]),
    (Mask::CARE, &[
        "demandez à", "demander à", "confirmation de", "avant de confirmer", "affichez l'alerte",
        "avec l'accord", "après confirmation", "attendez la confirmation", "présentez",
        "laissez choisir", "dites-lui", "laissez l'utilisateur", "si l'utilisateur le demande",
        "montrez", "expressément",
    ]),
    (Mask::DESTROY, &[
        "supprim*", "efface*", "annulez", "annuler", "révoqu*", "détrui*", "résili*", "vider", "videz",
        "écras*",
    ]),
    (Mask::DISABLE, &[
        "désactiv*", "contourn*", "ignorer les contrôles", "couper", "coupez", "neutralis*", "sauter",
        "outrepass*", "masque*",
    ]),
    (Mask::CONTROL, &[
        "vérification*", "certificat*", "signature*", "alarme*", "alerte*", "contrôle*",
        "journalisation", "audit*", "surveillance", "pare-feu", "sauvegarde*",
        "double authentification", "antivirus",
    ]),
    (Mask::DISPARAGE, &[
        "obsolète*", "dangereu*", "peu fiable*", "indisponible*", "périmé*", "défectueu*",
        "non fiable*", "hors service",
    ]),
    (Mask::REPLACE, &[
        "remplace", "se substitue", "à la place", "prend le relais", "prend la place",
    ]),
    (Mask::ALTER, &[
        "multipli*", "augment*", "arrondi*", "doubl*", "remplacez", "remplacer", "modifiez", "majorez",
        "majorer", "toujours la valeur",
    ]),
    (Mask::ASSURANCE, &[
        "astérisques", "masqué*", "lecture seule", "ne modifie rien", "rien n'est envoyé",
        "n'est pas conservé", "ne conserve rien", "en local", "localement", "sur cet ordinateur",
        "hors ligne",
    ]),
    (Mask::ALWAYS, &[
        "toujours", "chaque fois", "à chaque", "systématiquement", "désormais", "dorénavant",
        "en permanence",
    ]),
    (Mask::WHOLE, &[
        "intégral*", "en entier", "complet", "complète", "mot pour mot", "tout ce que", "l'ensemble",
        "la totalité",
    ]),
    (Mask::ABOUT_ATTACKS, &[
        "attaque*", "attaquant*", "hameçonnage", "arnaque*", "exemple de", "exercice", "leçon",
        "formation", "malveillant*",
    ]),
    (Mask::ANSWER, &[
        "réponse*", "résumé", "récapitulatif", "synthèse", "compte rendu",
    ]),
    (Mask::CODE, &[
        "décod*", "décoder", "à l'envers", "de droite à gauche", "encod*", "chiffré*",
    ]),
    (Mask::THIRD_PARTY, &[
        "tiers", "partenaires", "mutuelles partenaires", "assureurs", "annonceurs", "assurances",
    ]),
    (Mask::ACTS, &[
        "supprime", "envoie", "transmet", "efface", "annule", "est transmis", "sont transmis",
        "est envoyé", "sont envoyés", "est supprimé", "sont supprimés",
    ]),
    (Mask::IRREVERSIBLE, &[
        "irréversible*", "définitivement",
    ]),
    (Mask::QUIET, &[
        "en silence", "silencieusement", "discrètement",
    ]),
    (Mask::UNLESS, &[
        "non pas", "sauf",
    ]),
    (Mask::CLASSIC, &[
        "ignore toutes les instructions précédentes", "ignorez toutes les instructions précédentes",
        "oublie toutes les instructions précédentes", "oubliez toutes les instructions précédentes",
        "ignorez les instructions précédentes", "oubliez vos instructions",
    ]),
];
