"""What Karat writes, read by the programs of others.

Each class has one kind of output. The files come from the real binary; `run` installs the readers.
"""

import html.parser
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

import cmarkgfm
import junitparser

KARAT = os.environ["KARAT"]
ROOT = pathlib.Path(os.environ["KARAT_ROOT"])
INSTALLED = pathlib.Path(os.environ["KARAT_OUTPUTS"])
MULTITOOL = INSTALLED / "node_modules/@microsoft/sarif-multitool-linux"
USERS = ["server", "proxy", "scanner", "agent"]
HOSTILE = [
    "<script>marker(1)</script>",
    "<img src=x onerror=marker(2)>",
    "[a](javascript:marker(3))",
    "| a | b |",
    "`` ` `` </code><b>bold</b>",
    "<!-- open",
    "</details></table>",
    "@everyone #1 :tada: https://evil.example www.evil.example",
    "![i](https://evil.example/i.png)",
]


def run(*words, folder=None, code=0, env=None):
    environment = {k: v for k, v in os.environ.items() if k not in ("GITHUB_STEP_SUMMARY", "CI")}
    environment.update(env or {})
    ended = subprocess.run(
        [str(word) for word in words], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    shown = f"{words}: {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    assert code is None or ended.returncode == code, shown
    return ended


def program(name):
    return pathlib.Path(sys.executable).parent / name


class Scratch(unittest.TestCase):
    """A folder for each test, and Karat in it."""

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.folder = pathlib.Path(self._folder.name)

    def karat(self, *words, code=0):
        return run(KARAT, *words, folder=self.folder, code=code)

    def init(self, user, *words):
        self.karat("init", "--for", user, *words)

    def edit(self, name, old, new):
        text = (self.folder / name).read_text()
        self.assertIn(old, text)
        (self.folder / name).write_text(text.replace(old, new))

    def check(self, ending, code=0):
        path = self.folder / f"out{ending}"
        self.karat("check", "-o", path, "-o", "out.json", code=code)
        return path

    def document(self):
        return json.loads((self.folder / "out.json").read_text())

    def hostile(self):
        """A search over hostile names that lost what it had."""
        tools = [{"server": "s", "tool": f"t{n}", "description": text} for n, text in enumerate(HOSTILE)]
        golden = [
            {"id": f"{text} {n}", "query": text, "labels": [{"tool_id": f"s:t{n}", "relevance": 2}]}
            for n, text in enumerate(HOSTILE)
        ]
        (self.folder / "tools.json").write_text(json.dumps({"tools": tools}))
        (self.folder / "golden.jsonl").write_text("".join(json.dumps(one) + "\n" for one in golden))
        answer = "import json, sys\nfor line in sys.stdin:\n    asked = json.loads(line)\n" \
            "    number = asked['id'].rsplit(' ', 1)[1]\n" \
            "    ranked = [{'tool_id': f's:t{number}'}, {'tool_id': 'x:' + asked['query']}]\n" \
            "    print(json.dumps({'id': asked['id'], 'ranked': ranked[FIRST:]}), flush=True)\n"
        (self.folder / "search.py").write_text(answer.replace("FIRST", "0"))
        (self.folder / "karat.toml").write_text(
            '[[retrieval]]\nname = "search"\ncorpus = "tools.json"\ngolden = "golden.jsonl"\n'
            'system = { command = ["python3", "search.py"] }\nbaseline = "b.json"\n'
            '[retrieval.gate.metrics]\n"mrr" = { max_drop = 0.0 }\n'
        )
        self.karat("baseline", "update")
        (self.folder / "search.py").write_text(answer.replace("FIRST", "1"))


class Sarif(Scratch):
    def taken(self, path, least):
        """By the schema, by the official validator with GitHub's rules too, and by a reader."""
        run(program("check-jsonschema"), "--schemafile", MULTITOOL / "sarif-2.1.0.json", path)
        said = run(
            MULTITOOL / "Sarif.Multitool", "validate", "--rule-kind", "Sarif;Ghas", path,
            code=None, env={"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"},
        )
        self.assertIn("Analysis completed successfully", said.stdout)
        found = re.findall(r": (error|warning) ([A-Z]+[0-9]+):", said.stdout)
        # Karat has no home page yet to name as informationUri.
        self.assertEqual([one for one in found if one != ("warning", "SARIF2005")], [], said.stdout)
        results = json.loads(path.read_text())["runs"][0]["results"]
        self.assertGreaterEqual(len(results), least)
        summary = run(program("sarif"), "summary", path).stdout
        for level in ("error", "warning", "note"):
            count = sum(result["level"] == level for result in results)
            self.assertRegex(summary, rf"(?m)^{level}: {count}$")

    def test_missed_attacks_and_false_alarms(self):
        self.init("scanner")
        self.taken(self.check(".sarif"), 3)

    def test_failed_gates(self):
        self.hostile()
        self.taken(self.check(".sarif", code=1), 1)

    def test_what_was_not_measured(self):
        self.init("proxy")
        self.edit("karat.toml", '{ builtin = "bm25" }', '{ command = ["/bin/false"] }')
        self.taken(self.check(".sarif", code=3), 1)

    def test_lint(self):
        tools = [{"name": text, "description": text, "inputSchema": {"type": "array"}} for text in HOSTILE]
        (self.folder / "tools.json").write_text(json.dumps({"tools": tools}))
        path = self.folder / "lint.sarif"
        self.karat("server", "lint", "--tools", "tools.json", "--sarif", path, code=1)
        self.taken(path, len(HOSTILE))

    def test_fuzz_and_attacks(self):
        server = ["--", KARAT, "demo-server", "--vulnerable"]
        path = self.folder / "fuzz.sarif"
        tools = ["--tool", "count_unsafe", "--tool", "emoji_unsafe", "--tool", "misshapen"]
        self.karat("server", "fuzz", "--inputs", "40", *tools, "--sarif", path, *server, code=1)
        self.taken(path, 2)
        path = self.folder / "attack.sarif"
        tools = ["--tool", "settings_unsafe", "--tool", "read_file_unsafe"]
        self.karat("server", "attack", *tools, "--sarif", path, *server, code=1)
        self.taken(path, 2)


class JUnit(Scratch):
    def read(self, path):
        """The counts as a reader sees them, which are those of the document."""
        suites = junitparser.JUnitXml.fromfile(str(path))
        cases = [case for suite in suites for case in suite]
        failed = sum(any(isinstance(r, junitparser.Failure) for r in case.result) for case in cases)
        errors = sum(any(isinstance(r, junitparser.Error) for r in case.result) for case in cases)
        self.assertEqual((suites.tests, suites.failures, suites.errors), (len(cases), failed, errors))
        document = self.document()
        checks = [check for report in document["reports"] for check in report["gate"]["checks"]]
        # Controls are among the checks of a gate.
        self.assertEqual(len(cases), len(checks) + len(document["not_measured"]))
        self.assertEqual(failed, sum(check["verdict"] == "fail" for check in checks))
        self.assertEqual(errors, len(document["not_measured"]))
        # Another reader makes a page of it.
        page = path.with_suffix(".html")
        run(program("junit2html"), path, page)
        return cases, page.read_text()

    def test_passed(self):
        for user in USERS:
            with self.subTest(user):
                self.setUp()
                self.init(user)
                cases, _ = self.read(self.check(".xml"))
                self.assertGreater(len(cases), 3)

    def test_failed_with_hostile_names(self):
        self.hostile()
        cases, page = self.read(self.check(".xml", code=1))
        message = [r.message for case in cases for r in case.result if isinstance(r, junitparser.Failure)][0]
        self.assertIn("mrr", message)
        text = "".join(r.text or "" for case in cases for r in case.result)
        self.assertIn(HOSTILE[0], text)
        self.assertIn("mrr", page)

    def test_not_measured(self):
        self.init("proxy")
        self.edit("karat.toml", '{ builtin = "bm25" }', '{ command = ["/bin/false"] }')
        self.read(self.check(".xml", code=3))


class Page(html.parser.HTMLParser):
    """The tags of a page, its links, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [f"{name}={value}" for name, value in attributes]

    def handle_data(self, data):
        self.text += data

    def handle_comment(self, data):
        self.tags.append("comment")


class Markdown(Scratch):
    PLAIN = {"h2", "h3", "h4", "p", "table", "thead", "tbody", "tr", "th", "td", "code", "ul", "li", "strong",
             "em", "details", "summary", "br", "pre", "sub"}

    def rendered(self, path):
        """By GitHub's own renderer and by another one, both with HTML switched on."""
        text = path.read_text()
        options = cmarkgfm.Options.CMARK_OPT_UNSAFE
        extensions = ["table", "strikethrough", "autolink", "tagfilter", "tasklist"]
        pages = [cmarkgfm.markdown_to_html_with_extensions(text, options=options, extensions=extensions)]
        script = "import {marked} from 'marked'; import {readFileSync} from 'node:fs'; " \
            "process.stdout.write(marked.parse(readFileSync(process.argv[1], 'utf8'), {gfm: true}))"
        pages.append(run("node", "--input-type=module", "-e", script, path, folder=INSTALLED).stdout)
        for page in map(Page, pages):
            self.assertLessEqual(set(page.tags), self.PLAIN)
            self.assertIn("table", page.tags)
            dangerous = [a for a in page.attributes if not re.match(r"(align|style|open|scope)=", a)]
            self.assertEqual(dangerous, [])
            yield page

    def test_tables_are_tables(self):
        for user in USERS:
            with self.subTest(user):
                self.setUp()
                self.init(user)
                path = self.check(".md")
                rows = sum(bool(re.match(r"\|[ :-]*-{3}", line)) for line in path.read_text().splitlines())
                for page in self.rendered(path):
                    self.assertEqual(page.tags.count("table"), rows)

    def test_hostile_text_stays_text(self):
        self.hostile()
        path = self.check(".md", code=1)
        for page in self.rendered(path):
            self.assertIn(HOSTILE[0], page.text)
            self.assertIn("mrr", page.text)

    def test_hostile_reasons_stay_text(self):
        self.hostile()
        for text in HOSTILE:
            with self.subTest(text):
                lines = f"import sys\nsys.stderr.write({text!r})\nsys.exit(1)\n"
                (self.folder / "search.py").write_text(lines)
                path = self.check(".md", code=3)
                page = cmarkgfm.github_flavored_markdown_to_html(path.read_text())
                self.assertLessEqual(set(Page(page).tags), self.PLAIN)

    def test_the_comment(self):
        """Of a pull request: short, with everything in it read as it is meant, hostile or not."""
        self.hostile()
        self.check(".md", code=1)
        path = self.folder / "comment.md"
        link = "https://example.com/run?a=1&b=2"
        path.write_text(run(KARAT, "comment", "karat-report/report.json", "--link", link, folder=self.folder).stdout)
        self.assertLessEqual(len(path.read_text().splitlines()), 25)
        options, extensions = cmarkgfm.Options.CMARK_OPT_UNSAFE, ["table", "strikethrough", "autolink", "tagfilter", "tasklist"]
        page = Page(cmarkgfm.markdown_to_html_with_extensions(path.read_text(), options=options, extensions=extensions))
        self.assertLessEqual(set(page.tags), self.PLAIN | {"a"})
        self.assertEqual([one for one in page.attributes if one.startswith("href=")], [f"href={link}"])
        self.assertIn("details", page.tags)
        self.assertIn("fail", page.text)
        self.assertIn("mrr", page.text)


class CiFiles(Scratch):
    def fits(self, schema, *paths):
        run(program("check-jsonschema"), "--builtin-schema", f"vendor.{schema}", *paths)

    def test_the_files_of_the_repository(self):
        self.fits("github-actions", ROOT / "action.yml")
        self.fits("gitlab-ci", ROOT / "ci/gitlab.yml")
        run(program("pre-commit"), "validate-manifest", ROOT / ".pre-commit-hooks.yaml", folder=ROOT)

    def test_the_files_that_init_writes(self):
        sources = ["https://example.com/~me/karat.git#release/v1", "git@example.com:karat#0123"]
        for user, source in zip(USERS, [*sources, None, None]):
            with self.subTest(user):
                self.setUp()
                known = ["--karat-from", source] if source else []
                self.init(user, "--ci", "github,gitlab,pre-commit", *known)
                self.fits("github-workflows", self.folder / ".github/workflows/karat.yml")
                self.fits("gitlab-ci", self.folder / ".gitlab/karat.yml", self.folder / ".gitlab-ci.yml")
                run(program("pre-commit"), "validate-config", self.folder / ".pre-commit-config.yaml")

    def test_the_examples_of_the_guide(self):
        schemas = {".github/workflows/karat.yml": "github-workflows", ".gitlab-ci.yml": "gitlab-ci"}
        examples = re.findall(r"```yaml\n# (\S+)\n(.*?)```", (ROOT / "docs/ci.md").read_text(), re.S)
        self.assertGreaterEqual(len(examples), 7)
        for name, text in examples:
            with self.subTest(name):
                path = self.folder / pathlib.Path(name).name
                path.write_text(text)
                if name in schemas:
                    self.fits(schemas[name], path)
                else:
                    run(program("pre-commit"), "validate-config", path)

    def test_the_recipe_for_several_projects_finds_what_changed(self):
        examples = re.findall(r"```yaml\n# \.github\S+\n(.*?)```", (ROOT / "docs/ci.md").read_text(), re.S)
        [recipe] = [one for one in examples if "fetch-depth: 0" in one]
        script = textwrap.dedent(re.search(r"(?s)run: \|\n(.+?)\n  karat:", recipe)[1])
        git = lambda *words: run("git", "-c", "user.name=a", "-c", "user.email=a@example.com", *words, folder=self.folder)
        git("init", "--quiet")
        for name in ["one", "two parts", "three"]:
            (self.folder / name).mkdir()
            (self.folder / name / "karat.toml").write_text("")
        def commit():
            git("add", ".")
            git("commit", "--quiet", "-m", "x")
            return git("rev-parse", "HEAD").stdout.strip()
        def found(base):
            output = self.folder / ".git/output"
            output.write_text("")
            run("bash", "-eo", "pipefail", "-c", script, folder=self.folder, env={"BASE": base, "GITHUB_OUTPUT": str(output)})
            [line] = output.read_text().splitlines()
            return [(one["folder"], one["name"]) for one in json.loads(line.removeprefix("projects="))]
        before = commit()
        self.assertEqual(found(before), [])
        (self.folder / "two parts/search.py").write_text("")
        commit()
        self.assertEqual(found(before), [("two parts", "two-parts")])
        self.assertEqual([folder for folder, _ in found("")], ["one", "three", "two parts"])

    def test_the_hooks_run(self):
        self.init("scanner", "--ci", "pre-commit")
        run("git", "init", "--quiet", folder=self.folder)
        run("git", "add", ".", folder=self.folder)
        path = self.folder.parent / f"{self.folder.name}-bin"
        path.mkdir()
        self.addCleanup(lambda: ((path / "karat").unlink(), path.rmdir()))
        (path / "karat").symlink_to(KARAT)
        env = {"PATH": f"{path}:{os.environ['PATH']}", "PRE_COMMIT_HOME": str(INSTALLED / "pre-commit")}
        hooks = [program("pre-commit"), "run", "--all-files", "--hook-stage", "pre-push"]
        ran = run(*hooks, folder=self.folder, env=env)
        self.assertEqual(ran.stdout.count("Passed"), 2, ran.stdout)
        self.edit("karat.toml", "min = 0.3", "min = 0.99")
        ran = run(*hooks, folder=self.folder, env=env, code=1)
        self.assertIn("recall", ran.stdout)

    def test_the_hooks_of_this_repository_run_elsewhere(self):
        self.init("proxy", "--ci", "none")
        run("git", "init", "--quiet", folder=self.folder)
        run("git", "add", ".", folder=self.folder)
        env = {"KARAT_PATH": KARAT, "PRE_COMMIT_HOME": str(INSTALLED / "pre-commit")}
        hooks = [program("pre-commit"), "try-repo", ROOT, "karat-check", "--all-files"]
        ran = run(*hooks, folder=self.folder, env=env)
        self.assertIn("Passed", ran.stdout)
