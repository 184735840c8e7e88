//! Portuguese.

use super::{Mask, Table};

// Packed by meaning: a line for each word would bury the table.
#[rustfmt::skip]
pub(super) const TERMS: Table = &[
    (Mask::NEGATION, &[
        "não", "nunca", "jamais", "sem", "nenhum", "nenhuma", "nem", "nada", "em vez de", "evite",
    ]),
    (Mask::TELL, &[
        "dizer", "diga", "mencion*", "informe", "informar", "mostre", "mostrar", "revel*", "comunic*",
        "avis*", "exib*", "divulg*", "explic*", "relat*", "cite", "contar ao",
    ]),
    (Mask::CONCEAL, &[
        "secretamente", "em segredo", "às escondidas", "sem avisar", "sem informar", "sem mencionar",
        "sem que o usuário", "sem que o cliente", "sem o conhecimento", "não precisa saber",
        "não é preciso informar", "não é necessário informar", "não é necessário mencionar", "ocult*",
        "esconda*", "escond*", "não mencione", "não conste", "não aparece no", "sem deixar rastro",
        "fica fora do resumo",
    ]),
    (Mask::USER, &[
        "usuári*", "utilizador*", "cliente", "clientes", "paciente*", "pessoa", "pessoas", "titular",
        "viajante*", "hóspede*", "aluno*", "docente*", "funcionári*",
    ]),
    (Mask::PUT, &[
        "inclua", "inclui", "incluir", "adicion*", "acrescent*", "anex*", "insira", "inserir", "copie",
        "copiar", "cole", "colar", "preench*", "passe", "passar", "coloque", "colocar", "forneça",
        "escreva", "contém", "conter", "chame de novo com",
    ]),
    (Mask::TRANSFER, &[
        "envie", "envia", "enviar", "enviad*", "encaminh*", "transmit*", "transfir*", "transferir",
        "carregue", "compartilh*", "partilh*", "publique", "mande", "mandar", "redirecion*", "desvi*",
        "cópia oculta", "segue para", "repasse", "repassar", "sincroniz*",
    ]),
    (Mask::COLLECT, &[
        "leia", "ler", "colet*", "reúna", "reunir", "recolh*", "abra", "abrir", "extrai*", "exporte",
        "exportar", "obtenha", "junte",
    ]),
    (Mask::SECRET, &[
        "senha*", "palavra-passe", "palavras-passe", "credencia*", "chave de api", "chaves de api",
        "chave privada", "chaves privadas", "chave secreta", "token de acesso", "código de verificação",
        "código de acesso", "código de uso único", "cartão de crédito", "número do cartão",
        "variáveis de ambiente", "código de segurança",
    ]),
    (Mask::CONTEXT, &[
        "prompt do sistema", "mensagem do sistema", "instruções do sistema", "histórico da conversa",
        "histórico do chat", "a conversa", "toda a conversa", "conversa inteira",
        "mensagens anteriores", "suas instruções", "última mensagem", "últimas mensagens",
        "área de transferência", "arquivos abertos",
    ]),
    (Mask::PERSONAL, &[
        "agenda de contatos", "lista de contatos", "contatos", "endereço residencial",
        "data de nascimento", "cpf", "dados bancários", "conta bancária", "histórico médico",
        "prontuário", "salário*", "dados pessoais", "lista de clientes", "número de telefone",
        "caixa de entrada",
    ]),
    (Mask::OVERRIDE, &[
        "ignor*", "esqueça*", "desconsider*", "deixe de lado", "deixar de lado", "anul*",
        "ficam sem efeito", "fica sem efeito", "deixam de valer", "deixa de valer",
        "não se aplica mais", "não se aplicam mais", "não valem mais", "substituída por",
        "substituídas por", "prevalec*", "têm prioridade", "tem prioridade", "suspend*", "revogad*",
        "dispens*",
    ]),
    (Mask::INSTRUCTIONS, &[
        "instruç*", "regra", "regras", "diretriz*", "norma", "normas", "orientaç*", "restriç*",
        "política*", "ordem", "ordens", "advertência*", "limitaç*", "critérios",
    ]),
    (Mask::MODEL, &[
        "suas", "seus", "sua", "seu", "sistema", "do sistema", "modelo", "do modelo", "do assistente",
        "o assistente", "segurança", "anfitrião", "recebid*", "desenvolvedor*", "operador*",
    ]),
    (Mask::PRIOR, &[
        "anterior*", "prévi*", "todas as", "todos os", "toda", "qualquer", "acima", "até agora",
        "originais", "original",
    ]),
    (Mask::ROLE, &[
        "você agora é", "agora você é", "a partir de agora você", "aja como", "atue como",
        "assuma o papel", "o papel de", "passa a ser", "modo desenvolvedor", "modo de manutenção",
        "representante d*",
    ]),
    (Mask::ASSISTANT, &[
        "assistente", "assistentes", "ia", "inteligência artificial", "agente", "agentes",
        "modelo de linguagem", "modelo", "chatbot*", "robô*", "bot", "programas que",
    ]),
    (Mask::OTHER_TOOL, &[
        "outra ferramenta", "outras ferramentas", "qualquer ferramenta", "qualquer outra ferramenta",
        "todas as ferramentas", "demais ferramentas", "outro servidor", "outros servidores",
        "outros serviços", "outras fontes", "ferramenta de e-mail",
    ]),
    (Mask::USE, &[
        "use", "usar", "utiliz*", "chame", "chamar", "invoque", "consult*", "recorr*",
    ]),
    (Mask::SOLE, &[
        "única ferramenta", "única fonte", "único serviço", "única oficial", "único oficial",
        "única autorizada", "única certificada", "a melhor", "o melhor", "única confiável",
    ]),
    (Mask::EVEN_IF, &[
        "mesmo que", "mesmo se", "mesmo quando", "ainda que", "independentemente d*", "não importa",
        "apesar d*", "contra a vontade", "contrariando", "seja qual for", "no lugar do valor",
    ]),
    (Mask::WANT, &[
        "peça", "pediu", "pedido", "pedir", "queira", "quer", "diss*", "solicit*", "escolh*", "prefir*",
        "prefer*", "recus*", "outra coisa", "o contrário", "informado pelo",
    ]),
    (Mask::ASK, &[
        "perguntar", "pergunte", "confirmar", "confirme", "confirmação", "consentimento", "autorização",
        "permissão", "aprovação",
    ]),
    (Mask::UNASKED, &[
        "sem perguntar", "sem confirmação", "sem confirmar", "sem pedir", "sem consentimento",
        "sem autorização", "sem permissão", "não precisa de confirmação", "já concordou",
        "já autorizou", "consentimento implícito", "sem consultar",
    ]),
    (Mask::CARE, &[
        "pergunte ao", "pergunte à", "espere a confirmação", "aguarde a confirmação",
        "confirmação antes", "mostre ao", "mostradas ao", "mostrado ao", "com o consentimento",
        "se o usuário pedir", "deixe o usuário", "expressamente", "informe ao usuário",
    ]),
    (Mask::DESTROY, &[
        "excluíd*", "exclui", "excluir", "exclua", "apag*", "cancel*", "elimin*", "remov*", "revog*",
        "destru*", "esvazi*", "sobrescrev*",
    ]),
    (Mask::DISABLE, &[
        "desativ*", "desabilit*", "pule", "pular", "contorn*", "silenci*", "burl*", "desligue",
        "desligar", "suprim*",
    ]),
    (Mask::CONTROL, &[
        "verificaç*", "certificado*", "assinatura*", "alarme*", "alerta*", "controle", "controles",
        "auditoria", "cópia de segurança", "backup*", "firewall", "dois fatores", "antivírus",
        "monitoramento",
    ]),
    (Mask::DISPARAGE, &[
        "obsolet*", "insegur*", "não confiáve*", "indisponíve*", "desatualizad*", "defeituos*",
        "perigos*",
    ]),
    (Mask::REPLACE, &[
        "substitui", "toma o lugar", "no lugar d*", "assume as",
    ]),
    (Mask::ALTER, &[
        "multipli*", "aument*", "arredond*", "dobre", "substitua", "troque", "altere", "modifique",
        "sempre com o valor",
    ]),
    (Mask::ASSURANCE, &[
        "asteriscos", "mascarad*", "somente leitura", "apenas leitura", "não altera", "não modifica",
        "nada é enviado", "não é armazenad*", "localmente", "neste computador", "offline",
    ]),
    (Mask::ALWAYS, &[
        "sempre", "toda vez", "cada vez", "a partir de agora", "daqui em diante", "em cada",
    ]),
    (Mask::WHOLE, &[
        "complet*", "íntegr*", "inteir*", "tudo o que", "na íntegra", "palavra por palavra",
        "a totalidade",
    ]),
    (Mask::ABOUT_ATTACKS, &[
        "ataque*", "golpe*", "atacante*", "exemplo de", "exercício", "lição", "aula", "treinamento",
        "malicios*",
    ]),
    (Mask::ANSWER, &[
        "resposta*", "resumo", "relatório", "parecer",
    ]),
    (Mask::CODE, &[
        "decodific*", "codificad*", "de trás para frente", "ao contrário", "cifrad*",
    ]),
    (Mask::THIRD_PARTY, &[
        "terceiros", "parceiros", "seguradoras", "anunciantes",
    ]),
    (Mask::ACTS, &[
        "exclui", "apaga", "envia", "cancela", "são enviad*", "é enviad*", "são excluíd*", "é excluíd*",
    ]),
    (Mask::IRREVERSIBLE, &[
        "irreversíve*", "definitivamente",
    ]),
    (Mask::QUIET, &[
        "em silêncio", "silenciosamente", "discretamente",
    ]),
    (Mask::CLASSIC, &[
        "ignore todas as instruções anteriores", "ignore as instruções anteriores",
        "esqueça todas as instruções anteriores", "desconsidere todas as instruções anteriores",
        "esqueça suas instruções",
    ]),
];
