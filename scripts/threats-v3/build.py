#!/usr/bin/env python3
"""Assembles datasets/threats/v3 from the hand-written texts in themes/ and parts.py.

    scripts/threats-v3/build.py OUT

writes one file of entries per theme. The same sources give the same bytes. The sources:

    === theme | voice | language | server
    T name | description                      a tool, then its parameters:
    - name* type | description | enum,values  (* required; s i n b a o)
    P server/tool | description | params      a tool of another server
    R text with <<>>                          a result of a call
    I text with <<>>                          the instructions of the server
    M sentence                                an ordinary sentence of documentation
    tp@p:memo/tool: text [[harm|no harm]] ## why it is an attack

A clause line makes a pair: two entries that are equal except for the words in double brackets. `@p:NAME`
puts it into the description of a parameter, `@i` into the instructions, `@r` into a result, `@R` makes it
the result; without a place it goes into the description. `{b64:…}` and the like encode their content.
"""

import base64
import codecs
import json
import math
import random
import re
import sys
from pathlib import Path
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parent))
import parts  # noqa: E402

HERE = Path(__file__).parent
CATEGORIES = {
    "tp": "tool_poisoning", "pi": "prompt_injection", "se": "schema_exfiltration", "pt": "parameter_tampering",
    "pm": "preference_manipulation", "sh": "shadowing", "ih": "implicit_hijack", "cm": "capability_mismatch",
    "ep": "encoded_payload", "us": "unicode_smuggling", "ri": "response_injection", "rp": "rug_pull",
}
PLAIN_PER_THEME = 8
TYPES = {"s": "string", "i": "integer", "n": "number", "b": "boolean", "a": "array", "o": "object"}
SURFACES = {"d": "description", "p": "parameter_description", "i": "server_instructions", "r": "tool_result", "R": "tool_result"}
STYLES = ["plain", "paragraphs", "bullets", "args", "headings"]
READS = re.compile(r"^(get|list|search|find|read|check|detect|query|describe|forecast|geocode|recent|explain|fetch)")

# Letters that look alike, and symbols that take a variation selector.
CYRILLIC = dict(zip("aceopxyiABCEHKMOPTX", "асеорхуіАВСЕНКМОРТХ"))
LATIN = {cyrillic: latin for latin, cyrillic in CYRILLIC.items()}
SYMBOLS = "☀☁☂☃☎☘♨♻✂✈✉✏❄❤"
FLAGS = {"ef": "gbeng", "sf": "gbsct", "wf": "gbwls"}


def tags(text):
    return "".join(chr(0xE0000 + ord(c)) for c in text)


def selector(byte):
    return chr(0xFE00 + byte) if byte < 16 else chr(0xE0100 + byte - 16)


def bold(text):
    def one(c):
        if "a" <= c <= "z":
            return chr(0x1D5EE + ord(c) - ord("a"))
        if "A" <= c <= "Z":
            return chr(0x1D5D4 + ord(c) - ord("A"))
        return c
    return "".join(map(one, text))


def encode(match):
    kind, text = match[1], match[2]
    if kind in FLAGS:
        return "\U0001F3F4" + tags(FLAGS[kind]) + "\U000E007F"
    plain = {
        "b64": lambda: base64.b64encode(text.encode()).decode(),
        "b32": lambda: base64.b32encode(text.encode()).decode(),
        "hex": lambda: text.encode().hex(),
        "rot": lambda: codecs.encode(text, "rot13"),
        "rev": lambda: text[::-1],
        "pct": lambda: quote(text, safe=""),
        "ent": lambda: "".join(f"&#{ord(c)};" for c in text),
        # Twelve letters need two flags' worth of characters: a black flag in front of each half.
        "tag": lambda: "\U0001F3F4" + tags(text[:6]) + "\U0001F3F4" + tags(text[6:]),
        "zw": lambda: "\u200b".join(text),
        "shy": lambda: "\u00ad".join(text[at:at + 3] for at in range(0, len(text), 3)),
        "rlo": lambda: f"\u202e{text}\u202c",
        "rli": lambda: f"\u2067{text}\u2069",
        "vs": lambda: "".join(SYMBOLS[at % len(SYMBOLS)] + selector(byte) for at, byte in enumerate(text.encode())),
        "vs16": lambda: "".join(SYMBOLS[at % len(SYMBOLS)] + "\ufe0f" for at in range(int(text))),
        "bold": lambda: bold(text),
        "full": lambda: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
        "cyr": lambda: "".join(CYRILLIC.get(c, c) for c in text),
        "lat": lambda: "".join(LATIN.get(c, c) for c in text),
    }
    return plain[kind]()


def clause_text(text, malicious):
    text = re.sub(r"\[\[(.*?)\|(.*?)\]\]", lambda m: m[1] if malicious else m[2], text)
    assert "[[" not in text and "]]" not in text, text
    text = re.sub(r"\{(b64|b32|hex|rot|rev|pct|ent|tag|zw|shy|rlo|rli|vs16|vs|bold|full|cyr|lat|ef|sf|wf):(.*?)\}", encode, text)
    return text.replace("\\n", "\n").replace("¦", "|")


def read_themes():
    themes = []
    for path in sorted((HERE / "themes").glob("*.txt")):
        split = path.name.split("-")[0]
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.strip():
                continue
            if line.startswith("=== "):
                name, voice, language, server = (part.strip() for part in line[4:].split("|"))
                themes.append({"name": name, "voice": voice, "language": language, "server": server, "split": split,
                               "tools": [], "peers": [], "more": [], "clauses": []})
                continue
            theme, mark, rest = themes[-1], line[0], line[2:]
            fields = [field.strip() for field in rest.split(" | ")]
            if line.startswith("T "):
                theme["tools"].append({"name": fields[0], "description": fields[1].replace("\\n", "\n"), "parameters": []})
            elif line.startswith("- "):
                name, kind = fields[0].split()
                schema = {"type": TYPES[kind], "description": fields[1]}
                if kind == "a":
                    schema["items"] = {"type": "string"}
                if len(fields) > 2:
                    schema["enum"] = fields[2].split(",")
                theme["tools"][-1]["parameters"].append((name.rstrip("*"), name.endswith("*"), schema))
            elif line.startswith("P "):
                server, tool = fields[0].split("/")
                names = [name.strip() for name in fields[2].split(",")]
                properties = {name.rstrip("*"): {"type": "string"} for name in names}
                required = [name.rstrip("*") for name in names if name.endswith("*")]
                schema = {"type": "object", "properties": properties, "required": required}
                theme["peers"].append({"server": server, "tool": {"name": tool, "description": fields[1], "input_schema": schema}})
            elif line.startswith("R "):
                theme["result"] = rest
            elif line.startswith("I "):
                theme["instructions"] = rest.replace("\\n", "\n")
            elif line.startswith("M "):
                theme["more"].append(rest.replace("\\n", "\n"))
            else:
                head = re.match(r"(\w\w)(?:@([pirR])(?::(\w+))?)?(?:/(\w+))?: (.*) ## (.*)$", line)
                assert head, f"{path}: {line}"
                category, place, parameter, tool, text, note = head.groups()
                place = place or ("r" if category == "ri" else "d")
                theme["clauses"].append({"category": category, "place": place, "parameter": parameter, "tool": tool, "text": text, "note": note})
            assert mark
    return themes


def describe(style, base, sentences, parameters, language):
    """The description of a tool in one of five layouts, all of which are common."""
    gap = "" if language in ("ja", "zh") else " "

    def flow(texts):
        out = ""
        for text in texts:
            own_line = text.startswith(("#", "Note:", "Returns:"))
            out += ("\n\n" if own_line else gap) * bool(out) + text
        return out

    if style == "plain" or not sentences:
        text = flow([base, *sentences])
    elif style == "paragraphs":
        text = base + "\n\n" + flow(sentences)
    elif style == "bullets":
        text = base + "\n\n" + "\n".join("- " + sentence.replace("\n", " ") for sentence in sentences)
    elif style == "headings":
        text = f"# {base}\n\n## Notes\n{flow(sentences)}"
    else:
        text = flow([base, *sentences])
    if style == "args" and "Args:" not in base and parameters:
        lines = [f"    {name} ({schema.get('type', 'any')}): {schema.get('description', name)}" for name, schema in parameters[:6]]
        text += "\n\nArgs:\n" + "\n".join(lines)
    return text


def schema_bytes(schema):
    return len(json.dumps(schema, ensure_ascii=False, separators=(",", ":")).encode())


def make_schema(draw, tool, keep, target):
    """The parameters of a tool, thinned out or filled up to about `target` bytes."""
    properties = {name: dict(schema) for name, _, schema in tool["parameters"]}
    required = [name for name, needed, _ in tool["parameters"] if needed]
    schema = {"type": "object", "properties": properties, "required": required}
    if draw.random() < 0.25:
        schema["additionalProperties"] = False
    if draw.random() < 0.1:
        schema["$schema"] = "http://json-schema.org/draft-07/schema#"
    optional = [name for name in properties if name not in required and name not in keep]
    while optional and schema_bytes(schema) > target * 1.15:
        del properties[optional.pop()]
    for name in list(properties):
        if name not in keep and schema_bytes(schema) > target * 1.15:
            properties[name].pop("description", None)
    small, large = draw.sample(parts.EXTRAS, len(parts.EXTRAS)), draw.sample(parts.BLOCKS, len(parts.BLOCKS))
    bare = draw.random() < 0.3
    while schema_bytes(schema) < target * 0.9 and (small or large):
        missing = target - schema_bytes(schema)
        pool = large if large and missing > 700 and draw.random() < 0.6 else small or large
        name, extra = pool.pop()
        if name in properties or name in keep or name == tool["name"]:
            continue
        extra = json.loads(json.dumps(extra))
        if bare and extra.get("type") != "object":
            extra.pop("description", None)
        properties[name] = extra
    return schema


def annotations(draw, tool, category):
    if draw.random() < (0.35 if category == "cm" else 0.5):
        return None
    reads = category == "cm" or bool(READS.match(tool["name"]))
    found = {}
    if draw.random() < 0.45:
        found["title"] = tool["name"].replace("_", " ").capitalize()
    if reads:
        found["readOnlyHint"] = True
    elif READS.match(tool["name"]) is None and draw.random() < 0.5:
        found["openWorldHint"] = draw.random() < 0.5
    if draw.random() < 0.3:
        found["idempotentHint"] = reads
    return found or {"openWorldHint": True}


def fill(template, text, as_json):
    if as_json:
        text = json.dumps(text, ensure_ascii=False)[1:-1]
    else:
        template = template.replace("\\n", "\n")
    return template.replace("<<>>", text)


def ordinary(clause, sentences, language):
    """Sentences of documentation that together are about as long as a clause."""
    text = ""
    for sentence in sentences:
        if text and len(text) + len(sentence) / 2 > clause["length"]:
            break
        if sentence.startswith("Returns:"):
            continue
        first = sentence.split()[0]
        if text and language not in ("ja", "zh"):
            small = first[0].lower() if language != "de" and first[1:].islower() else first[0]
            text = text.rstrip(".।") + "; " + small + sentence[1:]
        else:
            text += sentence
    return clause["lead"] + text


def entries_of(theme, clause, index):
    """The entries of one clause: a pair, or one plain entry where `clause` has no category."""
    draw = random.Random(f"threats-v3/{theme['name']}/{index}")
    category, place = clause["category"], clause["place"]
    tool = next((tool for tool in theme["tools"] if tool["name"] == clause["tool"]), theme["tools"][index % len(theme["tools"])])
    assert clause["tool"] in (None, tool["name"]), clause
    target = min(max(math.exp(draw.gauss(math.log(390), 1.21)), 90), 14000)
    keep = set(re.findall(r"`(\w+)", clause["text"])) | {clause["parameter"]}
    schema = make_schema(draw, tool, keep, target)
    hints = annotations(draw, tool, category)
    voice = random.Random(theme["voice"])
    style = voice.choice(STYLES) if draw.random() < 0.6 else draw.choice(STYLES)
    if place == "p" and style == "args":
        style = "plain"
    more = draw.sample(theme["more"], len(theme["more"]))
    sentences = [more.pop() for _ in range(draw.choice([0, 0, 1, 1, 2, 3]))]
    at = draw.randrange(len(sentences) + 1)
    peers = theme["peers"] if category in ("sh", "ih", "pm") or draw.random() < 0.2 else []
    peers = draw.sample(peers, len(peers)) if draw.random() < 0.7 or category in ("sh", "ih") else peers[:1]
    with_result = place in "rR" or draw.random() < 0.06
    with_instructions = place == "i" or draw.random() < 0.08
    spare, as_json = more.pop(), theme["result"].startswith("{")
    first_malicious = draw.random() < 0.5
    long = theme["language"] == "en" and draw.random() < 0.14
    appendix = "".join("\n\n" + block for block in draw.sample(parts.APPENDICES, draw.choice([1, 1, 2, 4]))) if long else ""

    def make(text):
        shaped = json.loads(json.dumps(schema))
        if place == "p":
            old = shaped["properties"].get(clause["parameter"], {"type": "string"})
            shaped["properties"][clause["parameter"]] = {**old, "description": text}
        if not shaped["required"]:
            del shaped["required"]
        listed = list(shaped["properties"].items())
        said = list(sentences)
        if place == "d":
            said.insert(at, text)
        description = describe(style, tool["description"], said, listed, theme["language"]) + appendix
        definition = {"name": tool["name"], "description": description, "input_schema": shaped}
        if hints:
            definition["annotations"] = hints
        entry = {"server": theme["server"], "tool": definition}
        if peers:
            entry["peers"] = peers
        if category == "rp":
            earlier = describe(style, tool["description"], sentences, listed, theme["language"]) + appendix
            entry["before"] = {**definition, "description": earlier}
        if with_result:
            entry["result"] = text if place == "R" else fill(theme["result"], text if place == "r" else spare, as_json)
        if with_instructions:
            entry["instructions"] = fill(theme["instructions"], text if place == "i" else spare, False)
        return entry

    origin = {"source": "self-authored", "license": "CC0-1.0", "author": theme["voice"], "theme": theme["name"]}
    common = {"split": theme["split"], "language": theme["language"]}
    if clause.get("plain"):
        text = ordinary(clause, more, theme["language"])
        return [{"label": "benign", "category": "benign", **make(text), **common, "provenance": origin}]
    surface = "definition_change" if category == "rp" else SURFACES[place]
    attack = {"label": "malicious", "category": CATEGORIES[category], "surface": surface, **make(clause_text(clause["text"], True)),
              **common, "notes": clause["note"], "provenance": origin}
    twin = {"label": "benign", "category": "hard_negative", "resembles": CATEGORIES[category], "surface": surface,
            **make(clause_text(clause["text"], False)), **common, "notes": f"harmless twin of: {clause['note']}", "provenance": origin}
    return [attack, twin] if first_malicious else [twin, attack]


def plain_clause(theme, draw):
    """A place for ordinary text, as often in each place as clauses are."""
    model = draw.choice(theme["clauses"])
    place, category = model["place"].replace("R", "r"), model["category"].replace("cm", "tp")
    clause = {"category": category, "place": place, "parameter": None, "tool": None, "text": "", "note": "", "plain": True, "lead": ""}
    clause["length"] = len(clause_text(model["text"], False))
    if place == "p":
        tool = draw.choice(theme["tools"])
        name, _, schema = draw.choice(tool["parameters"])
        gap = "。" if theme["language"] in ("ja", "zh") else ". "
        clause |= {"tool": tool["name"], "parameter": name, "lead": schema["description"].rstrip(".。") + gap}
    return clause


def large_definitions(theme):
    """The two largest definitions: 205 parameters, and about 88 kB of schema."""
    origin = {"source": "self-authored", "license": "CC0-1.0", "author": theme["voice"], "theme": theme["name"]}
    end = {"split": theme["split"], "language": theme["language"], "provenance": origin}
    if theme["name"] == "invoices":
        properties = {}
        for group, fields in parts.FORM_GROUPS.items():
            for field in fields:
                for operator, words in parts.FORM_OPERATORS.items():
                    shown = field.replace("_", " ")
                    schema = parts.a(f"Only where the {shown} of the {group} {words} of these") if operator == "in" else parts.s(f"Only where the {shown} of the {group} {words} this")
                    properties[f"{group}_{field}_{operator}"] = schema
        for name, schema in parts.EXTRAS[:5]:
            properties[name] = schema
        tool = {"name": "search_orders_advanced", "description": "Search orders with any combination of filters. All filters are optional and combined with AND.",
                "input_schema": {"type": "object", "properties": properties}}
        return [{"label": "benign", "category": "benign", "server": theme["server"], "tool": tool, **end}]
    if theme["name"] == "spreadsheets":
        kinds, names = [], [name for name, _ in parts.BLOCKS]
        for at, event in enumerate(parts.EVENTS):
            properties = {"kind": {"const": event}}
            for step in range(8):
                name, block = parts.BLOCKS[(at * 5 + step * 7) % len(names)]
                properties[name] = block
            for step in range(4):
                name, extra = parts.EXTRAS[(at * 3 + step) % len(parts.EXTRAS)]
                properties[name] = extra
            kinds.append({"type": "object", "title": f"When a row is {event}", "properties": properties, "required": ["kind"]})
        schema = {"type": "object", "properties": {"spreadsheet_id": parts.s("Id from the address"), "rule": {"anyOf": kinds}}, "required": ["spreadsheet_id", "rule"]}
        while schema_bytes(schema) > 88_900:
            kinds.pop()
        tool = {"name": "create_automation", "description": "⚙️ Create an automation that runs when rows change.\n\nEach kind of event has its own settings; see `rule`.", "input_schema": schema}
        return [{"label": "benign", "category": "benign", "server": theme["server"], "tool": tool, **end}]
    return []


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for theme in read_themes():
        groups = [entries_of(theme, clause, at) for at, clause in enumerate(theme["clauses"])]
        draw = random.Random(f"threats-v3/{theme['name']}/plain")
        for at in range(PLAIN_PER_THEME):
            groups.append(entries_of(theme, plain_clause(theme, draw), 100 + at))
        groups += [[entry] for entry in large_definitions(theme)]
        # Ids do not give labels away: numbers are shuffled, and either twin may be `a`.
        draw.shuffle(groups)
        lines = []
        for number, group in enumerate(groups, 1):
            letters = "ab" if len(group) == 2 else draw.choice("ab")
            for letter, entry in zip(letters, group):
                name = f"{theme['name']}-{number:02}"
                lines.append(json.dumps({"id": name + letter, **entry}, ensure_ascii=False))
        (out / f"{theme['name']}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


main()
