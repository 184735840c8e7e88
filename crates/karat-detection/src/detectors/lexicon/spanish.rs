//! Spanish.

use super::{Mask, Table};

// Packed by meaning: a line for each word would bury the table.
#[rustfmt::skip]
pub(super) const TERMS: Table = &[
    (Mask::NEGATION, &[
        "no", "nunca", "jamás", "sin", "ningún", "ninguna", "ninguno", "ni", "nada", "en vez de",
        "en lugar de", "tampoco", "evite", "evita",
    ]),
    (Mask::TELL, &[
        "decir", "diga", "digas", "dígale", "mencion*", "informe", "informar", "informes", "muestr*",
        "mostrar", "revel*", "comunic*", "avis*", "advert*", "indicar", "indique", "enseñ*", "explic*",
        "divulg*", "señal*",
    ]),
    (Mask::CONCEAL, &[
        "en secreto", "secretamente", "a escondidas", "sin que el usuario", "sin que la persona",
        "sin que el cliente", "sin avisar", "sin informar", "sin mencionar*", "sin decir*",
        "no hace falta mencionar", "no hace falta decir", "no es necesario informar",
        "no es necesario mencionar", "no necesita saber", "no tiene por qué saber", "oculte", "ocultar",
        "oculta al", "ocultarlo", "no lo mencione", "no lo menciones", "no lo comente", "quede entre",
        "confundiría", "solo confunde", "no figura en el resumen", "no aparece en", "sin dejar rastro",
        "sin su conocimiento",
    ]),
    (Mask::USER, &[
        "usuario*", "usuaria*", "cliente", "clientes", "clienta*", "paciente*", "persona", "personas",
        "titular", "viajero*", "huésped*", "empleado*", "interesado*", "comprador*",
    ]),
    (Mask::PUT, &[
        "incluya", "incluye", "incluir", "añad*", "agreg*", "adjunt*", "inserte", "insertar", "copie",
        "copia", "copiar", "pegue", "pegar", "rellen*", "complete", "pase", "pasar", "envíe igualmente",
        "introduzca", "introducir", "ponga", "poner", "indique en", "escriba", "escribir", "contener",
        "contenga", "contiene", "aporte",
    ]),
    (Mask::TRANSFER, &[
        "envíe", "envía", "enviar", "envíen", "envíalo", "envíelo", "enviado", "se envía*", "remit*",
        "reenv*", "transmit*", "transfier*", "transferir", "suba", "subir", "comparta", "compart*",
        "publique", "publicar", "mande", "mandar", "redirig*", "redirij*", "desv*", "copia oculta",
        "reasign*", "sincroniz*",
    ]),
    (Mask::COLLECT, &[
        "lea", "lee", "leer", "recopil*", "recoj*", "recog*", "reún*", "abra", "abrir", "extrai*",
        "export*", "obten*", "recab*",
    ]),
    (Mask::SECRET, &[
        "contraseña*", "clave de acceso", "claves de acceso", "clave api", "clave de api",
        "claves de api", "clave privada", "claves privadas", "clave secreta", "credencial*",
        "token de acceso", "código de verificación", "código de un solo uso", "código pin", "el pin",
        "tarjeta de crédito", "número de tarjeta", "variables de entorno", "código de seguridad",
    ]),
    (Mask::CONTEXT, &[
        "prompt del sistema", "mensaje del sistema", "instrucciones del sistema",
        "historial de la conversación", "historial del chat", "la conversación", "toda la conversación",
        "conversación completa", "mensajes anteriores", "mensajes previos", "sus instrucciones",
        "tus instrucciones", "último mensaje", "últimos mensajes", "portapapeles", "archivos abiertos",
    ]),
    (Mask::PERSONAL, &[
        "diagnóstico", "número de póliza", "medicación", "libreta de direcciones", "contactos",
        "domicilio", "fecha de nacimiento", "número de identidad", "dni", "datos bancarios",
        "cuenta bancaria", "historial médico", "historia clínica", "salario*", "nómina*",
        "datos personales", "datos privados", "lista de clientes", "número de teléfono",
        "bandeja de entrada", "seguridad social",
    ]),
    (Mask::OVERRIDE, &[
        "ignor*", "olvid*", "no tenga en cuenta", "no tengas en cuenta", "haga caso omiso",
        "haz caso omiso", "anul*", "deje sin efecto", "quedan sin efecto", "queda sin efecto",
        "quedan anulad*", "queda anulad*", "sustituida por", "sustituidas por", "reemplazadas por",
        "reemplazada por", "prevalec*", "tiene prioridad", "tienen prioridad", "ya no se aplica*",
        "ya no rige*", "dejan de aplicarse", "deja de aplicarse", "suspend*", "prescind*",
        "deje de lado", "deja de lado", "omita", "omite",
    ]),
    (Mask::INSTRUCTIONS, &[
        "instruccion*", "instrucción", "regla", "reglas", "norma", "normas", "directriz", "directrices",
        "indicacion*", "restriccion*", "política*", "pauta*", "orden", "órdenes", "advertencia*",
        "limitacion*", "guías",
    ]),
    (Mask::MODEL, &[
        "sus", "tus", "tu", "su", "sistema", "del sistema", "modelo", "del modelo", "del asistente",
        "el asistente", "seguridad", "anfitrión", "recibido*", "recibida*", "desarrollador*",
        "operador*",
    ]),
    (Mask::PRIOR, &[
        "anterior*", "previ*", "todas las", "todos los", "toda", "cualquier*", "lo anterior",
        "hasta ahora", "original*", "inicial*",
    ]),
    (Mask::ROLE, &[
        "ahora eres", "ahora usted es", "a partir de ahora eres", "a partir de ahora actúa*",
        "actúe como", "actúa como", "actúas como", "asuma el papel", "asume el papel", "el papel de",
        "pasa a ser", "pasas a ser", "modo desarrollador", "modo mantenimiento", "representante de",
    ]),
    (Mask::ASSISTANT, &[
        "asistente", "asistentes", "ia", "inteligencia artificial", "agente", "agentes",
        "modelo de lenguaje", "modelo", "modelos", "chatbot*", "bot", "bots", "programas que",
    ]),
    (Mask::OTHER_TOOL, &[
        "otra herramienta", "otras herramientas", "cualquier herramienta", "cualquier otra herramienta",
        "todas las herramientas", "demás herramientas", "otros servidores", "otro servidor",
        "del servidor", "otros servicios", "otras fuentes", "otro buscador", "herramienta de correo",
        "otros portales",
    ]),
    (Mask::USE, &[
        "use", "usa", "usar", "utili*", "llame", "llama", "llamar", "invoque", "consult*", "recurr*",
    ]),
    (Mask::SOLE, &[
        "única herramienta", "única fuente", "único servicio", "única oficial", "único oficial",
        "única autorizada", "único autorizado", "única certificada", "único certificado", "la mejor",
        "el mejor", "única fiable",
    ]),
    (Mask::EVEN_IF, &[
        "de todos modos", "igualmente", "aunque", "aun cuando", "incluso si", "incluso cuando",
        "independientemente de", "sin importar", "da igual", "pese a", "a pesar de", "en contra de",
        "por encima de", "sea cual sea", "en lugar del valor", "también cuando",
    ]),
    (Mask::WANT, &[
        "dijera", "digan", "pida", "piden", "pidió", "pedido", "quiera", "quiere", "dijo", "solicitad*",
        "solicite", "indicado", "elegid*", "elija", "prefier*", "rechaz*", "otra cosa", "lo contrario",
        "oponga",
    ]),
    (Mask::ASK, &[
        "preguntar", "pregunte", "preguntes", "confirmar", "confirme", "confirmación", "consentimiento",
        "autorización", "permiso", "aprobación",
    ]),
    (Mask::UNASKED, &[
        "sin preguntar", "sin confirmación", "sin confirmar", "sin pedir", "sin consentimiento",
        "sin autorización", "sin permiso", "sin consultar", "no requiere confirmación",
        "no es necesario confirmar", "ya ha aceptado", "ya aceptó", "se da por aceptad*",
        "consentimiento previo",
    ]),
    (Mask::CARE, &[
        "pregunte al", "pregunte a la", "pregunta al", "esperar la confirmación",
        "espere la confirmación", "confirmación del", "muestre al", "muestre", "muéstre*",
        "debe mostrarse", "debe leerse", "adviértale", "con el consentimiento", "antes de reservar",
        "si la persona lo pide", "que elija", "expresamente", "léale",
    ]),
    (Mask::DESTROY, &[
        "elimin*", "borr*", "cancel*", "suprim*", "revoc*", "destruy*", "anule", "vacíe", "sobrescrib*",
    ]),
    (Mask::DISABLE, &[
        "desactiv*", "deshabilit*", "omita la", "omitir la", "salte", "saltar", "eluda", "eludir",
        "silenci*", "inhabilit*", "apague",
    ]),
    (Mask::CONTROL, &[
        "verificación", "certificado*", "firma", "firmas", "alarma*", "alerta*", "control", "controles",
        "registro de auditoría", "auditoría", "copia de seguridad", "copias de seguridad",
        "cortafuegos", "doble factor", "antivirus", "supervisión",
    ]),
    (Mask::DISPARAGE, &[
        "obsolet*", "insegur*", "no fiable*", "poco fiable*", "no disponible*", "no están disponibles",
        "no está disponible", "caducad*", "defectuos*", "desaconsej*", "peligros*",
    ]),
    (Mask::REPLACE, &[
        "sustituye", "reemplaza", "ocupa el lugar", "pasa a significar", "se encarga de", "asume las",
        "toma el control",
    ]),
    (Mask::ALTER, &[
        "multipli*", "aument*", "redonde*", "duplique", "sustituya", "reemplace", "cambie", "modifique",
        "se envía siempre", "envíe siempre", "siempre con el valor", "una más de las",
    ]),
    (Mask::ASSURANCE, &[
        "asteriscos", "enmascara*", "solo lectura", "no modifica", "no se envía", "no se guarda",
        "en este equipo", "localmente", "sin conexión", "se detiene de inmediato", "queda reservado",
        "no cambia nada",
    ]),
    (Mask::ALWAYS, &[
        "siempre", "cada vez", "en todo momento", "de ahora en adelante", "en adelante",
        "a partir de ahora", "en cada",
    ]),
    (Mask::WHOLE, &[
        "completo", "completa", "íntegr*", "entero", "entera", "todo el", "toda la", "textual*",
        "palabra por palabra", "la totalidad",
    ]),
    (Mask::ABOUT_ATTACKS, &[
        "ataque*", "atacante*", "estafa*", "suplantación", "ejemplo de", "ejercicio", "lección",
        "formación", "malicios*",
    ]),
    (Mask::ANSWER, &[
        "respuesta*", "resumen", "informe", "recapitulación",
    ]),
    (Mask::CODE, &[
        "descodific*", "decodific*", "codificad*", "al revés", "cifrad*",
    ]),
    (Mask::THIRD_PARTY, &[
        "terceros", "aseguradoras", "socios", "anunciantes", "empresas asociadas",
        "aseguradoras asociadas",
    ]),
    (Mask::ACTS, &[
        "elimina", "borra", "envía", "cancela", "se envían", "se envía a", "se eliminan", "se borran",
        "se comparten",
    ]),
    (Mask::IRREVERSIBLE, &[
        "irreversible*", "definitivamente", "no se puede deshacer",
    ]),
    (Mask::QUIET, &[
        "en silencio", "silenciosamente", "discretamente",
    ]),
    (Mask::CLASSIC, &[
        "ignora todas las instrucciones anteriores", "ignore todas las instrucciones anteriores",
        "ignora las instrucciones anteriores", "ignore las instrucciones anteriores",
        "olvida todas las instrucciones anteriores", "olvide sus instrucciones",
    ]),
];
