"""Plays every login of Karat against the server of server.mjs, and looks for secrets in everything that Karat
wrote. `trial.py KARAT NODE SERVER`. Prints one line for each check; exit code 1 if one fails."""

import html.parser
import http.cookiejar
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

KARAT, NODE, SERVER = sys.argv[1:4]
CALL = ["--tool", "whoami"]
failed = []
outputs = []


class Form(html.parser.HTMLParser):
    """The first form of a page."""

    def __init__(self):
        super().__init__()
        self.action, self.fields = None, {}

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "form" and self.action is None:
            self.action = attributes.get("action")
        if tag in ("input", "button") and attributes.get("name"):
            self.fields[attributes["name"]] = attributes.get("value") or "x"


def browse(url, answers):
    """A browser: follows redirects, keeps cookies, and sends every form with these answers."""
    browser = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    )
    page = browser.open(url, timeout=20)
    for _ in range(10):
        form = Form()
        form.feed(page.read().decode())
        if form.action is None:
            return
        fields = {**form.fields, **{name: value for name, value in answers.items() if name in form.fields}}
        fields.pop("abort", None)
        data = urllib.parse.urlencode(fields).encode()
        page = browser.open(urllib.parse.urljoin(page.url, form.action), data, timeout=20)


def karat(arguments, env=None, answers=None, stdin=None):
    """Runs Karat; a person in a thread does what the prompt asks for."""
    process = subprocess.Popen(
        [KARAT, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **HOME, **(env or {})},
    )
    said = []

    def listen():
        for line in process.stderr:
            said.append(line)
            found = re.search(r"to log in, open (\S+)(?: and enter the code (\S+))?", line)
            if found and answers is not None:
                entered = {"user_code": found[2]} if found[2] else {}
                threading.Thread(target=browse, args=(found[1], {**answers, **entered}), daemon=True).start()

    listener = threading.Thread(target=listen)
    listener.start()
    if stdin:
        process.stdin.write(stdin)
    process.stdin.close()
    out = process.stdout.read()
    process.wait(timeout=120)
    listener.join()
    err = "".join(said)
    outputs.extend([out, err])
    return process.returncode, out, err


def check(what, holds, seen=""):
    print(("ok   " if holds else "FAIL ") + what, flush=True)
    if not holds:
        failed.append(what)
        print(seen, flush=True)


def grants():
    path = work / "grants"
    return path.read_text().splitlines() if path.exists() else []


work = pathlib.Path(tempfile.mkdtemp())
HOME = {"XDG_CONFIG_HOME": str(work / "config"), "HOME": str(work)}
server = subprocess.Popen([NODE, SERVER, str(work)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
try:
    at = json.loads(server.stdout.readline())
    url = ["--url", at["mcp"]]
    person = {"login": "ada", "password": "x"}
    robot = ["--auth", "client-credentials", "--client-id", "robot", "--client-secret", "${ROBOT}"]
    env = {"ROBOT": "the-secret-of-the-robot"}

    code, out, err = karat(["server", "call", *url, *CALL])
    explained = all(part in err for part in ("401", at["issuer"], "tools:read", "--auth", "${TOKEN}"))
    check("a 401 names the authorisation server, the scopes and the flags", code == 3 and explained, err)

    code, out, err = karat(["server", "call", *url, *CALL, *robot], env)
    check("client credentials", code == 0 and "robot sent Bearer [redacted]" in out, out + err)
    check("with the resource", grants()[-1] == f"client_credentials {at['mcp']}", grants())
    code, out, err = karat(["server", "call", *url, *CALL, *robot], {"ROBOT": "a-wrong-secret-of-it"})
    check("a wrong secret is exit code 3", code == 3 and "invalid_client" in err, err)

    key = ["--auth", "client-credentials", "--client-id", "signer", "--private-key", str(work / "key.pem")]
    code, out, err = karat(["server", "call", *url, *CALL, *key])
    check("client credentials with a private key", code == 0 and "signer sent Bearer [redacted]" in out, out + err)

    code, out, err = karat(["server", "call", *url, *CALL, "--auth", "browser"], answers=person)
    check("browser with PKCE and a registered client", code == 0 and "sent Bearer [redacted]" in out, out + err)
    check("by code", grants()[-1] == f"authorization_code {at['mcp']}", grants())

    device = ["--auth", "device", "--client-id", "screenless"]
    code, out, err = karat(["server", "call", *url, *CALL, *device], answers=person)
    check("device", code == 0 and "screenless sent Bearer [redacted]" in out, out + err)

    code, out, err = karat(["server", "login", *url, "--auth", "browser"], answers=person)
    check("login", code == 0 and "refreshed when it expires" in err, out + err)
    kept = list((work / "config/karat/logins").iterdir())
    check("kept in one private file", [oct(file.stat().st_mode & 0o777) for file in kept] == ["0o600"], kept)
    before = len(grants())
    code, out, err = karat(["server", "call", *url, *CALL])
    check("a later run uses it", code == 0 and "sent Bearer [redacted]" in out, out + err)
    time.sleep(5)
    code, out, err = karat(["server", "call", *url, *CALL])
    check("and refreshes it when it has expired", code == 0 and "refresh_token" in grants()[-1], out + err)
    time.sleep(5)
    code, out, err = karat(["server", "call", *url, *CALL])
    # On a slow machine a token may expire within a run, and be refreshed once more.
    check("the rotated refresh token was kept", code == 0 and len(grants()) >= before + 2, out + err)
    login = json.loads(kept[0].read_text())
    refresh = login["refresh_token"]
    pasted = ["--auth", "token", "--access-token", "${PASTED}", "--refresh-token", "${AGAIN}", "--client-id", login["client_id"]]
    if login.get("client_secret"):
        pasted += ["--client-secret", "${SECRET}"]
    elsewhere = {"XDG_CONFIG_HOME": str(work / "elsewhere"), "PASTED": login["access_token"], "AGAIN": refresh,
                 "SECRET": login.get("client_secret") or ""}
    # The refresh token is good for one use, so there is one call, with a token that has expired.
    time.sleep(5)
    count = len(grants())
    code, out, err = karat(["server", "call", *url, *CALL, *pasted], elsewhere)
    renewed = len(grants()) > count and "refresh_token" in grants()[-1]
    check("a pasted token that has expired is refreshed", code == 0 and renewed, out + err)
    code, out, err = karat(["server", "logout", *url])
    check("logout", code == 0 and not list((work / "config/karat/logins").iterdir()), err)
    code, out, err = karat(["server", "call", *url, *CALL])
    check("afterwards it is a 401 again", code == 3, out + err)

    code, out, err = karat(["server", "call", *url, *CALL, "--auth", "token", "--access-token", "-"], stdin="expired\n")
    check("a pasted token that is refused is exit code 3", code == 3 and "cannot be refreshed" in err, err)

    suite = work / "suite.yaml"
    suite.write_text("test_cases:\n  - {id: who, tool: whoami, input: {}, repeat: 8, expected_output_contains: sent}\n")
    run = ["server", "test", str(suite), *url, *robot, "--out", str(work / "report"), "--record", str(work / "rec.jsonl")]
    code, out, err = karat([*run, "-o", str(work / "report.html")], env)
    check("a suite with a report and a recording", code == 0, out + err)
    project = work / "karat.toml"
    project.write_text(
        f'[[server]]\nname = "guarded"\nsuite = "suite.yaml"\nserver = {{ url = "{at["mcp"]}", auth = {{ '
        'kind = "client-credentials", client_id = "robot", client_secret = "${ROBOT}", scopes = ["tools:read"] } }\n'
    )
    code, out, err = karat(["check", str(project), "--out", str(work / "checked")], env)
    check("a project with auth", code == 0, out + err)

    issued = [line for line in (work / "issued").read_text().splitlines() if line] + ["the-secret-of-the-robot", refresh]
    files = [path for path in work.rglob("*") if path.is_file() and path.name not in ("issued", "grants", "key.pem")]
    texts = outputs + [path.read_bytes().decode("utf-8", "replace") for path in files]
    leaks = [secret[:12] for secret in set(issued) if any(secret in text for text in texts)]
    check(f"none of {len(set(issued))} secrets is in {len(outputs)} outputs and {len(files)} files", not leaks, leaks)
finally:
    server.kill()
    server.wait()
    subprocess.run(["rm", "-rf", str(work)], check=False)
print(f"{len(failed)} checks failed")
sys.exit(bool(failed))
