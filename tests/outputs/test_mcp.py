"""`karat mcp`, driven by the client of the official Python SDK."""

import asyncio
import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from mcp import ClientSession, StdioServerParameters, stdio_client

KARAT = os.environ["KARAT"]
READING = {"karat_last_report", "karat_explain", "karat_compare", "karat_lint_definitions"}
RUNNING = {"karat_check", "karat_scan_server", "karat_suggest_suite"}


def field(value, *names):
    """The first of several spellings: the SDK has changed from camelCase to snake_case."""
    for name in names:
        if hasattr(value, name):
            return getattr(value, name)
    raise AttributeError(f"{value!r} has none of {names}")


class Mcp(unittest.IsolatedAsyncioTestCase):
    """A project for each test, served by Karat."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        subprocess.run([KARAT, "init", "--for", "proxy"], cwd=self.folder, check=True, capture_output=True)

    @contextlib.asynccontextmanager
    async def session(self, *flags):
        """Starts `karat mcp` and initializes a session with it."""
        parameters = StdioServerParameters(command=KARAT, args=["mcp", *flags], cwd=str(self.folder))
        async with stdio_client(parameters) as (read, write, *_), ClientSession(read, write) as session:
            await session.initialize()
            yield session

    async def call(self, session, tool, **arguments):
        result = await session.call_tool(tool, arguments)
        failed = field(result, "is_error", "isError")
        text = result.content[0].text
        self.assertFalse(failed, text)
        structured = field(result, "structured_content", "structuredContent")
        self.assertEqual(json.loads(text), structured)
        return structured

    async def test_only_reading_tools_are_offered(self):
        async with self.session() as session:
            tools = (await session.list_tools()).tools
            self.assertEqual({tool.name for tool in tools}, READING)
            for tool in tools:
                self.assertTrue(field(tool.annotations, "read_only_hint", "readOnlyHint"), tool.name)
            result = await session.call_tool("karat_last_report", {})
            self.assertTrue(field(result, "is_error", "isError"))
            self.assertIn("karat check", result.content[0].text)

    async def test_a_project_is_measured_read_and_explained(self):
        async with self.session("--allow-run") as session:
            tools = (await session.list_tools()).tools
            self.assertEqual({tool.name for tool in tools}, READING | RUNNING)
            measured = await self.call(session, "karat_check")
            self.assertIn(measured["verdict"], ["pass", "inconclusive"])
            again = await self.call(session, "karat_last_report")
            self.assertEqual(again["verdict"], measured["verdict"])
            report = json.loads((self.folder / "karat-report/report.json").read_text())["reports"][0]
            entry = f"{report['evaluation']}/{report['name']}"
            item = await self.call(session, "karat_explain", entry=entry, item=report["items"][0]["id"])
            self.assertIn(report["items"][0]["id"], item["text"])
            one = "karat-report/report.json"
            compared = await self.call(session, "karat_compare", before=one, after=one)
            self.assertEqual(compared["entries"][0]["entry"], entry)

    async def test_servers_of_the_project_are_scanned_and_get_a_suite(self):
        servers = {"mcpServers": {"demo": {"command": KARAT, "args": ["demo-server"]}}}
        (self.folder / ".mcp.json").write_text(json.dumps(servers))
        async with self.session("--allow-run") as session:
            found = await self.call(session, "karat_scan_server", server="demo", seconds=2)
            self.assertIsInstance(found["findings"], list)
            suite = await self.call(session, "karat_suggest_suite", server="demo")
            self.assertIn("\ncases:\n", suite["suite"])

    async def test_paths_out_of_the_project_are_refused(self):
        async with self.session() as session:
            for path in ["../x.json", "/etc/passwd", "a/../../x.json"]:
                result = await session.call_tool("karat_last_report", {"report": path})
                self.assertTrue(field(result, "is_error", "isError"), path)
                self.assertIn("not a file of the project", result.content[0].text)

    async def test_calls_at_the_same_time_are_all_answered(self):
        async with self.session("--allow-run") as session:
            await self.call(session, "karat_check")
            calls = [self.call(session, "karat_last_report") for _ in range(8)]
            calls += [self.call(session, "karat_check") for _ in range(2)]
            verdicts = {answer["verdict"] for answer in await asyncio.gather(*calls)}
            self.assertEqual(len(verdicts), 1, verdicts)
