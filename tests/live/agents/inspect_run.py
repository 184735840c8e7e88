"""Runs Inspect against the scripted endpoint and writes its logs: inspect_run.py FOLDER"""

import glob
import os
import shutil
import sys

import endpoint
from endpoint import TASKS

URL = endpoint.start()
os.environ.update(OPENAI_API_KEY="none", OPENAI_BASE_URL=URL, INSPECT_DISPLAY="none")

from inspect_ai import Task, eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import ToolError, tool


@tool
def add():
    async def execute(a: int, b: int):
        """Adds two numbers.

        Args:
            a: A number.
            b: A number.
        """
        return a + b

    return execute


@tool
def weather():
    async def execute(city: str):
        """Says how warm a city is.

        Args:
            city: A city.
        """
        return {"Oslo": "4 degrees", "Rome": "18 degrees"}[city]

    return execute


@tool
def lookup():
    async def execute(name: str):
        """Finds the number of a person.

        Args:
            name: A name.
        """
        return 7

    return execute


@tool
def read_mail():
    async def execute(person: int, unread: bool):
        """Reads the mail of a person.

        Args:
            person: A number.
            unread: Only unread mail.
        """
        return f"from {person}: see you at noon"

    return execute


@tool
def divide():
    async def execute(a: int, b: int):
        """Divides two numbers.

        Args:
            a: A number.
            b: A number.
        """
        raise ToolError("division by zero")

    return execute


folder = sys.argv[1]
samples = [Sample(id=name, input=question, target=answer) for name, (question, _, answer) in TASKS.items()]
for kind in ("json", "eval"):
    logs = os.path.join(folder, "inspect-" + kind)
    shutil.rmtree(logs, ignore_errors=True)
    tools = use_tools([add(), weather(), lookup(), read_mail(), divide()])
    work = Task(dataset=samples, solver=[tools, generate()], scorer=match(location="exact"))
    evaluate(work, model="openai/gpt-4o-mini", log_dir=logs, log_format=kind, model_args={"responses_api": False})
    (log,) = glob.glob(os.path.join(logs, "*." + kind))
    name = "own+inspect.plain.eval" + (".json" if kind == "json" else "")
    shutil.copy(log, os.path.join(folder, name))
