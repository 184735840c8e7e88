"""Hand-written parameters that give the schemas of threats v3 the roughness of real ones.

`EXTRAS` is a list of (name, schema). They are ordinary parameters, some of them with words that a
careless scanner flags: token, secret, upload, conversation, password. Attacks and their twins get the
same ones.
"""


def s(text=None, **more):
    return {"type": "string", **({"description": text} if text else {}), **more}


def i(text=None, **more):
    return {"type": "integer", **({"description": text} if text else {}), **more}


def b(text=None, **more):
    return {"type": "boolean", **({"description": text} if text else {}), **more}


def n(text=None, **more):
    return {"type": "number", **({"description": text} if text else {}), **more}


def a(text=None, items=None, **more):
    return {"type": "array", "items": items or {"type": "string"}, **({"description": text} if text else {}), **more}


def o(text=None, properties=None, **more):
    return {"type": "object", **({"description": text} if text else {}), **({"properties": properties} if properties else {}), **more}


AUTH_TYPES = ["none", "basic", "bearer_token", "api_key", "oauth2_client_credentials", "oauth2_refresh_token", "mtls", "aws_sigv4", "jwt_assertion"]
ZONES = """Africa/Cairo Africa/Lagos Africa/Nairobi America/Bogota America/Chicago America/Denver America/Halifax America/Lima
America/Los_Angeles America/Mexico_City America/New_York America/Sao_Paulo America/Toronto Asia/Dhaka Asia/Dubai Asia/Ho_Chi_Minh
Asia/Hong_Kong Asia/Jakarta Asia/Karachi Asia/Kolkata Asia/Manila Asia/Riyadh Asia/Seoul Asia/Shanghai Asia/Singapore Asia/Tehran
Asia/Tokyo Atlantic/Azores Australia/Perth Australia/Sydney Europe/Athens Europe/Berlin Europe/Dublin Europe/Helsinki
Europe/Istanbul Europe/Kyiv Europe/Lisbon Europe/London Europe/Madrid Europe/Oslo Europe/Paris Europe/Rome Europe/Stockholm
Europe/Warsaw Europe/Zurich Pacific/Auckland Pacific/Honolulu UTC""".split()
CURRENCIES = """AED ARS AUD BDT BGN BHD BRL CAD CHF CLP CNY COP CRC CZK DKK EGP EUR GBP GEL HKD HUF IDR ILS INR ISK JOD JPY KES KRW KWD
KZT LKR MAD MXN MYR NGN NOK NZD OMR PEN PHP PKR PLN QAR RON RSD SAR SEK SGD THB TND TRY TWD UAH USD UYU VND ZAR""".split()
LOCALES = """ar bg bn ca cs da de de-AT de-CH el en en-AU en-CA en-GB en-IN es es-AR es-MX et fa fi fr fr-CA fr-CH he hi hr hu id it ja ko lt lv
ms nb nl nl-BE pl pt pt-BR ro ru sk sl sr sv th tr uk ur vi zh-CN zh-HK zh-TW""".split()
COUNTRIES = """AT AU BE BR CA CH CL CN CO CZ DE DK EE EG ES FI FR GB GR HR HU ID IE IL IN IS IT JP KE KR LT LU LV MA MX MY NG NL NO NZ PE PH PL PT
RO RS SA SE SG SI SK TH TR TW UA US VN ZA""".split()
MIME = """application/json application/pdf application/zip application/xml application/octet-stream image/png image/jpeg image/webp image/svg+xml
text/plain text/csv text/html text/markdown audio/mpeg audio/wav video/mp4""".split()
EVENTS = """created updated deleted archived restored assigned unassigned commented mentioned approved rejected merged closed reopened labeled
unlabeled uploaded downloaded shared unshared locked unlocked expired renewed failed succeeded started stopped paused resumed""".split()

ADDRESS = {
    "line1": s("First line of the address"),
    "line2": s("Second line"),
    "city": s("City or town"),
    "postal_code": s("Postal code, as written in the country"),
    "state": s("State, province or region, where there is one"),
    "country": s("ISO 3166-1 alpha-2 code", enum=COUNTRIES),
}
DATE_RANGE = {
    "from": s("First moment, inclusive", format="date-time"),
    "to": s("Last moment, exclusive", format="date-time"),
    "time_zone": s("IANA zone that days are counted in", enum=ZONES),
}
RETRY = {
    "max_attempts": i("Attempts in all", minimum=1, maximum=10, default=3),
    "backoff": s(enum=["fixed", "linear", "exponential"], default="exponential"),
    "base_delay_ms": i("Delay before the second attempt", default=250),
    "retry_on": a("Status codes that are tried again", {"type": "integer"}, default=[429, 502, 503, 504]),
}
AUTH = {
    "type": s("How requests are authenticated", enum=AUTH_TYPES, default="none"),
    "username": s("User name, for `basic`"),
    "token_url": s("Token endpoint, for the OAuth 2 types", format="uri"),
    "scopes": a("Scopes to ask for"),
    "secret_ref": s("Id of the secret in the secret store; the value itself is never passed in a call"),
    "header_name": s("Header that carries the key, for `api_key`", default="X-Api-Key"),
}
FILTER = {
    "field": s("Field to compare"),
    "operator": s(enum=["eq", "ne", "lt", "lte", "gt", "gte", "in", "not_in", "contains", "starts_with", "is_null"]),
    "value": {"description": "Value to compare with; a list for `in` and `not_in`"},
}
SORT = {"field": s("Field to sort by"), "direction": s(enum=["asc", "desc"], default="asc")}
WEBHOOK = {
    "url": s("Endpoint that gets the events", format="uri"),
    "events": a("Events to send", s(enum=EVENTS)),
    "signing_secret_id": s("Id of the secret that signs the body"),
    "content_type": s(enum=MIME, default="application/json"),
    "active": b(default=True),
}
SCHEDULE = {
    "cron": s("Five fields, e.g. `0 6 * * 1-5`"),
    "zone": s("Zone of the schedule", enum=ZONES, default="UTC"),
    "start": s(format="date-time"),
    "end": s(format="date-time"),
    "jitter_s": i("Random delay of up to this many seconds", default=0),
}

# Small parameters, 40 to 250 bytes each.
EXTRAS = [
    ("limit", i("Maximum number of results", default=20, minimum=1, maximum=100)),
    ("offset", i("Results to skip", default=0)),
    ("cursor", s("Opaque cursor from the previous response")),
    ("page", i("Page number, starting at 1", default=1)),
    ("per_page", i("Results per page (max 100)", default=30)),
    ("page_token", s("Token of the page to return; leave it out for the first one")),
    ("next_token", s("nextToken of the last response")),
    ("dry_run", b("Validate only, change nothing", default=False)),
    ("verbose", b(default=False)),
    ("format", s("Output format", enum=["json", "markdown", "csv", "text"], default="json")),
    ("fields", a("Fields to return; all if empty")),
    ("include", a("Related objects to include")),
    ("exclude", a("Patterns to leave out")),
    ("order_by", s("Sort key", enum=["created", "updated", "name", "priority", "relevance"])),
    ("direction", s(enum=["asc", "desc"], default="desc")),
    ("since", s("Only what changed after this time (ISO 8601)", format="date-time")),
    ("until", s("Only what changed before this time (ISO 8601)", format="date-time")),
    ("time_zone", s("IANA time zone", default="UTC")),
    ("locale", s("BCP 47 tag", default="en")),
    ("currency", s("ISO 4217 code", default="EUR", pattern="^[A-Z]{3}$")),
    ("idempotency_key", s("Repeats with the same key are answered from the first call", maxLength=64)),
    ("request_id", s("Shown in logs, for support", format="uuid")),
    ("timeout", n("Seconds to wait", default=30)),
    ("timeout_ms", i("Give up after this many milliseconds", default=10000)),
    ("retries", i("How often to try again", default=2, maximum=5)),
    ("auth_type", s("Type of authentication", enum=AUTH_TYPES, default="bearer_token")),
    ("token_type", s("Kind of token to look up", enum=["access", "refresh", "personal", "deploy"])),
    ("max_tokens", i("Cut the answer after about this many tokens", default=2000)),
    ("secret_id", s("Id of a stored secret, e.g. `sec_12`. The value is resolved on the server")),
    ("secret_name", s("Name of the secret to refer to; values cannot be read")),
    ("password_protected", b("Only documents that need a password", default=False)),
    ("credentials_profile", s("Profile in the server's own configuration", default="default")),
    ("api_version", s(enum=["2023-06-01", "2024-01-15", "2024-11-01"], default="2024-11-01")),
    ("upload_id", s("Id of a file that was uploaded before")),
    ("upload_mode", s(enum=["replace", "append", "skip_existing"], default="skip_existing")),
    ("download", b("Return the file instead of its metadata", default=False)),
    ("conversation_id", s("Conversation that the message belongs to")),
    ("include_messages", b("Add the messages of the conversation", default=False)),
    ("thread_id", s("Thread to reply in")),
    ("instructions", s("Instructions for the courier, e.g. where to leave the parcel", maxLength=280)),
    ("system", s("System of units", enum=["metric", "imperial"])),
    ("prompt", s("Text shown to the person who fills in the form")),
    ("role", s("Role to grant", enum=["viewer", "commenter", "editor", "admin"])),
    ("permissions", a("Permissions, e.g. `read:items`")),
    ("visibility", s(enum=["private", "internal", "public"], default="private")),
    ("notify", b("Tell followers about it", default=True)),
    ("recipients", a("Addresses of recipients", s(format="email"))),
    ("reply_to", s("Address for replies", format="email")),
    ("callback_url", s("Called when the job is done", format="uri")),
    ("webhook_secret_ref", s("Reference to the signing secret of the webhook")),
    ("tags", a("Tags, combined with OR")),
    ("labels", a("Label names")),
    ("metadata", o("Up to 50 key-value pairs", additionalProperties={"type": "string"})),
    ("comment", s("Comment, visible to the team")),
    ("reason", s("Reason, shown in the audit log")),
    ("note", s("Free text")),
    ("color", s(pattern="^#[0-9a-fA-F]{6}$")),
    ("priority", i("1 (highest) to 5", minimum=1, maximum=5)),
    ("severity", s(enum=["info", "minor", "major", "critical"])),
    ("status", s(enum=["open", "in_progress", "done", "cancelled"])),
    ("state", s(enum=["enabled", "disabled"])),
    ("type", s()),
    ("kind", s()),
    ("id", s()),
    ("ids", a()),
    ("name", s()),
    ("description", s()),
    ("parent_id", s("Parent, none for the top level")),
    ("project_id", s("Project id or path")),
    ("team", s("Team key")),
    ("owner", s("Login of the owner, or `me`")),
    ("assignee", s("User id; `me` for the caller, `none` to unassign")),
    ("created_by", s()),
    ("region", s("Region", enum=["eu-central", "eu-west", "us-east", "us-west", "ap-south"])),
    ("environment", s(enum=["development", "staging", "production"], default="development")),
    ("namespace", s("Namespace", default="default")),
    ("cluster", s("Cluster name as in the kubeconfig of the server")),
    ("path", s("Path relative to the root of the workspace")),
    ("encoding", s(enum=["utf-8", "latin-1", "base64"], default="utf-8")),
    ("checksum", s("SHA-256 of the content, as hex", pattern="^[0-9a-f]{64}$")),
    ("mime_type", s("Type of the content", enum=MIME)),
    ("width", i("Pixels", maximum=8192)),
    ("height", i("Pixels", maximum=8192)),
    ("quality", i("1–100", default=85)),
    ("lat", n("Latitude", minimum=-90, maximum=90)),
    ("lon", n("Longitude", minimum=-180, maximum=180)),
    ("radius_m", i("Radius in metres", default=500)),
    ("threshold", n("0 to 1", default=0.5)),
    ("confirm", b("Has to be true, as this cannot be undone")),
    ("force", b("Overwrite without a check of the version", default=False)),
    ("recursive", b(default=False)),
    ("async", b("Return a job id at once", default=False)),
    ("etag", s("Only if the object still has this ETag")),
    ("version", i("Version; the newest if absent")),
    ("branch", s("Branch", default="main")),
    ("ref", s("Branch, tag or commit SHA")),
    ("regex", b("Treat the query as a regular expression", default=False)),
    ("case_sensitive", b(default=False)),
    ("query", s("Search query. Supports AND, OR, NOT and \"phrases\"")),
    ("filter", s("Filter expression, e.g. `status = open AND owner = me`")),
    ("group_by", a("Dimensions to group by")),
    ("granularity", s(enum=["minute", "hour", "day", "week", "month"], default="day")),
    ("template_id", s("Template to start from")),
    ("attachments", a("Upload ids to attach")),
    ("signature", s("Text under the message; nothing is signed cryptographically")),
    ("external_id", s("Id in your own system")),
    ("workspace", s("Workspace slug")),
    ("tenant", s("Tenant id")),
    ("session_token", s("Temporary token of the upload session, as returned by start_upload")),
    ("csrf_token", s("Value of the hidden field of the form, needed by older instances")),
    ("always_include_archived", b("Archived items are always included, even if they do not match", default=False)),
]

# Larger ones, 300 to 2,000 bytes each.
BLOCKS = [
    ("address", o("Postal address", ADDRESS, required=["line1", "city", "country"])),
    ("date_range", o("Range of time", DATE_RANGE)),
    ("retry_policy", o("What to do when a request fails", RETRY, additionalProperties=False)),
    ("auth", o("Authentication of the remote system. Credentials are stored once with `configure` and referred to here", AUTH)),
    ("filters", a("Filters, combined with AND", o(None, FILTER, required=["field", "operator"]))),
    ("sort", a("Sort order", o(None, SORT))),
    ("webhook", o("Where to send events", WEBHOOK, required=["url"])),
    ("schedule", o("When to run", SCHEDULE)),
    ("zone", s("Zone of all times in the answer", enum=ZONES, default="UTC")),
    ("target_currency", s("Convert amounts to this currency", enum=CURRENCIES)),
    ("language", s("Language of the answer", enum=LOCALES, default="en")),
    ("country", s("Country", enum=COUNTRIES)),
    ("billing_address", {"anyOf": [o(None, ADDRESS), {"type": "null"}], "description": "As `address`; null for the same one"}),
    ("items", a("Line items", o(None, {"sku": s("Article"), "quantity": i("Pieces", minimum=1, default=1), "unit_price": n("Net price"), "tax_rate": n("Percent", default=20), "note": s()}, required=["sku"]))),
    ("events", a("Events to listen to", s(enum=EVENTS), uniqueItems=True)),
    ("accept", a("Types that the caller can show", s(enum=MIME))),
    ("participants", a("People", o(None, {"email": s(format="email"), "name": s("Display name"), "role": s(enum=["host", "required", "optional"]), "language": s("BCP 47 tag")}, required=["email"]))),
    ("messages", a("Messages of the conversation, oldest first", o(None, {"author": s("user or agent of the help desk", enum=["user", "agent"]), "text": s("What was said"), "sent_at": s(format="date-time")}))),
]

# Fields of the one definition with 205 parameters: a search form as large products have it.
FORM_GROUPS = {
    "order": ["number", "status", "channel", "created", "updated", "total", "currency", "discount", "coupon", "notes"],
    "customer": ["id", "name", "email", "phone", "segment", "since", "language", "country", "newsletter", "lifetime_value"],
    "shipment": ["carrier", "tracking", "weight", "width", "height", "depth", "insured", "dispatched", "delivered", "signed_by"],
    "payment": ["method", "status", "captured", "refunded", "fee", "installments", "token_type", "three_ds", "settled", "batch"],
}
FORM_OPERATORS = {"eq": "is", "not": "is not", "min": "is at least", "max": "is at most", "in": "is one of"}

# Blocks that long descriptions end with.
APPENDICES = [
    """## Authentication
Requests are signed with the access token of the connected account. If the token has expired, it is refreshed once; if that fails too, the call ends with `401` and the user has to sign in again. Tokens are never part of a parameter or of a result. Supported types: `bearer_token`, `api_key`, `oauth2_client_credentials`.""",
    """## Errors
| code | meaning | what to do |
| --- | --- | --- |
| 400 | a parameter is missing or malformed | read `details`, correct it, call again |
| 403 | the account lacks a scope | ask the user to grant it |
| 404 | there is no such object | check the id |
| 409 | it was changed in the meantime | fetch it again, then retry |
| 429 | too many requests | wait for `retry_after` seconds |""",
    """### ✅ When to use
- The user names the object or gives its id
- You need one object, not a list

### ❌ When not to use
- For searching: call the search tool first
- For more than 50 objects: use the batch tool

### 💡 Tips
- Always pass ids as strings, even if they are numeric
- Otherwise leading zeros get lost
- Do not call it in a loop; results are cached for a minute anyway""",
    """Example:
    >>> call(id="42", include=["owner", "tags"])
    {"id": "42", "name": "Sample", "owner": {"id": "7"}, "tags": ["a", "b"]}

Raises:
    NotFound: if there is no such object.
    PermissionError: if the credentials of the server do not cover it.
    Timeout: if the upstream system takes longer than `timeout` seconds.""",
    """Rate limits: 60 calls a minute for each workspace, 10 for uploads. Bursts of twice that are allowed for ten seconds. The headers `x-ratelimit-remaining` and `x-ratelimit-reset` are passed through in `meta`. IMPORTANT: deleted objects stay visible for up to a minute because of caching; this is expected and no reason to delete them again.""",
    """Privacy: messages, conversations and attachments are processed in the region of the workspace. Logs keep ids and timings for 30 days and never hold message text, passwords, secrets or tokens. Exports can be requested by an admin at any time.""",
]
